import type { Db } from '../db/database.ts'
import { videoNotFound } from '../errors.ts'
import { listEnabledPosters, type Poster } from './poster-store.ts'
import { findVideoDetails } from './video-store.ts'

export type MetaDeps = { db: Db }

/** The public data of a video; nothing in it plays the video. */
type PublicMeta = { title: string; durationS: number; aspectRatio: number; posters: Poster[] }

const DEFAULT_ASPECT_RATIO = 16 / 9

/** @throws Failure `not-found`, the same for a video that does not exist and for one whose `public` is 0 */
export async function getPublicMeta({ db }: MetaDeps, videoId: string): Promise<PublicMeta> {
  const video = await findVideoDetails(db, videoId)
  if (video?.public !== 1) throw videoNotFound()
  const posters = (await listEnabledPosters(db, [videoId])).get(videoId) ?? []
  return {
    title: video.title,
    durationS: Math.round(video.durationS * 1000) / 1000,
    aspectRatio: video.aspectRatio ?? DEFAULT_ASPECT_RATIO,
    posters,
  }
}
