import { Type } from 'typebox'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { type ImportDeps, type RequestedImport, requestImport } from '../../ingest/import.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { IdempotencyHeaders, sendIdempotent } from '../wire/idempotency.ts'
import { IMPORTER } from '../wire/operation.ts'
import { authenticateFromBody, type CallerDeps, getQueryText, V2_TYPE, v2Operation, v2Representation } from './response.ts'

export type V2ImportDeps = ImportDeps & IdempotencyDeps & CallerDeps

const ImportQuery = Type.Object({
  url: Type.String({ description: 'address of the video, percent-encoded; it may be signed', examples: [EXAMPLE.videoUrl] }),
  type: V2_TYPE,
})
const ImportReply = Type.Object({ id: Type.String(), name: Type.Literal('Queued') })

/** `POST /v2/importUrl?url=`: one object, for clients index it (wire-contract.md, section 6). */
export function v2ImportRoutes(app: App, deps: V2ImportDeps): void {
  app.post(
    '/importUrl',
    v2Operation(IMPORTER, {
      summary: 'Import a video from a URL',
      headers: IdempotencyHeaders,
      querystring: ImportQuery,
      response: [ImportReply, 'The video that it becomes'],
    }),
    async (request, reply) => {
      const holder = await authenticateFromBody(deps, { request, reply }, 'uploader')
      const url = getQueryText(request, ['url'], 'Give one address in the query, percent-encoded: /v2/importUrl?url=ADDRESS.')
      return sendIdempotent(
        deps,
        { request, reply, accountId: holder.accountId },
        (alsoInTransaction) => requestImport(deps, holder, { url }, alsoInTransaction),
        v2Representation(request, { toBody: ({ videoId }: RequestedImport) => ({ id: videoId, name: 'Queued' }) }),
      )
    },
  )
}
