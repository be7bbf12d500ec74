import type { ListDeps } from '../catalogue/catalogue-deps.ts'
import { findVideo } from '../catalogue/video-store.ts'
import { findGeneration } from '../encode/generation-store.ts'
import { videoNotFound } from '../errors.ts'
import { type ShownAudioTrack, showAudioTracks } from './shown-audio.ts'

/** The audio tracks of a video as viewers choose them; none before it was examined. @throws Failure `not-found` when the account has no such video */
export async function listAudioTracks(
  { db }: Pick<ListDeps, 'db'>,
  accountId: string,
  videoId: string,
): Promise<ShownAudioTrack[]> {
  const video = await findVideo(db, accountId, videoId)
  if (!video) throw videoNotFound()
  const generation = await findGeneration(db, { videoId, generation: video.generation })
  return generation ? showAudioTracks(generation.plan) : []
}
