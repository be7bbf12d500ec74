import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Failure, type FailureKind, hostFailure, logLevelFor } from '../../errors.ts'
import { validationMessage } from './validation.ts'

// The only place that maps failures to statuses; each interface puts them into its own body.

const STATUS = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  'over-quota': 403,
  'sign-in-again': 403,
  'not-found': 404,
  'method-not-allowed': 405,
  timeout: 408,
  conflict: 409,
  'too-large': 413,
  unsupported: 415,
  limited: 429,
  unavailable: 503,
} as const satisfies Record<FailureKind, number>

export type ErrorResponse = { status: number; code: string; message: string }

/** Turns any error into what a client may see. Bugs are logged once and give no details: no stack, no path, no SQL. */
export function errorResponse(error: unknown, request: FastifyRequest, reply: FastifyReply): ErrorResponse {
  const failure = error instanceof Failure ? error : hostFailure(error)
  if (failure) {
    const retryAfterS = failure.retryAfterS ?? (failure.kind === 'unavailable' ? 5 : undefined)
    if (retryAfterS !== undefined) reply.header('Retry-After', String(retryAfterS))
    if (failure.kind === 'unavailable')
      request.log[logLevelFor(failure, 'warn')]({ reqId: request.id, err: failure }, 'request: refused')
    return { status: STATUS[failure.kind], code: failure.kind, message: failure.message }
  }
  if (isFastifyError(error) && error.validation) return { status: 400, code: 'invalid', message: validationMessage(error) }
  if (isFastifyError(error) && error.statusCode !== undefined && error.statusCode < 500) return errorOfStatus(error.statusCode)
  request.log.error({ reqId: request.id, err: error }, 'request: failed')
  return {
    status: 500,
    code: 'internal',
    message: 'Something went wrong on this server. Its log has the details under the request id.',
  }
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && 'statusCode' in error
}

function errorOfStatus(status: number): ErrorResponse {
  if (status === 413) return { status, code: 'too-large', message: 'The body is too large.' }
  if (status === 415)
    return {
      status,
      code: 'unsupported',
      message: 'The Content-Type is not supported. Send application/json or a form.',
    }
  return { status: 400, code: 'invalid', message: 'The request is malformed.' }
}
