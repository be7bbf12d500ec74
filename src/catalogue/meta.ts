import type { Db } from '../db/database.ts'
import { videoNotFound } from '../errors.ts'
import { listPosters, type Poster } from './poster-store.ts'
import { findPublicVideo } from './video-store.ts'

export type MetaDeps = { db: Db }

/** What everybody may know of a video: nothing of it plays. */
export type Meta = { title: string; durationS: number; aspectRatio: number; posters: Poster[] }

const USUAL_ASPECT_RATIO = 16 / 9

/** @throws Failure `not-found`, the same for a video that does not exist and for one whose `public` is 0 */
export async function getPublicMeta({ db }: MetaDeps, videoId: string): Promise<Meta> {
  const video = await findPublicVideo(db, videoId)
  if (video?.public !== 1) throw videoNotFound()
  const posters = (await listPosters(db, [videoId])).get(videoId) ?? []
  return {
    title: video.title,
    durationS: Math.round(video.durationS * 1000) / 1000,
    aspectRatio: video.aspectRatio ?? USUAL_ASPECT_RATIO,
    posters,
  }
}
