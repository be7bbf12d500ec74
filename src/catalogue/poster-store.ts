import type { Db } from '../db/sqlite.ts'

export type Poster = { id: number; widthPx: number; heightPx: number; token: string; file: string; sizeBytes: number }
export type NewPoster = Omit<Poster, 'id'> & { videoId: string; createdAtS: number }

/** Gives a video its first posters. False: it has some, is deleted, or plays another generation by now. */
export async function insertFirstPosters(
  tx: Db,
  film: { videoId: string; generation: number },
  posters: readonly NewPoster[],
): Promise<boolean> {
  const video = await tx
    .selectFrom('video')
    .select('id')
    .where('id', '=', film.videoId)
    .where('generation', '=', film.generation)
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  if (!video || (await postersOf(tx, [film.videoId])).size > 0) return false
  if (posters.length > 0)
    await tx
      .insertInto('poster')
      .values([...posters])
      .execute()
  return true
}

/** The posters of each of the videos, largest first. */
export async function postersOf(db: Db, videoIds: readonly string[]): Promise<Map<string, Poster[]>> {
  if (videoIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('poster')
    .select(['id', 'videoId', 'widthPx', 'heightPx', 'token', 'file', 'sizeBytes'])
    .where('videoId', 'in', videoIds)
    .orderBy('widthPx', 'desc')
    .execute()
  return Map.groupBy(rows, (row) => row.videoId)
}

/** The poster an address names, with the video whose key opens it; undefined when the video is deleted or keeps its posters to itself. */
export async function findPublicPoster(db: Db, token: string) {
  return db
    .selectFrom('poster')
    .innerJoin('video', 'video.id', 'poster.videoId')
    .innerJoin('generation', (join) =>
      join.onRef('generation.videoId', '=', 'video.id').onRef('generation.number', '=', 'video.generation'),
    )
    .select(['poster.videoId', 'poster.file', 'generation.number as generation', 'generation.wrappedContentKey'])
    .where('poster.token', '=', token)
    .where('video.public', '=', 1)
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
}

/** The name of a poster's blob: its video, then its token. */
export const POSTER_BLOB = /^([0-9a-f]{32})\/[\w-]{22}\.sealed$/

/** Which of these blobs are posters. */
export async function findNamedPosters(db: Db, blobs: readonly string[]): Promise<Set<string>> {
  const videoIds = new Set(blobs.map((blob) => POSTER_BLOB.exec(blob)?.[1] ?? ''))
  const posters = await postersOf(db, [...videoIds])
  return new Set([...posters.values()].flat().map(({ file }) => file))
}
