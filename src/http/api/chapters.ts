import { Type } from 'typebox'
import { getChapters, setChapters, toChaptersWebVtt } from '../../assets/chapters.ts'
import type { CatalogueDeps } from '../../catalogue/catalogue-deps.ts'
import { MAX_CHAPTER_TITLE_CHARACTERS, MAX_CHAPTERS } from '../../catalogue/chapters-store.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { ChaptersBody, StoredChaptersBody, toChaptersBody } from '../wire/chapters.ts'
import { EDITOR_OR_UPLOADER, operation } from '../wire/operation.ts'
import { VideoParams } from './videos.ts'

const FormatQuery = Type.Object({
  format: Type.Optional(Type.Literal('vtt', { description: 'vtt: as WebVTT, for other players' })),
})
const Reply = {
  200: {
    description: 'The chapters, in the order of the video; an empty list if there are none',
    content: { 'application/json': { schema: StoredChaptersBody }, 'text/vtt': { schema: Type.String() } },
  },
}

/** docs/videos.md, "Chapters". */
export function chapterRoutes(app: App, deps: CatalogueDeps): void {
  app.get(
    '/videos/:id/chapters',
    {
      config: { permission: 'viewer', described: { response: Reply } },
      schema: { summary: 'Chapters of a video', params: VideoParams, querystring: FormatQuery },
    },
    async (request, reply) => {
      const { durationS, unseen, ...chapters } = await getChapters(
        deps,
        authenticateRequest(request).accountId,
        request.params.id,
      )
      if (request.query.format !== 'vtt') return { ...toChaptersBody(chapters), ...(unseen > 0 && { doesNotFit: unseen }) }
      return reply.type('text/vtt; charset=utf-8').send(toChaptersWebVtt(chapters.chapters, durationS))
    },
  )

  app.put(
    '/videos/:id/chapters',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Set the chapters of a video',
      description: `Replaces all of them; an empty list removes them. At most ${MAX_CHAPTERS}, in any order, each with a time of its own within the video and a title of 1 to ${MAX_CHAPTER_TITLE_CHARACTERS} characters. They may be set before the upload. Replies what is stored.`,
      params: VideoParams,
      body: ChaptersBody,
      response: { 200: ChaptersBody },
    }),
    async (request) =>
      toChaptersBody(await setChapters(deps, { ...changedBy(request), videoId: request.params.id }, request.body)),
  )
}
