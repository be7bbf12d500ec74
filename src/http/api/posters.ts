import { type Static, Type } from 'typebox'
import { type DownloadDeps, getPosterCandidates } from '../../assets/download.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { operation } from '../wire/operation.ts'
import { VideoParams } from './videos.ts'

const CandidatesReply = Type.Object({
  candidates: Type.Array(
    Type.Object({
      time: Type.Number({ description: 'seconds from the start of the video', examples: [12.4] }),
      width: Type.Integer({ examples: [427] }),
      height: Type.Integer({ examples: [240] }),
      url: Type.String({
        description: 'of its picture, JPEG: needs no key, and is valid for an hour and as long as the key that asked for it',
        examples: ['https://video.example.com/download/…'],
      }),
    }),
    { description: 'the best first; none before a video is complete, and of a file with audio only', maxItems: 3 },
  ),
})
export type PosterCandidatesBody = Static<typeof CandidatesReply>

/** docs/videos.md, "Posters". */
export function posterRoutes(app: App, deps: DownloadDeps & { publicUrl(): string }): void {
  app.get(
    '/videos/:id/poster-candidates',
    operation('viewer', {
      summary: 'Frames to choose a poster from',
      description:
        'At most three frames that are sharp and well lit. `POST /api/videos/{id}/files` with `{"type":"poster","time":…}` makes one of them the poster.',
      params: VideoParams,
      response: { 200: CandidatesReply },
    }),
    async (request) => {
      const found = await getPosterCandidates(deps, authenticateRequest(request), request.params.id)
      const candidates = found.map(({ timeS, widthPx, heightPx, path }) => ({
        time: timeS,
        width: widthPx,
        height: heightPx,
        url: `${deps.publicUrl()}/${path}`,
      }))
      return { candidates }
    },
  )
}
