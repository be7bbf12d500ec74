import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import type { Logger } from 'pino'
import { type ErrorCode, FAILURES } from '../../error-catalogue.ts'
import { Failure } from '../../errors.ts'
import { errorPayload } from '../pages/error-page.ts'
import type { App } from '../wire/app-type.ts'
import { errorResponse } from '../wire/errors.ts'
import { lazySerializer, lazyValidator } from '../wire/schemas.ts'
import { handleInOrder, timeOutSlowBodies } from './connection-limits.ts'
import { limitUnroutedRequest } from './identify.ts'
import type { LimitDeps } from './limit.ts'
import { addMethodNotAllowed } from './method-not-allowed.ts'

/** Largest body of an ordinary call; uploads have their own limit. */
const MAX_BODY_BYTES = 256 * 1024
/** Node refuses longer addresses, so no part of one is too long for its route. */
const MAX_ADDRESS_LENGTH = 16_384

/** A connection without traffic for this long is closed; uploads that continue are not. */
const IDLE_CONNECTION_MS = 300_000

export function createApp(log: Logger, limiting: LimitDeps): App {
  const v2Paths = new Map<string, string>()
  const asKey = (path: string) => path.toLowerCase().replace(/\/$/, '')
  const app = Fastify({
    loggerInstance: withoutListenMessage(log) as FastifyBaseLogger,
    // Requests are not logged: the addresses of playback contain OTPs and session ids.
    logController: new LogController({ disableRequestLogging: true }),
    // Making a logger for each request takes 1 µs. Where something is logged, the request's id is named.
    childLoggerFactory: (logger) => logger,
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: true,
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: false,
    forceCloseConnections: 'idle',
    connectionTimeout: IDLE_CONNECTION_MS,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: MAX_ADDRESS_LENGTH },
    clientErrorHandler: answerMalformedRequest,
    frameworkErrors: (_error, request, reply) => sendUnreadableAddress(limiting, request, reply),
    // Only the paths of v2 are case-insensitive.
    rewriteUrl: ({ url = '/' }) => url.replace(/^\/v2\/[^?]*/i, (path) => v2Paths.get(asKey(path)) ?? path.toLowerCase()),
  }).withTypeProvider<TypeBoxTypeProvider>()
  app.setValidatorCompiler(lazyValidator)
  app.setSerializerCompiler(lazySerializer)
  app.addHook('onRoute', ({ url }) => {
    if (url.startsWith('/v2/')) v2Paths.set(asKey(url), url)
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.header('X-Content-Type-Options', 'nosniff')
    // Caches do not look at keys or bodies: a response that may be kept says so.
    if (!reply.hasHeader('Cache-Control')) reply.header('Cache-Control', 'no-store')
    done(null, errorPayload(request, reply, payload))
  })
  app.decorateRequest('isCounted', false)
  app.decorateRequest('isBanned', false)
  // Interfaces that take bodies have parsers of their own; elsewhere a body is not read.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  addMethodNotAllowed(app)
  handleInOrder(app)
  delayContinue(app)
  timeOutSlowBodies(app)
  // For interfaces without an error format of their own, and for unknown addresses. Fastify's responses would repeat the address, with the OTP in it.
  app.setErrorHandler((error, request, reply) => {
    const { status, code, message } = errorResponse(error, request, reply)
    return reply.code(status).header('Cache-Control', 'no-store').send({ message, code, requestId: request.id })
  })
  app.setNotFoundHandler(async () => {
    throw new Failure('not-found', 'There is no page at this address.')
  })
  return app
}

/** Answers `Expect: 100-continue` after key and limits are checked, so that a refused client does not send its body. */
function delayContinue(app: App): void {
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

/** Fastify logs at level info where it listens, which the first line of a start says already. */
function withoutListenMessage(log: Logger): Logger {
  return log.level === 'info' ? log.child({}, { level: 'warn' }) : log
}

/** For percent signs that cannot be decoded. No interface is known yet, so the body has the error field of each. */
async function sendUnreadableAddress(limiting: LimitDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const failure = new Failure(
    'invalid',
    'The address is malformed: a percent sign in it is not followed by two hexadecimal digits.',
  )
  const refusal = await limitUnroutedRequest(limiting, { request, reply }, failure)
  const { status, code, message } = errorResponse(refusal, request, reply)
  reply
    .code(status)
    .headers({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    .send({ message, error: message, code, requestId: request.id })
}

type MalformedRequest = { code: ErrorCode; status?: number; message?: string }
const MALFORMED_REQUESTS: Readonly<Record<string, MalformedRequest>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'timeout' },
  HPE_HEADER_OVERFLOW: {
    code: 'too-large',
    status: 431,
    message: 'The address and headers are larger than 16 kB, which is some 400 ids. Send more ids in the body.',
  },
}
const MALFORMED: MalformedRequest = { code: 'invalid' }

/** For bytes that are not HTTP. Fastify would log them, with any key in them; nothing is logged here. */
function answerMalformedRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  const {
    code,
    status = FAILURES[code].status,
    message = FAILURES[code].sentence,
  } = MALFORMED_REQUESTS[error.code ?? ''] ?? MALFORMED
  const body = JSON.stringify({ message, error: message, code })
  const headers = [
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${body.length}`,
    'X-Content-Type-Options: nosniff',
    'Cache-Control: no-store',
    'Connection: close',
  ]
  if (socket.writable && error.code !== 'ECONNRESET')
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
  socket.destroy()
}
