import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** A request to a store, whole, and how the answer of the store is sent. */
export type Passing = {
  method: string
  path: string
  headers: IncomingMessage['headers']
  /** Sends it to the store. @returns its answer, whole */
  pass(): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }>
  reply: ServerResponse
}

/** What a fault does with a request. True: it has answered it, or cut it off. */
export type Fault = (passing: Passing) => Promise<boolean> | boolean

/** As if the client were killed at a request, such as `before request 3` or `after request 3`: none reaches the store any more. */
export function killAt(point: string): Fault {
  const [when = '', , at = ''] = point.split(' ')
  let requests = 0
  let isKilled = false
  return async ({ pass, reply }) => {
    isKilled ||= requests++ === Number(at)
    if (!isKilled) return false
    if (when === 'after' && requests === Number(at) + 1) await pass()
    reply.destroy()
    return true
  }
}

export type FaultProxy = {
  endpoint: string
  /** How many requests have come. */
  requests(): string[]
  /** From now on. Undefined: none. */
  fault: Fault | undefined
  /** Refuses connections, until it is listened again. */
  stop(): Promise<void>
  listen(): Promise<void>
}

/** Stands in front of a store, or of a server, until the test has finished. */
export async function startFaultProxy(store: string): Promise<FaultProxy> {
  const proxy = await openFaultProxy(store)
  onTestFinished(() => proxy.stop().catch(() => undefined))
  return proxy
}

/** The same; the caller stops it. It passes requests on as they are: signatures have the address of the store. */
export async function openFaultProxy(store: string): Promise<FaultProxy> {
  const target = new URL(store)
  const seen: string[] = []
  let server: Server
  let port = 0
  const proxy: FaultProxy = {
    endpoint: '',
    requests: () => seen,
    fault: undefined,
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
    async listen() {
      server = createServer((incoming, reply) => void serve(incoming, reply).catch(() => reply.destroy()))
      server.keepAliveTimeout = 0
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      const address = server.address()
      if (address && typeof address === 'object') port = address.port
      proxy.endpoint = `http://127.0.0.1:${port}`
    },
  }

  async function serve(incoming: IncomingMessage, reply: ServerResponse) {
    const { method = '', url: path = '', headers } = incoming
    const body = await buffer(incoming)
    seen.push(`${method} ${path}`)
    async function pass() {
      const passed = request({ host: target.hostname, port: target.port, method, path, headers })
      passed.end(body)
      const [answer]: IncomingMessage[] = await once(passed, 'response')
      if (!answer) throw new Error('no answer')
      return { status: answer.statusCode ?? 500, headers: answer.headers, body: await buffer(answer) }
    }
    if (await proxy.fault?.({ method, path, headers, pass, reply })) return
    const answer = await pass()
    reply.writeHead(answer.status, answer.headers).end(answer.body)
  }

  await proxy.listen()
  return proxy
}
