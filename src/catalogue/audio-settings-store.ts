import type { Db } from '../db/database.ts'

/** What an owner has set of an audio track of a file; the rest is as the file has it. `id`: of its rendition. */
export type AudioSettings = { id: number; name?: string; language?: string; isDefault?: boolean }

type SourceKey = { videoId: string; sourceNumber: number }

/** Of one file of a video: those of another that replaces it are its own, a trim and another encoding keep them. */
export async function findAudioSettings(db: Db, { videoId, sourceNumber }: SourceKey): Promise<AudioSettings[]> {
  const row = await db
    .selectFrom('audioSettings')
    .select('list')
    .where(({ and }) => and({ videoId, sourceNumber }))
    .executeTakeFirst()
  return row ? JSON.parse(row.list) : []
}

/** Replaces those of a file; without any, all is as the file has it. */
export async function saveAudioSettings(
  tx: Db,
  { videoId, sourceNumber }: SourceKey,
  settings: readonly AudioSettings[],
): Promise<void> {
  await tx.deleteFrom('audioSettings').where('videoId', '=', videoId).where('sourceNumber', '=', sourceNumber).execute()
  if (settings.length === 0) return
  await tx
    .insertInto('audioSettings')
    .values({ videoId, sourceNumber, list: JSON.stringify(settings) })
    .execute()
}
