import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'

/** Where a part of a video begins. It ends where the next one begins, the last one with the video. */
export type Chapter = { startS: number; title: string }

export const MAX_CHAPTERS = 300
export const MAX_CHAPTER_TITLE_CHARACTERS = 200

/** The chapters of a video, in their order and on its time line, and the language of their titles: BCP 47, in lower case. */
export type Chapters = { language: string | null; chapters: readonly Chapter[] }

const NO_CHAPTERS: Chapters = { language: null, chapters: [] }

const select = prepared<{ videoId: string }>()((db, value) =>
  db.selectFrom('chapters').select(['language', 'list']).where('videoId', '=', value('videoId')),
)

/** Where a video begins on the time line that no trim moves, and how long it is; 0: not known yet. */
export type PlayedPart = { timelineStartS: number; durationS: number }

/** A whole number, the same in both directions: what is read and stored again does not move. */
export function timelineStartMs({ timelineStartS }: Pick<PlayedPart, 'timelineStartS'>): number {
  return Math.round(timelineStartS * 1000)
}

/** Chapters as the video plays them now: without those that are over before it begins, and those behind its end. Pure. */
export function toPlayedChapters(chapters: readonly Chapter[], part: PlayedPart): Chapter[] {
  const startMs = timelineStartMs(part)
  const endS = part.durationS || Number.POSITIVE_INFINITY
  return chapters
    .map(({ startS, title }) => ({ startS: (Math.round(startS * 1000) - startMs) / 1000, title }))
    .filter(({ startS }, index, all) => startS < endS && (startS >= 0 || (all[index + 1]?.startS ?? endS) > 0))
    .map(({ startS, title }) => ({ startS: Math.max(0, startS), title }))
}

/** Of a video that exists. */
export async function findChapters(db: Db, videoId: string): Promise<Chapters> {
  const [row] = (await select(db, { videoId })).rows
  return row ? { language: row.language, chapters: JSON.parse(row.list) } : NO_CHAPTERS
}

/** Replaces the chapters of a video; without any it has none. */
export async function saveChapters(tx: Db, videoId: string, { language, chapters }: Chapters): Promise<void> {
  await tx.deleteFrom('chapters').where('videoId', '=', videoId).execute()
  if (chapters.length === 0) return
  await tx
    .insertInto('chapters')
    .values({ videoId, language, list: JSON.stringify(chapters) })
    .execute()
}
