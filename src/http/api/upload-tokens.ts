import { type Static, Type } from 'typebox'
import type { DeletionDeps } from '../../catalogue/deletion.ts'
import { createUploadToken, findUploadTokens, revokeUploadToken, type UploadToken } from '../../ingest/upload-token.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime, isoTimeOrNull } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'
import { PAGED_QUERY, type PagedListDeps, readPagedList } from './paged-list.ts'

const MAX_LIFE_S = 30 * 24 * 3600
const DEFAULT_LIFE_S = 3600
const MAX_FILES = 1000

const CreateBody = Type.Object({
  origin: Type.String({
    maxLength: 300,
    description: 'of the pages that may use it, as browsers write it: scheme, host and port; https, or http at localhost',
    examples: ['https://school.example'],
  }),
  title: Type.Optional(Type.String({ description: 'of each video', examples: ['Homework 3 – Anna'] })),
  titlePattern: Type.Optional(
    Type.String({
      maxLength: 240,
      description: 'instead: a title with one *, in place of which the page fills in a text, else the name of the file',
    }),
  ),
  folderId: Type.Optional(Type.String({ description: 'folder of the videos; the root if absent' })),
  tags: Type.Optional(Type.Array(Type.String(), { description: 'of each video' })),
  maxSizeBytes: Type.Optional(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'of each file; absent: as this server accepts' }),
  ),
  maxFiles: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_FILES, description: 'default 1' })),
  ttl: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_LIFE_S, description: `seconds until it expires; default ${DEFAULT_LIFE_S}` }),
  ),
  videoId: Type.Optional(
    Type.String({ description: 'of a video whose file it replaces, by tus; needs editor, and no title, folder or tags' }),
  ),
  reference: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'what webhooks about its videos say', examples: ['student 4711'] }),
  ),
})
const CreateReply = Type.Object({
  id: Type.String(),
  token: Type.String({ description: 'shown only once' }),
  expiresAt: Type.String({ description: 'ISO 8601' }),
})

const TextOrNull = Type.Union([Type.String(), Type.Null()])
const TokenBody = Type.Object({
  id: Type.String(),
  origin: Type.String(),
  title: TextOrNull,
  titlePattern: TextOrNull,
  folderId: Type.String(),
  tags: Type.Array(Type.String()),
  maxSizeBytes: Type.Union([Type.Integer(), Type.Null()]),
  maxFiles: Type.Integer(),
  files: Type.Integer({ description: 'that were begun with it, without those that were deleted before they had arrived' }),
  reference: TextOrNull,
  videoId: TextOrNull,
  createdAt: Type.String({ description: 'ISO 8601' }),
  expiresAt: Type.String({ description: 'ISO 8601' }),
  revokedAt: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601; null: it is valid until it expires' }),
})
const ListQuery = Type.Object(PAGED_QUERY)
const ListReply = Type.Object({ rows: Type.Array(TokenBody) })
export type UploadTokenListBody = Static<typeof ListReply>

const TokenParams = Type.Object({ tokenId: Type.String({ description: 'of the token', examples: [EXAMPLE.uploadTokenId] }) })
const RevokeReply = Type.Object({ message: Type.Literal('Revoked') })

type TokenRoutesDeps = PagedListDeps & DeletionDeps

/** Upload tokens, with which pages of the owner upload without a key. */
export function uploadTokenRoutes(app: App, deps: TokenRoutesDeps): void {
  app.post(
    '/upload-tokens',
    operation('uploader', {
      summary: 'Create an upload token',
      description:
        'For a page of yours that uploads without a key: at `/api/uploads` as `Authorization: Bearer`, or in the field `token` of the upload form. The reply is the only one with the token. It ends with the key that made it.',
      body: CreateBody,
      response: { 200: CreateReply },
    }),
    async (request): Promise<Static<typeof CreateReply>> => {
      refuseMisspelledNames(Object.keys(request.body), Object.keys(CreateBody.properties))
      const { origin, title, titlePattern, folderId, tags = [], maxSizeBytes, reference, videoId } = request.body
      const { maxFiles = 1, ttl: lifeS = DEFAULT_LIFE_S } = request.body
      const limits = { maxSizeBytes, maxFiles, lifeS }
      const asked = { origin, title, titlePattern, folderId: folderId || undefined, tags, reference, videoId, ...limits }
      const { id, token, expiresAtS } = await createUploadToken(deps, authenticateRequest(request), asked)
      return { id, token, expiresAt: isoTime(expiresAtS) }
    },
  )

  app.get(
    '/upload-tokens',
    operation(
      { permission: 'uploader', budget: 'reads' },
      {
        summary: 'List upload tokens',
        description:
          'Without the tokens themselves, the newest first; those that were revoked or expired within 30 days, too. A person who may only upload sees their own. Follow the `Link` header (`rel="next"`) for more.',
        querystring: ListQuery,
        response: { 200: ListReply },
      },
    ),
    async (request, reply): Promise<UploadTokenListBody> => {
      const caller = authenticateRequest(request)
      const tokens = await readPagedList(deps, request, reply, async (page) =>
        (await findUploadTokens(deps, caller, page)).map((token) => ({ ...token, id: token.position, tokenId: token.id })),
      )
      return { rows: tokens.map(({ tokenId, ...token }) => tokenBody({ ...token, id: tokenId })) }
    },
  )

  app.delete(
    '/upload-tokens/:tokenId',
    operation(
      { permission: 'uploader', budget: 'writes' },
      {
        summary: 'Revoke an upload token',
        description: 'It is refused from the next request on, and what was being sent with it is deleted.',
        params: TokenParams,
        response: { 200: RevokeReply },
      },
    ),
    async (request) => {
      await revokeUploadToken(deps, authenticateRequest(request), request.params.tokenId)
      return { message: 'Revoked' as const }
    },
  )
}

function tokenBody(token: UploadToken): Static<typeof TokenBody> {
  const { id, origin, title, titlePattern, folderId, tags, maxSizeBytes, maxFiles, files, reference, videoId } = token
  return {
    ...{ id, origin, title, titlePattern, folderId, tags: [...tags], maxSizeBytes, maxFiles, files, reference, videoId },
    ...{ createdAt: isoTime(token.createdAtS), expiresAt: isoTime(token.expiresAtS), revokedAt: isoTimeOrNull(token.revokedAtS) },
  }
}
