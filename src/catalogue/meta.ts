import { findWatchUrl } from '../accounts/account-store.ts'
import { watchUrlOf } from '../accounts/watch-url.ts'
import type { Db } from '../db/database.ts'
import { videoNotFound } from '../errors.ts'
import { listEnabledPosters, type Poster } from './poster-store.ts'
import { findVideoDetails } from './video-store.ts'

export type MetaDeps = { db: Db }

/** The public data of a video; nothing in it plays the video. */
type PublicMeta = { title: string; durationS: number; aspectRatio: number; posters: Poster[] }

/** What a public page shows of a video besides. `watchUrl`: where it is watched; undefined: its owner has not said. */
export type PublicCard = PublicMeta & { uploadTimeS: number; watchUrl: string | undefined }

const DEFAULT_ASPECT_RATIO = 16 / 9

/** @throws Failure `not-found`, the same for a video that does not exist and for one whose `public` is 0 */
export async function getPublicMeta(deps: MetaDeps, videoId: string): Promise<PublicMeta> {
  const { title, durationS, aspectRatio, posters } = await getPublicVideo(deps, videoId)
  return { title, durationS, aspectRatio, posters }
}

/** @throws Failure as `getPublicMeta` */
export async function getPublicCard(deps: MetaDeps, videoId: string): Promise<PublicCard> {
  const { accountId, ...video } = await getPublicVideo(deps, videoId)
  const watchUrl = await findWatchUrl(deps.db, accountId)
  return { ...video, watchUrl: watchUrl && watchUrlOf(watchUrl, videoId) }
}

async function getPublicVideo({ db }: MetaDeps, videoId: string) {
  const video = await findVideoDetails(db, videoId)
  if (video?.public !== 1) throw videoNotFound()
  const posters = (await listEnabledPosters(db, [videoId])).get(videoId) ?? []
  const { title, accountId, uploadTimeS } = video
  return {
    ...{ title, accountId, uploadTimeS },
    durationS: Math.round(video.durationS * 1000) / 1000,
    aspectRatio: video.aspectRatio ?? DEFAULT_ASPECT_RATIO,
    posters,
  }
}
