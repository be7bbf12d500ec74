import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../errors.ts'
import { ipRateLimitKey } from '../../net/ip.ts'
import type { App } from '../wire/app-type.ts'
import { getPeerAddress } from './client-address.ts'

// Limits on connections, before anything is known about the client.

/** Concurrent connections of one address: enough for a school behind one address, with room for all others (threat U18). */
const MAX_CONNECTIONS_PER_ADDRESS = 4_096
/** Requests of a connection that wait for the responses before theirs. Browsers and proxies send none ahead (threat F-100). */
const MAX_WAITING_REQUESTS = 64
/** For bodies that are buffered before their route, at most 256 KiB: only an attacker sends them more slowly (threat U17). Streamed uploads have no such limit. */
const BODY_TIMEOUT_MS = 30_000
const BODY_CHECK_MS = 1_000

const TOO_MANY_CONNECTIONS =
  'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/** Refuses further connections of an address that has too many. A trusted proxy carries the connections of many clients, and limits them itself. */
export function limitConnections(app: App, isProxy: (address: string) => boolean): void {
  const open = new Map<string, number>()
  app.server.on('connection', (socket: Socket) => {
    const peer = getPeerAddress(socket)
    if (isProxy(peer)) return
    const subject = ipRateLimitKey(peer)
    const count = open.get(subject) ?? 0
    if (count >= MAX_CONNECTIONS_PER_ADDRESS) return void socket.end(TOO_MANY_CONNECTIONS, () => socket.destroy())
    open.set(subject, count + 1)
    socket.once('close', () => {
      const left = (open.get(subject) ?? 0) - 1
      if (left > 0) open.set(subject, left)
      else open.delete(subject)
    })
  })
}

/**
 * Handles the requests of a connection one after the other, and ends a connection with too many of them. Node would begin all that a client
 * sends ahead, and keep each response until those before it are sent: clients that read none would fill the memory.
 */
export function handleInOrder(app: App): void {
  const connections = new WeakMap<Socket, { request: IncomingMessage; response: ServerResponse }[]>()
  app.server.removeAllListeners('request').on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request
    const calls = connections.get(socket) ?? []
    if (calls.length > MAX_WAITING_REQUESTS) return void socket.destroy()
    if (calls.push({ request, response }) > 1) return
    connections.set(socket, calls)
    begin()

    function begin(): void {
      const [call] = calls
      if (!call || !socket.writable) return
      call.response.once('close', () => {
        calls.shift()
        begin()
      })
      app.routing(call.request, call.response)
    }
  })
}

/** Ends the connection after the response: the rest of the body is not read, since reading it would cost this server more than sending costs the client. */
export function closeAfterResponse({ raw }: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.raw.once('close', () => raw.destroy()).once('finish', () => raw.destroy())
  return reply.header('Connection', 'close')
}

/** Refuses a body that arrives too slowly, and ends its connection. One timer for all: one for each request took 2 % of the time of an OTP. */
export function timeOutSlowBodies(app: App): void {
  /** Requests whose body has not arrived yet. */
  const arriving = new Map<FastifyRequest, { reply: FastifyReply; endsAtMs: number }>()
  const timer = setInterval(refuseOverdue, BODY_CHECK_MS).unref()
  app.addHook('onClose', (_app, done) => {
    clearInterval(timer)
    done()
  })
  app.addHook('preParsing', (request, reply, payload, done) => {
    const { headers } = request
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
      arriving.set(request, { reply, endsAtMs: performance.now() + BODY_TIMEOUT_MS })
    done(null, payload)
  })
  // Once the body is parsed; for streamed uploads at once, so that they are not limited.
  app.addHook('preValidation', (request, _reply, done) => {
    arriving.delete(request)
    done()
  })

  function refuseOverdue(): void {
    const nowMs = performance.now()
    for (const [request, { reply, endsAtMs }] of arriving) {
      const isAnswered = reply.sent // what arrived could not be parsed, so preValidation was skipped
      if (!isAnswered && endsAtMs > nowMs) continue
      arriving.delete(request)
      if (isAnswered) continue
      closeAfterResponse(request, reply).send(
        new Failure('timeout', `The body did not arrive within ${BODY_TIMEOUT_MS / 1000} seconds. Send it again.`),
      )
    }
  }
}
