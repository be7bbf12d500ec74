import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type IdempotencyDeps, type IdempotentEffect, respondOnce } from '../../idempotency/idempotency.ts'

/** The header of a call that may be retried, for the schema of its route. */
export const IdempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      pattern: '^[!-~]{1,255}$',
      description:
        'Any unique text, such as a UUID. Sent again with the same key within 24 hours, this request has no second effect and gets the same response, with the header Idempotency-Replayed: true',
    }),
  ),
})

/** How an outcome is written into a response (RFC 9110, section 8). */
export type Representation<Outcome> = { type: string; serialize: (outcome: Outcome) => string }

export function jsonRepresentation<Outcome>(toBody: (outcome: Outcome) => object): Representation<Outcome> {
  return { type: 'application/json; charset=utf-8', serialize: (outcome) => JSON.stringify(toBody(outcome)) }
}

/** Runs `effect` and sends its outcome. With an Idempotency-Key it runs once, and retries get the same response. */
export async function sendIdempotent<Outcome>(
  deps: IdempotencyDeps,
  { request, reply, accountId }: { request: FastifyRequest; reply: FastifyReply; accountId: string },
  effect: IdempotentEffect<Outcome>,
  { type, serialize }: Representation<Outcome>,
): Promise<FastifyReply> {
  const idempotencyKey = request.headers['idempotency-key']?.toString()
  if (idempotencyKey === undefined) return sendText(reply, type, serialize(await effect()))
  const call = { accountId, idempotencyKey, requestHash: hashRequest(request) }
  const { text, isReplayed } = await respondOnce(deps, call, effect, serialize)
  if (isReplayed) reply.header('Idempotency-Replayed', 'true')
  return sendText(reply, type, text)
}

function sendText(reply: FastifyReply, type: string, text: string): FastifyReply {
  return reply.type(type).send(text)
}

/** Of everything but the API key, which may be replaced between a call and its retry. */
function hashRequest({ method, routeOptions, params, query, body }: FastifyRequest): Buffer {
  const content = JSON.stringify([method, routeOptions.url, params, query, body], (name, value) =>
    name === 'clientSecretKey' ? undefined : value,
  )
  return createHash('sha256').update(content).digest()
}
