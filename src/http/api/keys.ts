import { type Static, Type } from 'typebox'
import {
  type AccountDeps,
  type CreatedKey,
  createOwnApiKey,
  findOwnApiKeys,
  revokeKey,
  rotateKey,
} from '../../accounts/api-key.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime, isoTimeOrNull } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'

const MAX_LIFE_S = 100 * 366 * 24 * 3600
const DEFAULT_OVERLAP_S = 24 * 3600

const PermissionName = Type.Union([
  Type.Literal('viewer'),
  Type.Literal('downloader'),
  Type.Literal('otpCreator'),
  Type.Literal('uploader'),
  Type.Literal('editor'),
])
const Time = (description: string) => Type.Union([Type.String(), Type.Null()], { description: `ISO 8601; ${description}` })

const KeyBody = Type.Object({
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String({ description: 'the first characters of its secret' }),
  permissions: Type.Array(PermissionName),
  createdAt: Type.String({ description: 'ISO 8601' }),
  lastUsedAt: Time('up to a minute late; null: never'),
  expiresAt: Time('null: never'),
  revokedAt: Time('null: it is valid unless it has expired'),
})
const ListReply = Type.Object({ rows: Type.Array(KeyBody) })
export type KeyListBody = Static<typeof ListReply>
const KeyParams = Type.Object({ id: Type.String({ description: 'of the key', examples: [EXAMPLE.keyId] }) })

const CreateBody = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 100, description: 'what it is for', examples: ['The site'] }),
  permissions: Type.Array(PermissionName, { minItems: 1, description: 'none that the caller lacks', examples: [['otpCreator']] }),
  ttl: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_LIFE_S, description: 'seconds until it expires; absent: never' })),
})
const CreateReply = Type.Object({
  id: Type.String(),
  secret: Type.String({ description: '64 of [A-Za-z0-9]; shown only once' }),
  expiresAt: Time('null: never'),
})
export type CreatedKeyBody = Static<typeof CreateReply>
const RotateBody = Type.Union([
  Type.Object({
    overlap: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_LIFE_S,
        description: `seconds for which the old key stays valid; default ${DEFAULT_OVERLAP_S}`,
      }),
    ),
  }),
  Type.Null(),
])
const RotateReply = Type.Interface([CreateReply], {
  oldExpiresAt: Type.String({ description: 'when the old key ends, ISO 8601' }),
})
const RevokeReply = Type.Object({ message: Type.Literal('Revoked') })

/** The API keys of the account. */
export function keyRoutes(app: App, deps: AccountDeps): void {
  app.get(
    '/keys',
    operation('editor', {
      summary: 'List API keys',
      description: 'Without their secrets, the oldest first; those that were revoked, too.',
      response: { 200: ListReply },
    }),
    async (request) => {
      const keys = await findOwnApiKeys(deps, authenticateRequest(request).accountId)
      return {
        rows: keys.map(({ createdAtS, lastUsedAtS, expiresAtS, revokedAtS, ...key }) => ({
          ...key,
          createdAt: isoTime(createdAtS),
          ...{
            lastUsedAt: isoTimeOrNull(lastUsedAtS),
            expiresAt: isoTimeOrNull(expiresAtS),
            revokedAt: isoTimeOrNull(revokedAtS),
          },
        })),
      }
    },
  )

  app.post(
    '/keys',
    operation('editor', {
      summary: 'Create an API key',
      description:
        'The reply is the only one with the secret, also for a request that is repeated. A key cannot give another one a permission that it lacks itself, nor make one that lasts longer than itself.',
      body: CreateBody,
      response: { 200: CreateReply },
    }),
    async (request) => {
      const { name, permissions, ttl: lifeS } = request.body
      return createdKey(await createOwnApiKey(deps, authenticateRequest(request), { name, permissions, lifeS }))
    },
  )

  app.post(
    '/keys/:id/rotate',
    operation('editor', {
      summary: 'Rotate an API key',
      description:
        'Creates a key with the same name, permissions and lifetime, at most that of the key that asks. The old one stays valid for a while.',
      params: KeyParams,
      body: RotateBody,
      response: { 200: RotateReply },
    }),
    async (request) => {
      const { overlap = DEFAULT_OVERLAP_S } = request.body ?? {}
      const rotated = await rotateKey(deps, request.params.id, overlap, authenticateRequest(request))
      return { ...createdKey(rotated), oldExpiresAt: isoTime(rotated.oldExpiresAtS) }
    },
  )

  app.delete(
    '/keys/:id',
    operation('editor', {
      summary: 'Revoke an API key',
      description: 'It is refused from the next request on, and its OTPs that were not redeemed are, too.',
      params: KeyParams,
      response: { 200: RevokeReply },
    }),
    async (request) => {
      await revokeKey(deps, request.params.id, authenticateRequest(request))
      return { message: 'Revoked' as const }
    },
  )
}

function createdKey({ keyId, apiKey, expiresAtS }: CreatedKey) {
  return { id: keyId, secret: apiKey, expiresAt: isoTimeOrNull(expiresAtS) }
}
