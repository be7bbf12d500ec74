import { type Static, Type } from 'typebox'
import { ROOT_FOLDER_ID } from '../../catalogue/folder.ts'
import { type ImportDeps, type RequestedImport, requestImport } from '../../ingest/import.ts'
import { EXAMPLE } from '../docs/examples.ts'
import type { App } from '../server/app-type.ts'
import { IdempotencyHeaders, type IdempotencyRouteDeps, jsonRepresentation, sendIdempotent } from '../wire/idempotency.ts'
import { authenticateRequest } from './key.ts'

export type ImportRoutesDeps = ImportDeps & IdempotencyRouteDeps

const ImportBody = Type.Object({
  url: Type.String({
    description: 'URL of the video, on the public internet; it may be signed',
    examples: [EXAMPLE.videoUrl],
  }),
  folderId: Type.Optional(Type.String({ description: 'folder of the video; the root if absent' })),
  title: Type.Optional(Type.String({ description: 'if absent, the last part of the URL' })),
  upload_time: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: '^[0-9]{1,12}$' })], {
      description: 'Unix seconds: when the video was added where it comes from; now if absent',
    }),
  ),
})

const ImportReply = Type.Object({
  id: Type.String(),
  status: Type.Literal('Queued'),
  title: Type.String(),
})

/** Imports: videos that this server fetches (wire-contract.md, section 3). */
export function importRoutes(app: App, deps: ImportRoutesDeps): void {
  app.put(
    '/videos/importUrl',
    {
      config: { permission: 'uploader', budget: 'writes' },
      schema: {
        summary: 'Import a video from a URL',
        description: 'An address that is invalid in itself is rejected; other errors make the video fail later, with a reason.',
        body: ImportBody,
        headers: IdempotencyHeaders,
        response: { 200: ImportReply },
      },
    },
    async (request, reply) => {
      const { url, folderId, title, upload_time } = request.body
      const uploadTimeS = upload_time === undefined ? undefined : Number(upload_time)
      const holder = authenticateRequest(request)
      return sendIdempotent(
        deps,
        { request, reply, accountId: holder.accountId },
        (alsoInTransaction) =>
          requestImport(deps, holder, { url, title, uploadTimeS, folderId: folderId || ROOT_FOLDER_ID }, alsoInTransaction),
        jsonRepresentation(
          ({ videoId, title }: RequestedImport): Static<typeof ImportReply> => ({ id: videoId, status: 'Queued', title }),
        ),
      )
    },
  )
}
