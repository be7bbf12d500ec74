import { sql } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import { hasPublicFile } from './file-store.ts'
import type { GenerationKey } from './generation-key.ts'

export type Poster = { id: number; widthPx: number; heightPx: number; token: string; blob: string; sizeBytes: number }
/** One size of a poster. */
export type PosterFile = Omit<Poster, 'id' | 'token'>
export type NewPoster = Omit<Poster, 'id'> & { videoId: string; createdAtS: number }

/** Stored in place of an attachment's id for posters that were extracted from the video: `first` until the best candidate is there. */
const EXTRACTED = ['drawn', 'first'] as const

export function isExtracted({ attachmentId }: { attachmentId: string | null }): boolean {
  return EXTRACTED.some((known) => known === attachmentId)
}

/** Of posters that were extracted from the first usable frame, whose place the best candidate will take. */
export function isFirst({ attachmentId }: { attachmentId: string | null }): boolean {
  return attachmentId === 'first'
}

/**
 * Adds the posters extracted from a video, or records that there are none. They are enabled unless the video has an enabled poster, or
 * does not play this generation yet.
 * Extracted again, they replace the files of the earlier ones, which keep their addresses, and the sweep removes what is left of those;
 * those that were deleted stay deleted.
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
  await replaceFiles(tx, key, { posters, attachmentId: 'first' })
  if (await hasRow(selectExtracted(tx, key))) return true
  const isHidden =
    video.generation !== key.generation || (await hasPublicFile(tx, { videoId: key.videoId, type: 'poster', language: null }))
  const enabled = isHidden ? 0 : 1
  const rows = posters.map((poster) => ({
    ...poster,
    type: 'poster' as const,
    enabled,
    attachmentId: 'first',
    generation: key.generation,
  }))
  if (rows.length > 0) await tx.insertInto('file').values(rows).execute()
  return true
}

/**
 * Gives the posters of a generation's first usable frame the files of the best candidate, if nothing else has.
 * @returns the blobs that they had
 */
export async function replaceFirstPosters(tx: Db, key: GenerationKey, posters: readonly PosterFile[]): Promise<string[]> {
  return replaceFiles(tx, key, { posters, attachmentId: 'drawn' })
}

async function replaceFiles(
  tx: Db,
  key: GenerationKey,
  { posters, attachmentId }: { posters: readonly PosterFile[]; attachmentId: (typeof EXTRACTED)[number] },
): Promise<string[]> {
  const pairs = pairBySize(await listFirstPosters(tx, key), posters)
  for (const { row, poster } of pairs) {
    const { blob, sizeBytes } = poster
    await tx.updateTable('file').set({ blob, sizeBytes, damaged: 0, attachmentId }).where('id', '=', row.id).execute()
  }
  return pairs.flatMap(({ row }) => row.blob ?? [])
}

type SizedRow = { id: number; widthPx: number | null; heightPx: number | null; blob: string | null }

/** Two sizes may be the same: each poster is taken once. */
function pairBySize(rows: readonly SizedRow[], posters: readonly PosterFile[]): { row: SizedRow; poster: PosterFile }[] {
  const left = [...posters]
  return rows.flatMap((row) => {
    const at = left.findIndex(({ widthPx, heightPx }) => widthPx === row.widthPx && heightPx === row.heightPx)
    return at < 0 ? [] : left.splice(at, 1).map((poster) => ({ row, poster }))
  })
}

/** The posters of a generation's first usable frame that no better one has replaced. */
export async function listFirstPosters(db: Db, key: GenerationKey): Promise<SizedRow[]> {
  return selectExtracted(db, key)
    .select(['id', 'widthPx', 'heightPx', 'blob'])
    .where('attachmentId', '=', 'first')
    .orderBy('id')
    .execute()
}

function selectExtracted(db: Db, { videoId, generation }: GenerationKey) {
  return db
    .selectFrom('file')
    .where(({ and }) => and({ videoId, generation }))
    .where('attachmentId', 'in', EXTRACTED)
}

/** Has the posters of a generation extracted again when its first chunk runs. */
export async function forgetPosterExtraction(tx: Db, key: GenerationKey): Promise<void> {
  await setExtractedAt(tx, key, null)
  const { videoId, generation } = key
  await tx
    .updateTable('file')
    .set({ attachmentId: 'first' })
    .where(({ and }) => and({ videoId, generation, attachmentId: 'drawn' }))
    .execute()
}

/** A frame that is offered as a poster. `timeS`: when it is shown. */
export type StoredCandidate = { id: number; timeS: number; widthPx: number; heightPx: number }
export type NewCandidate = PosterFile & { timeS: number }

/** The candidates of a generation, the best first. */
export async function listPosterCandidates(db: Db, { videoId, generation }: GenerationKey): Promise<StoredCandidate[]> {
  return db
    .selectFrom('file')
    .select(['id', 'timeS', 'widthPx', 'heightPx'])
    .where(({ and }) => and({ videoId, generation, type: 'poster-candidate' }))
    .orderBy('id')
    .$narrowType<{ timeS: number; widthPx: number; heightPx: number }>()
    .execute()
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
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation }))
    .where('attachmentId', 'in', EXTRACTED)
    .execute()
}

/** Of a generation that is kept while another plays. */
export async function hideExtractedPosters(tx: Db, video: GenerationKey): Promise<void> {
  await tx
    .updateTable('file')
    .set({ enabled: 0 })
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation }))
    .where('attachmentId', 'in', EXTRACTED)
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

/** Names of what was made from a generation besides its segments: extracted posters, enabled or not, their candidates, and its storyboard. */
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
    .select(['file.attachmentId', 'generation.storyboardMadeAtS', 'video.public', 'video.accountId'])
    .where('file.token', '=', token)
    .where('video.deletedAtS', 'is', null)
    .$narrowType<{ blob: string }>()
    .executeTakeFirst()
}
