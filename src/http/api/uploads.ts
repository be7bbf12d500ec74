import { type Static, Type } from 'typebox'
import { ROOT_FOLDER_ID } from '../../catalogue/folder.ts'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { type IssuedUpload, issueUploadPolicy, type PolicyDeps } from '../../ingest/upload-policy.ts'
import { authenticateRequest } from '../server/caller.ts'
import { POLICY_FIELDS } from '../upload/policy-fields.ts'
import type { App } from '../wire/app-type.ts'
import { IdempotencyHeaders, jsonRepresentation, sendIdempotent } from '../wire/idempotency.ts'
import { operation } from '../wire/operation.ts'
import { ExternalId, METADATA_PARAMETER, MetadataParameter, readMetadataParameters } from '../wire/own-fields.ts'

type UploadRoutesDeps = PolicyDeps & IdempotencyDeps & { publicUrl(): string }

const UploadQuery = Type.Object({
  title: Type.String({ description: '1 to 500 characters', examples: ['Lesson 12 – Light'] }),
  folderId: Type.Optional(Type.String({ description: 'folder of the video; the root if absent' })),
  externalId: Type.Optional(ExternalId),
  [METADATA_PARAMETER]: MetadataParameter,
})

export const UploadReply = Type.Object({
  clientPayload: Type.Object({
    ...POLICY_FIELDS,
    uploadLink: Type.String(),
  }),
  videoId: Type.String(),
})

/** Upload credentials: the signed form for one upload (wire-contract.md, sections 3 and 4). */
export function uploadRoutes(app: App, deps: UploadRoutesDeps): void {
  app.put(
    '/videos',
    operation('uploader', {
      summary: 'Upload credentials',
      description:
        'Returns the fields of an upload form, valid for 24 hours, and the id of the new video, which is in the list immediately.',
      querystring: UploadQuery,
      headers: IdempotencyHeaders,
      response: { 200: UploadReply },
    }),
    async (request, reply) => {
      const { title, folderId, externalId } = request.query
      const metadata = readMetadataParameters(request.query)
      const holder = authenticateRequest(request)
      return sendIdempotent(
        deps,
        { request, reply, accountId: holder.accountId },
        (alsoInTransaction) =>
          issueUploadPolicy(
            deps,
            holder,
            { title, folderId: folderId || ROOT_FOLDER_ID, externalId, metadata },
            alsoInTransaction,
          ),
        jsonRepresentation((issued: IssuedUpload) => uploadReply(issued, deps.publicUrl())),
      )
    },
  )
}

export function uploadReply({ videoId, form }: IssuedUpload, publicUrl: string): Static<typeof UploadReply> {
  return { clientPayload: { ...form, uploadLink: `${publicUrl}/upload` }, videoId }
}
