import type { Db } from '../db/sqlite.ts'

export type Poster = { id: number; widthPx: number; heightPx: number; token: string; file: string; sizeBytes: number }
export type NewPoster = Omit<Poster, 'id'> & { videoId: string; createdAtS: number }

export async function insertPosters(tx: Db, posters: readonly NewPoster[]): Promise<void> {
  if (posters.length > 0)
    await tx
      .insertInto('poster')
      .values([...posters])
      .execute()
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
