import { type Static, Type } from 'typebox'
import { type ImportDeps, requestImport } from '../../ingest/import.ts'
import { type IssuedUpload, issueUploadPolicy } from '../../ingest/upload-policy.ts'
import type { App } from '../app.ts'
import { IdempotencyHeaders, type IdempotencyRouteDeps, inJson, sendOnce } from '../idempotency.ts'
import { refuseOtherFolders } from './folder.ts'
import { holderOf } from './key.ts'

export type UploadRoutesDeps = ImportDeps & IdempotencyRouteDeps & { publicUrl(): string }

const UploadQuery = Type.Object({
  title: Type.String(),
  folderId: Type.Optional(Type.String({ maxLength: 64 })),
})

const UploadReply = Type.Object({
  clientPayload: Type.Object({
    policy: Type.String(),
    key: Type.String(),
    'x-amz-signature': Type.String(),
    'x-amz-algorithm': Type.String(),
    'x-amz-date': Type.String(),
    'x-amz-credential': Type.String(),
    uploadLink: Type.String(),
  }),
  videoId: Type.String(),
})

const ImportBody = Type.Object({
  url: Type.String({ description: 'address of the film, on the public internet; it may be signed' }),
  folderId: Type.Optional(Type.String({ maxLength: 64 })),
  title: Type.Optional(Type.String({ description: 'the last part of the address, if absent' })),
})

const ImportReply = Type.Object({
  id: Type.String(),
  status: Type.Literal('Queued'),
  title: Type.String(),
})

/** Upload credentials, the signed form for one upload, and imports (wire-contract.md, sections 3 and 4). */
export function uploadRoutes(app: App, deps: UploadRoutesDeps): void {
  app.put(
    '/videos',
    {
      config: { permission: 'uploader' },
      schema: { querystring: UploadQuery, headers: IdempotencyHeaders, response: { 200: UploadReply } },
    },
    async (request, reply) => {
      const { title, folderId } = request.query
      refuseOtherFolders(folderId)
      const holder = holderOf(request)
      return sendOnce(
        deps,
        { request, reply, accountId: holder.accountId },
        (alongside) => issueUploadPolicy(deps, holder, title, alongside),
        inJson(
          ({ videoId, form }: IssuedUpload): Static<typeof UploadReply> => ({
            clientPayload: { ...form, uploadLink: `${deps.publicUrl()}/upload` },
            videoId,
          }),
        ),
      )
    },
  )

  app.put(
    '/videos/importUrl',
    { config: { permission: 'uploader' }, schema: { body: ImportBody, response: { 200: ImportReply } } },
    async (request) => {
      const { url, folderId, title } = request.body
      refuseOtherFolders(folderId)
      const imported = await requestImport(deps, holderOf(request), { url, title })
      return { id: imported.videoId, status: 'Queued' as const, title: imported.title }
    },
  )
}
