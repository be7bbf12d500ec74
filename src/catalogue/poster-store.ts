import { sql } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import { hasPublicFile } from './file-store.ts'
import type { GenerationKey } from './generation-key.ts'

export type Poster = { id: number; widthPx: number; heightPx: number; token: string; blob: string; sizeBytes: number }
export type NewPoster = Omit<Poster, 'id'> & { videoId: string; createdAtS: number }

/** Stored in place of an attachment's id for posters that were extracted from the video. */
const EXTRACTED = 'drawn'

export function isExtracted({ attachmentId }: { attachmentId: string | null }): boolean {
  return attachmentId === EXTRACTED
}

/**
 * Adds the posters extracted from a video, or records that there are none. They are enabled unless the video has an enabled poster, or
 * does not play this generation yet.
 * Extracted again, they replace the files of the earlier ones, which keep their addresses; those that were deleted stay deleted.
 * False when this was done before, or the video is deleted or plays a later generation.
 */
export async function insertExtractedPosters(tx: Db, key: GenerationKey, posters: readonly NewPoster[], extractedAtS: number) {
  const video = await tx
    .selectFrom('video')
    .select('generation')
    .where('id', '=', key.videoId)
    .where('generation', '<=', key.generation)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  if (!video || (await isPosterExtractionDone(tx, key))) return false
  await setExtractedAt(tx, key, extractedAtS)
  if (await replaceFiles(tx, key, posters)) return true
  const isHidden =
    video.generation !== key.generation || (await hasPublicFile(tx, { videoId: key.videoId, type: 'poster', language: null }))
  const enabled = isHidden ? 0 : 1
  const rows = posters.map((poster) => ({
    ...poster,
    type: 'poster' as const,
    enabled,
    attachmentId: EXTRACTED,
    generation: key.generation,
  }))
  if (rows.length > 0) await tx.insertInto('file').values(rows).execute()
  return true
}

/** The sweep removes the files that were replaced. False: there are no earlier posters. */
async function replaceFiles(tx: Db, key: GenerationKey, posters: readonly NewPoster[]): Promise<boolean> {
  const earlier = await tx
    .selectFrom('file')
    .select(['id', 'widthPx', 'heightPx'])
    .where(({ and }) => and({ videoId: key.videoId, generation: key.generation, attachmentId: EXTRACTED }))
    .orderBy('id')
    .execute()
  for (const { id, widthPx, heightPx } of earlier) {
    const same = posters.find((poster) => poster.widthPx === widthPx && poster.heightPx === heightPx)
    if (!same) continue
    posters = posters.filter((poster) => poster !== same)
    const { blob, sizeBytes } = same
    await tx.updateTable('file').set({ blob, sizeBytes, damaged: 0 }).where('id', '=', id).execute()
  }
  return earlier.length > 0
}

/** Has the posters of a generation extracted again when its first chunk runs. */
export async function forgetPosterExtraction(tx: Db, key: GenerationKey): Promise<void> {
  await setExtractedAt(tx, key, null)
}

async function setExtractedAt(tx: Db, key: GenerationKey, postersExtractedAtS: number | null): Promise<void> {
  await tx
    .updateTable('generation')
    .set({ postersExtractedAtS })
    .where(({ and }) => and({ videoId: key.videoId, number: key.generation }))
    .execute()
}

/** Enables the posters extracted from this generation when the video has none: those of the previous generation were removed with it. */
export async function publishExtractedPosters(tx: Db, video: GenerationKey): Promise<void> {
  if (await hasPublicFile(tx, { videoId: video.videoId, type: 'poster', language: null })) return
  await tx
    .updateTable('file')
    .set({ enabled: 1 })
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation, attachmentId: EXTRACTED }))
    .execute()
}

/** Of a generation that is kept while another plays. */
export async function hideExtractedPosters(tx: Db, video: GenerationKey): Promise<void> {
  await tx
    .updateTable('file')
    .set({ enabled: 0 })
    .where('videoId', '=', video.videoId)
    .where('generation', '=', video.generation)
    .where('attachmentId', '=', EXTRACTED)
    .where('enabled', '=', 1)
    .execute()
}

/** Whether posters were extracted from a generation, or there was nothing to extract. The video's owner may have deleted them since. */
export async function isPosterExtractionDone(db: Db, video: GenerationKey): Promise<boolean> {
  return hasRow(
    db
      .selectFrom('generation')
      .where(({ and }) => and({ videoId: video.videoId, number: video.generation }))
      .where('postersExtractedAtS', 'is not', null),
  )
}

/** Names of what was made from a generation besides its segments: extracted posters, enabled or not, and the sheets of its storyboard. */
export async function listGenerationBlobs(db: Db, video: GenerationKey): Promise<string[]> {
  const rows = await db
    .selectFrom('file')
    .select('blob')
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation }))
    .execute()
  return rows.flatMap(({ blob }) => blob ?? [])
}

/** The enabled posters of each of the videos, largest first. */
export async function listEnabledPosters(db: Db, videoIds: readonly string[]): Promise<Map<string, Poster[]>> {
  if (videoIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('file')
    .select(['id', 'videoId', 'widthPx', 'heightPx', 'token', 'blob', 'sizeBytes'])
    .where('videoId', 'in', videoIds)
    // Literals, because a partial index cannot be used with bound values.
    .where('type', '=', sql.lit('poster'))
    .where('enabled', '=', sql.lit(1))
    .orderBy('widthPx', 'desc')
    .$narrowType<{ widthPx: number; heightPx: number; token: string; blob: string }>()
    .execute()
  return Map.groupBy(rows, (row) => row.videoId)
}

/** The poster with a token, with its wrapped key and who may see it; undefined when the video is deleted. */
export async function findPosterByToken(db: Db, token: string) {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .leftJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'file.videoId').onRef('generation.number', '=', 'file.generation'),
    )
    .select(['file.videoId', 'file.blob', 'file.generation', 'file.wrappedKey', 'generation.wrappedContentKey'])
    .select(['video.public', 'video.accountId'])
    .where('file.token', '=', token)
    .where('video.deletedAtS', 'is', null)
    .$narrowType<{ blob: string }>()
    .executeTakeFirst()
}
