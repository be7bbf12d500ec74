import { type Static, Type } from 'typebox'
import type { Chapters } from '../../catalogue/chapters-store.ts'

const ChapterBody = Type.Object({
  startS: Type.Number({ description: 'seconds from the start of the video', examples: [0] }),
  title: Type.String({ examples: ['Introduction'] }),
})

/** Chapters as owners send them and players get them. */
export const ChaptersBody = Type.Object({
  language: Type.Optional(Type.String({ description: 'of the titles, such as en or pt-BR', examples: ['en'] })),
  chapters: Type.Array(ChapterBody, {
    description: 'each ends where the next one begins, the last one with the video',
    examples: [[{ startS: 0, title: 'Introduction' }]],
  }),
})
export type ChaptersBody = Static<typeof ChaptersBody>

/** Chapters as owners get them. */
export const StoredChaptersBody = Type.Object({
  ...ChaptersBody.properties,
  doesNotFit: Type.Optional(
    Type.Integer({
      description:
        'how many further chapters are before or behind what the video plays now, and are not shown: setting chapters removes them. Absent: none',
    }),
  ),
})
export type StoredChaptersBody = Static<typeof StoredChaptersBody>

export function toChaptersBody({ language, chapters }: Chapters): ChaptersBody {
  return { ...(language !== null && { language }), chapters: [...chapters] }
}
