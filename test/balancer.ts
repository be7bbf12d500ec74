import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A balancer that gives each request to the next server, whatever became of it. */
export async function startBalancer(urls: readonly string[]): Promise<string> {
  let count = 0
  const balancer = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? '', urls[count++ % urls.length])
    const { method, headers } = incoming
    // A connection of its own: one that is kept may be closed by the server while the next request is on its way.
    const options = { method, headers: { ...headers, host: url.host, connection: 'close' }, agent: false }
    const forwarded = request(url, options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  balancer.listen(0, '127.0.0.1')
  await once(balancer, 'listening')
  onTestFinished(() => {
    balancer.closeAllConnections()
    balancer.close()
  })
  return `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`
}
