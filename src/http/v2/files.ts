import { type Static, Type } from 'typebox'
import { listFiles } from '../../assets/video-file.ts'
import type { ListDeps } from '../../catalogue/catalogue-deps.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { authenticateFromBody, type CallerDeps, getQueryText, NoVideo, sendV2, V2_TYPE, v2Operation } from './response.ts'

export type V2FileDeps = ListDeps & CallerDeps

const FilesQuery = Type.Object({
  video: Type.Optional(Type.String({ description: 'id of the video', examples: [EXAMPLE.videoId] })),
  id: Type.Optional(Type.String({ description: 'the same as video, instead of it' })),
  type: V2_TYPE,
})
const FileEntity = Type.Object({
  id: Type.Integer({ description: 'unique in the installation' }),
  name: Type.String(),
  type: Type.String({ description: 'original, poster, desktop, mobile, audio, caption or mp4' }),
  size: Type.Integer({ description: 'bytes' }),
  width: Type.Integer(),
  height: Type.Integer(),
  downloadable: Type.Boolean(),
})

/** `POST /v2/files?video=ID`, or `?id=ID`: the files of a video, each by exactly these fields. */
export function v2FileRoutes(app: App, deps: V2FileDeps): void {
  app.post(
    '/files',
    v2Operation('viewer', {
      summary: 'Files of a video',
      querystring: FilesQuery,
      response: [Type.Union([Type.Array(FileEntity), NoVideo]), 'The files'],
    }),
    async (request, reply) => {
      const { accountId } = await authenticateFromBody(deps, { request, reply }, 'viewer')
      const videoId = getQueryText(request, ['video', 'id'], 'Name one video in the query: /v2/files?video=ID.')
      const files = (await listFiles(deps, accountId, videoId)).map(
        (file): Static<typeof FileEntity> => ({
          id: file.id,
          name: file.name,
          type: file.type,
          size: file.sizeBytes,
          width: file.widthPx,
          height: file.heightPx,
          downloadable: file.isDownloadable,
        }),
      )
      return sendV2(request, reply, files, { files: { file: files } })
    },
  )
}
