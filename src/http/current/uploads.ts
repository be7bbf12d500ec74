import { type Static, Type } from 'typebox'
import { type IssuedUpload, issueUploadPolicy, type PolicyDeps } from '../../ingest/upload-policy.ts'
import type { App } from '../app.ts'
import { IdempotencyHeaders, type IdempotencyRouteDeps, inJson, sendOnce } from '../idempotency.ts'
import { refuseOtherFolders } from './folder.ts'
import { holderOf } from './key.ts'

export type UploadRoutesDeps = PolicyDeps & IdempotencyRouteDeps & { publicUrl(): string }

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

/** Upload credentials: the signed form for one upload (wire-contract.md, sections 3 and 4). */
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
}
