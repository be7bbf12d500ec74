import type { Authenticate } from '../../accounts/api-key.ts'
import type { CatalogueDeps } from '../../catalogue/video.ts'
import { Failure } from '../../errors.ts'
import { findFiles } from '../../files/file.ts'
import type { App } from '../app.ts'
import { fieldOf, holderOfBody, sendV2 } from './answer.ts'

export type V2FileDeps = Pick<CatalogueDeps, 'db'> & { authenticate: Authenticate }

/** `POST /v2/files?video=ID`, or `?id=ID`: the files of a video, each by exactly these fields. */
export function v2FileRoutes(app: App, deps: V2FileDeps): void {
  app.post('/files', { config: { permission: 'viewer' } }, async (request, reply) => {
    const { accountId } = await holderOfBody(deps, request, 'viewer')
    const videoId = fieldOf(request.query, 'video') ?? fieldOf(request.query, 'id')
    if (typeof videoId !== 'string' || videoId === '')
      throw new Failure('invalid', 'Name one video in the query: /v2/files?video=ID.')
    const files = (await findFiles(deps, accountId, videoId)).map((file) => ({
      id: file.id,
      name: file.name,
      type: file.type,
      size: file.sizeBytes,
      width: file.widthPx,
      height: file.heightPx,
      downloadable: file.isDownloadable,
    }))
    return sendV2(request, reply, files, { files: { file: files } })
  })
}
