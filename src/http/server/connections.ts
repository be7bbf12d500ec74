import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Failure } from '../../errors.ts'
import { ipRateLimitKey } from '../../net/ip.ts'
import type { App } from './app.ts'
import { peerOf } from './client-address.ts'

// What a connection may take of the server before anything is known of who asks.

/** Connections of one address at once: enough for a school behind it, and what it leaves open leaves room for all others (U18). */
const MOST_PER_ADDRESS = 4_096
/** A body that is read whole before its route: nobody sends 256 KiB so slowly but to hold on (U17). Files are streams, and take their time. */
const BODY_MS = 30_000

const TOO_MANY = 'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

/** Refuses the connections of an address that has too many. A trusted proxy brings those of many people, and bounds them itself. */
export function limitConnections(app: App, isProxy: (address: string) => boolean): void {
  const open = new Map<string, number>()
  app.server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    if (isProxy(peer)) return
    const subject = ipRateLimitKey(peer)
    const count = open.get(subject) ?? 0
    if (count >= MOST_PER_ADDRESS) return void socket.end(TOO_MANY, () => socket.destroy())
    open.set(subject, count + 1)
    socket.once('close', () => {
      const left = (open.get(subject) ?? 0) - 1
      if (left > 0) open.set(subject, left)
      else open.delete(subject)
    })
  })
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends the connection when the body has not come by then. */
    bodyDeadline: NodeJS.Timeout | undefined
  }
}

/** Ends the connection once the answer has gone out: the rest of the body is not read, for reading costs more than its sender pays. */
export function closeUnreadRequests({ raw }: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.raw.once('close', () => raw.destroy()).once('finish', () => raw.destroy())
  return reply.header('Connection', 'close')
}

/** Refuses a body that comes too slowly, and ends its connection. */
export function timeOutSlowBodies(app: App): void {
  app.decorateRequest('bodyDeadline', undefined)
  app.addHook('preParsing', (request, reply, payload, done) => {
    const { headers } = request
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
      request.bodyDeadline = setTimeout(() => refuse(reply), BODY_MS).unref()
    done(null, payload)

    function refuse(to: FastifyReply): void {
      closeUnreadRequests(request, to).send(
        new Failure('timeout', `The body did not come within ${BODY_MS / 1000} seconds. Send it again.`),
      )
    }
  })
  app.addHook('preValidation', (request, _reply, done) => {
    clearTimeout(request.bodyDeadline)
    done()
  })
}
