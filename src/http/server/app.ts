import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type RawServerDefault,
} from 'fastify'
import type { Logger } from 'pino'
import { Failure } from '../../errors.ts'
import { errorResponse } from '../wire/errors.ts'
import { lazySerializer, lazyValidator } from '../wire/schemas.ts'
import { timeOutSlowBodies } from './connections.ts'
import { addMethodNotAllowed } from './method-not-allowed.ts'
import { type LimitDeps, limitUnroutedRequest } from './rate-limits.ts'

/** Fastify with schemas that type their handlers. */
export type App = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, TypeBoxTypeProvider>

/** Largest body of an ordinary call; uploads have their own limit. */
export const BODY_MAX_BYTES = 256 * 1024
/** Node refuses longer ones: no part of an address is too long for a route, which says what it is not. */
const ADDRESS_MAX_LENGTH = 16_384

const SILENT_CONNECTION_MS = 300_000

export function createApp(log: Logger, limiting: LimitDeps): App {
  const v2Paths = new Map<string, string>()
  const asKey = (path: string) => path.toLowerCase().replace(/\/$/, '')
  const app = Fastify({
    loggerInstance: withoutGreeting(log) as FastifyBaseLogger,
    // Addresses of playback carry OTPs and session ids: calls are not logged one by one.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_MAX_BYTES,
    exposeHeadRoutes: true,
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: false,
    forceCloseConnections: 'idle',
    // A connection on which nothing moves; uploads that go on are never cut.
    connectionTimeout: SILENT_CONNECTION_MS,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: ADDRESS_MAX_LENGTH },
    clientErrorHandler: answerNoHttp,
    frameworkErrors: (_error, request, reply) => sendUnreadableAddress(limiting, request, reply),
    // v2 was always case-insensitive in its paths, the rest never: any spelling leads to the route as it is written.
    rewriteUrl: ({ url = '/' }) => url.replace(/^\/v2\/[^?]*/i, (path) => v2Paths.get(asKey(path)) ?? path.toLowerCase()),
  }).withTypeProvider<TypeBoxTypeProvider>()
  app.setValidatorCompiler(lazyValidator)
  app.setSerializerCompiler(lazySerializer)
  app.addHook('onRoute', ({ url }) => {
    if (url.startsWith('/v2/')) v2Paths.set(asKey(url), url)
  })
  app.addHook('onSend', (_request, reply, _payload, done) => {
    reply.header('X-Content-Type-Options', 'nosniff')
    // Caches in between do not look at keys or bodies: what they may keep says so itself.
    if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', 'no-store')
    done()
  })
  app.decorateRequest('isCounted', false)
  app.decorateRequest('isBanned', false)
  addMethodNotAllowed(app)
  askForBodiesLate(app)
  timeOutSlowBodies(app)
  // For every interface without a form of its own, and for what belongs to none; Fastify's answers would repeat the address, with the OTP in it.
  app.setErrorHandler((error, request, reply) => {
    const { status, code, message } = errorResponse(error, request, reply)
    return reply.code(status).header('Cache-Control', 'no-store').send({ message, code, requestId: request.id })
  })
  app.setNotFoundHandler(async () => {
    throw new Failure('not-found', 'There is nothing at this address.')
  })
  return app
}

/** Who sends `Expect: 100-continue` is told to go on when key and limits have passed, or refused without sending the body. */
function askForBodiesLate(app: App): void {
  const waiting = new WeakSet<IncomingMessage>()
  app.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waiting.add(request)
    app.server.emit('request', request, response)
  })
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (waiting.has(request.raw)) reply.raw.writeContinue()
    done(null, payload)
  })
}

/** Fastify says on its own, at level info, where it listens; the first line of a start has said so. */
function withoutGreeting(log: Logger): Logger {
  return log.level === 'info' ? log.child({}, { level: 'warn' }) : log
}

/** Percent signs that cannot be decoded: refused before any interface knows of it, so the body has the field of each. */
async function sendUnreadableAddress(limiting: LimitDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const unreadable = new Failure(
    'invalid',
    'The address is not well formed: a percent sign in it does not stand for a character.',
  )
  const refusal = await limitUnroutedRequest(limiting, { request, reply }, unreadable)
  const { status, code, message } = errorResponse(refusal, request, reply)
  reply
    .code(status)
    .headers({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    .send({ message, error: message, code, requestId: request.id })
}

const NO_HTTP = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: '408 Request Timeout', message: 'The request did not arrive in time.' },
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    message: 'The address and headers are larger than 16 kB: some 400 ids fit. Send more in the body.',
  },
  other: { status: '400 Bad Request', message: 'The request is not well formed.' },
} as const

/** What Node cannot read as HTTP reaches no route. Fastify would log the bytes with whatever key is in them, so nothing is logged. */
function answerNoHttp(error: NodeJS.ErrnoException, socket: Socket): void {
  const { status, message } = Object.entries(NO_HTTP).find(([code]) => code === error.code)?.[1] ?? NO_HTTP.other
  const body = JSON.stringify({ message, error: message, code: 'invalid' })
  const headers = [
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: no-store',
    'Connection: close',
  ]
  if (socket.writable && error.code !== 'ECONNRESET') socket.write(`HTTP/1.1 ${status}\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
  socket.destroy()
}
