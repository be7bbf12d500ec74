import type { FastifyReply, FastifyRequest } from 'fastify'
import { FAILURES, type FailureRow, REFUSALS } from '../../error-catalogue.ts'
import { Failure } from '../../errors.ts'
import { PlaybackRefusal } from '../../playback/refusal.ts'
import { errorResponse, linkToHelp } from '../wire/errors.ts'

/** Sends why a viewer is refused (playback-protocol.md, section 9). `not-allowed` has no request id: its bytes are always the same. */
export function sendRefusal(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = error instanceof PlaybackRefusal ? error : asRefusal(error, request, reply)
  const { status: ofCode, sentence: message } = REFUSALS[refusal.code]
  const status = isMethodNotAllowed(error) ? 405 : ofCode
  const { retryAfterS = status === 503 ? 1 : undefined, ...details } = refusal.details
  if (retryAfterS !== undefined) reply.header('Retry-After', String(retryAfterS))
  linkToHelp(`refusal-${refusal.code}`, request, reply)
  const body = { code: refusal.code, message, ...details }
  return reply
    .code(status)
    .header('Cache-Control', 'no-store')
    .type('application/json')
    .send(refusal.code === 'not-allowed' ? body : { ...body, requestId: request.id })
}

/** A bad request for players, who never make one; HTTP has a status of its own for it. */
export function isMethodNotAllowed(error: unknown): boolean {
  return error instanceof Failure && error.kind === 'method-not-allowed'
}

function asRefusal(error: unknown, request: FastifyRequest, reply: FastifyReply): PlaybackRefusal {
  const failure: FailureRow = FAILURES[errorResponse(error, request, reply).code]
  return new PlaybackRefusal(failure.play ?? 'bad-request')
}
