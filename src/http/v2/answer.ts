import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Authenticate, type KeyHolder, type Permission, requirePermission } from '../../accounts/api-key.ts'
import { Failure } from '../../errors.ts'
import type { Form } from '../idempotency.ts'
import { countAs, limitHolder } from '../limits.ts'
import { xmlDocument } from '../xml.ts'

/**
 * The account behind the secret in the body; nowhere else, so that keys do not reach access logs.
 * @throws Failure `unauthenticated`, `forbidden`
 */
export async function holderOfBody(
  { authenticate }: { authenticate: Authenticate },
  request: FastifyRequest,
  permission: Permission,
): Promise<KeyHolder> {
  await countAs(request, permission)
  const secret = fieldOf(request.body, 'clientSecretKey')
  if (typeof secret !== 'string')
    throw new Failure('unauthenticated', 'Send the key once, as the field clientSecretKey of the body.')
  const holder = await authenticate(secret)
  await limitHolder(request, holder, permission)
  requirePermission(holder, permission)
  return holder
}

export function fieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? Object.entries(body).find(([field]) => field === name)?.[1] : undefined
}

export const NO_VIDEO = { error: 'No video found' }

/** Sends an answer in the representation that `type` asks for; `xml` is its one root element. */
export function sendV2(request: FastifyRequest, reply: FastifyReply, body: object, xml: object = { result: body }): FastifyReply {
  const { type, textOf } = inV2(request, { bodyOf: () => body, xmlOf: () => xml })
  return reply.type(type).send(textOf(undefined))
}

/** How an outcome is told in the representation that `type` asks for. */
export function inV2<Outcome>(
  { query }: FastifyRequest,
  {
    bodyOf,
    xmlOf = (outcome) => ({ result: bodyOf(outcome) }),
  }: { bodyOf(outcome: Outcome): object; xmlOf?(outcome: Outcome): object },
): Form<Outcome> {
  const wantsXml = fieldOf(query, 'type') === 'xml'
  return wantsXml
    ? { type: 'application/xml', textOf: (outcome) => xmlDocument(xmlOf(outcome)) }
    : { type: 'application/json', textOf: (outcome) => JSON.stringify(bodyOf(outcome)) }
}
