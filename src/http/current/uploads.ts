import { type Static, Type } from 'typebox'
import { ROOT } from '../../catalogue/folder.ts'
import { type ImportDeps, type RequestedImport, requestImport } from '../../ingest/import.ts'
import { type IssuedUpload, issueUploadPolicy } from '../../ingest/upload-policy.ts'
import type { App } from '../app.ts'
import { EXAMPLE } from '../examples.ts'
import { IdempotencyHeaders, type IdempotencyRouteDeps, inJson, sendOnce } from '../idempotency.ts'
import { holderOf } from './key.ts'

export type UploadRoutesDeps = ImportDeps & IdempotencyRouteDeps & { publicUrl(): string }

const UploadQuery = Type.Object({
  title: Type.String({ description: '1 to 500 characters', examples: ['Lesson 12 – Light'] }),
  folderId: Type.Optional(Type.String({ description: 'where the video goes; the root if absent' })),
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
  url: Type.String({ description: 'address of the film, on the public internet; it may be signed', examples: [EXAMPLE.filmUrl] }),
  folderId: Type.Optional(Type.String({ description: 'where the video goes; the root if absent' })),
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
      schema: {
        summary: 'Upload credentials',
        description: 'The form to send the film with, valid for 24 hours, and the video that it becomes, which lists at once.',
        querystring: UploadQuery,
        headers: IdempotencyHeaders,
        response: { 200: UploadReply },
      },
    },
    async (request, reply) => {
      const { title, folderId } = request.query
      const holder = holderOf(request)
      return sendOnce(
        deps,
        { request, reply, accountId: holder.accountId },
        (alongside) => issueUploadPolicy(deps, holder, { title, folderId: folderId || ROOT }, alongside),
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
    {
      config: { permission: 'uploader' },
      schema: {
        summary: 'Import a film from an address',
        description: 'What can be seen of the address alone is refused; all else fails later, with a reason.',
        body: ImportBody,
        headers: IdempotencyHeaders,
        response: { 200: ImportReply },
      },
    },
    async (request, reply) => {
      const { url, folderId, title } = request.body
      const holder = holderOf(request)
      return sendOnce(
        deps,
        { request, reply, accountId: holder.accountId },
        (alongside) => requestImport(deps, holder, { url, title, folderId: folderId || ROOT }, alongside),
        inJson(({ videoId, title }: RequestedImport): Static<typeof ImportReply> => ({ id: videoId, status: 'Queued', title })),
      )
    },
  )
}
