import { Type } from 'typebox'
import { Failure } from '../../errors.ts'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { type IssuedUpload, issueUploadPolicy, type PolicyDeps } from '../../ingest/upload-policy.ts'
import { POLICY_FIELDS } from '../upload/policy-fields.ts'
import type { App } from '../wire/app-type.ts'
import { IdempotencyHeaders, sendIdempotent } from '../wire/idempotency.ts'
import { authenticateFromBody, type CallerDeps, getField, TypeQuery, v2Operation, v2Representation } from './response.ts'

export type V2UploadDeps = PolicyDeps & IdempotencyDeps & CallerDeps & { publicUrl(): string }

const TitleForm = Type.Object({ title: Type.String({ description: '1 to 500 characters', examples: ['Lesson 12'] }) })
const Policy = Type.Object({
  ...POLICY_FIELDS,
  video_id: Type.String(),
  upload_link: Type.String({ description: 'URL that receives the form' }),
  upload_link_secure: Type.String({ description: 'the same' }),
})

/** `POST /v2/uploadPolicy`: the form of one upload and where it goes (wire-contract.md, sections 4 and 6). */
export function v2UploadRoutes(app: App, deps: V2UploadDeps): void {
  app.post(
    '/uploadPolicy',
    v2Operation('uploader', {
      summary: 'Upload policy',
      headers: IdempotencyHeaders,
      querystring: TypeQuery,
      body: TitleForm,
      response: [Policy, 'The fields of the form, which uploads one video within 24 hours'],
    }),
    async (request, reply) => {
      const holder = await authenticateFromBody(deps, { request, reply }, 'uploader')
      const title = getField(request.body, 'title') ?? getField(request.query, 'title')
      if (typeof title !== 'string') throw new Failure('invalid', 'The title is missing. Send one title in the body.')
      return sendIdempotent(
        deps,
        { request, reply, accountId: holder.accountId },
        (alsoInTransaction) => issueUploadPolicy(deps, holder, { title }, alsoInTransaction),
        v2Representation(request, { toBody: toBody }),
      )
    },
  )

  // Both have the same address, so that no client is led away from TLS.
  function toBody({ videoId, form }: IssuedUpload) {
    const link = `${deps.publicUrl()}/upload`
    return { ...form, video_id: videoId, upload_link: link, upload_link_secure: link }
  }
}
