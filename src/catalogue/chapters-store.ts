import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'

/** Where a part of a video begins. It ends where the next one begins, the last one with the video. */
export type Chapter = { startS: number; title: string }

/** The chapters of a video, in their order, and the language of their titles: BCP 47, in lower case. */
export type Chapters = { language: string | null; chapters: readonly Chapter[] }

const NO_CHAPTERS: Chapters = { language: null, chapters: [] }

const select = prepared<{ videoId: string }>()((db, value) =>
  db.selectFrom('chapters').select(['language', 'list']).where('videoId', '=', value('videoId')),
)

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
