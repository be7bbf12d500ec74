import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, FAILURES, type RefusalCode } from '../../error-catalogue.ts'
import { Failure, hostFailure, logLevelFor } from '../../errors.ts'
import { pathToRoot } from './path-to-root.ts'
import { validationMessage } from './validation.ts'

// The only place that maps failures to statuses; each interface puts them into its own body.

type ErrorResponse = { status: number; code: ErrorCode; message: string }

/** Turns any error into what a client may see. Bugs are logged once and give no details: no stack, no path, no SQL. */
export function errorResponse(error: unknown, request: FastifyRequest, reply: FastifyReply): ErrorResponse {
  const { code, message } = readError(error, request, reply)
  linkToHelp(`error-${code}`, request, reply)
  return { status: FAILURES[code].status, code, message: message ?? FAILURES[code].sentence }
}

function readError(error: unknown, request: FastifyRequest, reply: FastifyReply): { code: ErrorCode; message?: string } {
  const failure = error instanceof Failure ? error : hostFailure(error)
  if (failure) {
    const retryAfterS = failure.retryAfterS ?? (failure.kind === 'unavailable' ? 5 : undefined)
    if (retryAfterS !== undefined) reply.header('Retry-After', String(retryAfterS))
    if (failure.kind === 'unavailable')
      request.log[logLevelFor(failure, 'warn')]({ reqId: request.id, err: failure }, 'request: refused')
    return { code: failure.kind, message: failure.message }
  }
  if (isFastifyError(error) && error.validation) return { code: 'invalid', message: validationMessage(error) }
  if (isFastifyError(error) && error.statusCode !== undefined && error.statusCode < 500)
    return { code: CODES_OF_FRAMEWORK[error.statusCode] ?? 'invalid' }
  request.log.error({ reqId: request.id, err: error }, 'request: failed')
  return { code: 'internal' }
}

const CODES_OF_FRAMEWORK: Readonly<Record<number, ErrorCode>> = { 413: 'too-large', 415: 'unsupported' }

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && 'statusCode' in error
}

/** No route is deeper. A longer address gets no link: it would be as long as the address. */
const MAX_LINK_DEPTH = 12

/** Names the row of the API reference that explains the error: relative, so that it leads below whatever prefix a proxy has put the installation. */
export function linkToHelp(
  anchor: `error-${ErrorCode}` | `refusal-${RefusalCode}`,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const root = pathToRoot(request.originalUrl)
  if (root.length <= '../'.length * MAX_LINK_DEPTH) reply.header('Link', `<${root}docs/api#${anchor}>; rel="help"`)
}
