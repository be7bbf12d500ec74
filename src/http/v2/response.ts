import type { FastifyContextConfig, FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { Authenticate } from '../../accounts/api-key.ts'
import type { ApiKeyHolder, Permission } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'
import { identify } from '../server/identify.ts'
import type { LimitDeps, LimitedCall } from '../server/limit.ts'
import type { Representation } from '../wire/idempotency.ts'
import { xmlDocument } from '../wire/xml.ts'
import { KEY_FIELD, missingKey } from './key-field.ts'

/** What the operations of this interface need to know who calls. */
export type CallerDeps = LimitDeps & { authenticate: Authenticate }

/**
 * The account behind the secret in the body; nowhere else, so that keys do not reach access logs.
 * @throws Failure `unauthenticated`, `forbidden`
 */
export async function authenticateFromBody(deps: CallerDeps, call: LimitedCall, permission: Permission): Promise<ApiKeyHolder> {
  return identify(deps, call, permission, async () => {
    const secret = getField(call.request.body, KEY_FIELD)
    if (typeof secret !== 'string') throw missingKey()
    return deps.authenticate(secret)
  })
}

export function getField(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? Object.entries(body).find(([field]) => field === name)?.[1] : undefined
}

/**
 * The text that the query gives under the first of these names that it has.
 * @throws Failure `invalid` with the sentence, where it gives none, or a list
 */
export function getQueryText({ query }: FastifyRequest, names: readonly string[], sentence: string): string {
  const [value] = names.map((name) => getField(query, name)).filter((value) => value !== undefined)
  if (typeof value !== 'string' || value === '') throw new Failure('invalid', sentence)
  return value
}

export const NO_VIDEO = { error: 'No video found' }

/** Sends a response in the representation of `type`; `xml` is its root element. */
export function sendV2(request: FastifyRequest, reply: FastifyReply, body: object, xml: object = { result: body }): FastifyReply {
  const { type, serialize } = v2Representation(request, { toBody: () => body, toXml: () => xml })
  return reply.type(type).send(serialize(undefined))
}

/** The representation of `type`: XML for `xml`, case-insensitive; JSON for everything else. */
export function v2Representation<Outcome>(
  { query }: FastifyRequest,
  {
    toBody,
    toXml = (outcome) => ({ result: toBody(outcome) }),
  }: { toBody(outcome: Outcome): object; toXml?(outcome: Outcome): object },
): Representation<Outcome> {
  const wantsXml = String(getField(query, 'type')).toLowerCase() === 'xml'
  return wantsXml
    ? { type: 'application/xml', serialize: (outcome) => xmlDocument(toXml(outcome)) }
    : { type: 'application/json', serialize: (outcome) => JSON.stringify(toBody(outcome)) }
}

/** For the docs: `type` of the query, and an answer in either representation. */
export const V2_TYPE = Type.Optional(
  Type.Union([Type.Literal('json'), Type.Literal('xml')], { description: 'representation of the answer; json if absent' }),
)
export const TypeQuery = Type.Object({ type: V2_TYPE })
/** For the docs: calls for an unknown video also get 200. */
export const NoVideo = Type.Object({ error: Type.Literal(NO_VIDEO.error) }, { description: 'an unknown video' })

type V2Schema = Omit<FastifySchema, 'response'> & { response: [schema: TSchema, description: string] }

/** The options of a route. It reads its request itself, more leniently than a schema says it: what it takes is for the docs alone. */
export function v2Operation(
  needs: Permission | FastifyContextConfig,
  { summary, description, headers, response: [schema, meaning], ...request }: V2Schema,
): { config: FastifyContextConfig; schema: FastifySchema } {
  const asXml = Type.String({ description: 'the same fields as XML elements' })
  const content = { 'application/json': { schema }, 'application/xml': { schema: asXml } }
  const described = { ...request, response: { 200: { description: meaning, content } } }
  const config = typeof needs === 'string' ? { permission: needs } : needs
  return {
    config: { ...config, described },
    schema: { summary, ...(description && { description }), ...(headers !== undefined && { headers }) },
  }
}
