import type { Authenticate } from '../../accounts/api-key.ts'
import { Failure } from '../../errors.ts'
import { type ImportDeps, requestImport } from '../../ingest/import.ts'
import type { App } from '../app.ts'
import { fieldOf, holderOfBody, sendV2 } from './answer.ts'

export type V2ImportDeps = ImportDeps & { authenticate: Authenticate }

/** `POST /v2/importUrl?url=`: one object, for clients index it (wire-contract.md, section 6). */
export function v2ImportRoutes(app: App, deps: V2ImportDeps): void {
  app.post('/importurl', { config: { permission: 'uploader' } }, async (request, reply) => {
    const holder = await holderOfBody(deps, request, 'uploader')
    const url = fieldOf(request.query, 'url')
    if (typeof url !== 'string' || url === '')
      throw new Failure('invalid', 'Give one address in the query, percent-encoded: /v2/importUrl?url=ADDRESS.')
    const { videoId } = await requestImport(deps, holder, { url })
    return sendV2(request, reply, { id: videoId, name: 'Queued' })
  })
}
