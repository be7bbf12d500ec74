import { type Static, Type } from 'typebox'
import { type DownloadDeps, getStoryboard } from '../../assets/download.ts'
import { toStoryboardWebVtt } from '../../assets/storyboard.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { VideoParams } from './videos.ts'

const StoryboardReply = Type.Object({
  intervalS: Type.Number({
    description: 'seconds from one picture to the next; each shows the beginning of its own',
    examples: [2],
  }),
  count: Type.Integer({ description: 'pictures of the whole video, at most 400; 0 while it has none', examples: [30] }),
  width: Type.Integer({ description: 'of one picture, in pixels', examples: [160] }),
  height: Type.Integer({ examples: [90] }),
  columns: Type.Integer({ description: 'pictures next to each other on a sheet', examples: [10] }),
  rows: Type.Integer({ examples: [3] }),
  sheets: Type.Array(Type.String(), {
    description:
      'addresses of the sheets, WebP, in the order of the video; each needs no key, and is valid for an hour and as long as the key that asked for it',
    examples: [['https://video.example.com/download/…']],
  }),
})
export type StoryboardBody = Static<typeof StoryboardReply>

const FormatQuery = Type.Object({
  format: Type.Optional(Type.Literal('vtt', { description: 'vtt: as WebVTT, for other players' })),
})
const Reply = {
  200: {
    description: 'The storyboard',
    content: { 'application/json': { schema: StoryboardReply }, 'text/vtt': { schema: Type.String() } },
  },
}

/** docs/videos.md, "Storyboard". */
export function storyboardRoutes(app: App, deps: DownloadDeps & { publicUrl(): string }): void {
  app.get(
    '/videos/:id/storyboard',
    {
      config: { permission: 'viewer', described: { response: Reply } },
      schema: {
        summary: 'Storyboard of a video',
        description:
          'Small pictures of the whole video, on at most four sheets. There are none before a video is complete, and of a file with audio only.',
        params: VideoParams,
        querystring: FormatQuery,
      },
    },
    async (request, reply) => {
      const found = await getStoryboard(deps, authenticateRequest(request), request.params.id)
      const { storyboard, durationS, paths } = found ?? NONE
      const sheets = paths.map((path) => `${deps.publicUrl()}/${path}`)
      if (request.query.format === 'vtt')
        return reply
          .type('text/vtt; charset=utf-8')
          .send(toStoryboardWebVtt(storyboard, durationS, (sheet) => sheets[sheet] ?? ''))
      const { intervalS, tileCount: count, widthPx: width, heightPx: height, columns, rows } = storyboard
      return { intervalS, count, width, height, columns, rows, sheets } satisfies StoryboardBody
    },
  )
}

const NONE = {
  storyboard: { intervalS: 0, tileCount: 0, widthPx: 0, heightPx: 0, columns: 0, rows: 0 },
  durationS: 0,
  paths: [],
}
