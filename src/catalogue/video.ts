import type { Db } from '../db/sqlite.ts'
import type { VideoRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { type Poster, postersOf } from './poster-store.ts'
import { countVideos, findVideo, listVideos } from './video-store.ts'

export type CatalogueDeps = { db: Db; write: Write; nowS: () => number }

/** A video as its owner sees it. */
export type Video = VideoRow & { posters: Poster[] }

/** Videos newest first, and how many there are in all. `page` counts from 1. */
export async function findVideos({ db }: Pick<CatalogueDeps, 'db'>, accountId: string, at: { page: number; limit: number }) {
  const rows = await listVideos(db, accountId, { limit: at.limit, offset: (at.page - 1) * at.limit })
  const posters = await postersOf(
    db,
    rows.map((row) => row.id),
  )
  return { count: await countVideos(db, accountId), videos: rows.map((row) => ({ ...row, posters: posters.get(row.id) ?? [] })) }
}

/** @throws Failure `not-found`, the same for an id that does not exist and for another account's */
export async function getVideo({ db }: Pick<CatalogueDeps, 'db'>, accountId: string, videoId: string): Promise<Video> {
  const row = await findVideo(db, accountId, videoId)
  if (!row) throw new Failure('not-found', 'Video not found')
  const posters = await postersOf(db, [videoId])
  return { ...row, posters: posters.get(videoId) ?? [] }
}
