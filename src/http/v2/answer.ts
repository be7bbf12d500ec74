import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Authenticate, type KeyHolder, type Permission, requirePermission } from '../../accounts/api-key.ts'
import { Failure } from '../../errors.ts'
import { limitHolder } from '../limits.ts'
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
  const wantsXml = fieldOf(request.query, 'type') === 'xml'
  if (!wantsXml) return reply.type('application/json').send(JSON.stringify(body))
  return reply.type('application/xml').send(xmlDocument(xml))
}
