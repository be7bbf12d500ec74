import { findPlayerSentences, type PlayerSentences } from '../accounts/player-sentences.ts'
import { type Chapters, findChapters, toPlayedChapters } from '../catalogue/chapters-store.ts'
import { listEnabledPosters } from '../catalogue/poster-store.ts'
import { findVideoDetails } from '../catalogue/video-store.ts'
import { fillForSession, type ImageWatermark, type TextWatermark, type Watermark } from '../watermark/watermark.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import { PlaybackRefusal } from './refusal.ts'
import type { LiveSession } from './sessions/live-session.ts'

/** What the player shows besides the stream. If the video is not public, its poster is a file of the session. */
type VideoView = {
  title: string
  durationS: number
  aspectRatio: number
  poster: { token: string; isPublic: boolean } | undefined
  hasStoryboard: boolean
  chapters: Chapters
  watermarks: ShownWatermark[]
  sentences: PlayerSentences
}
/** An image watermark carries its PNG instead of the URL that it was fetched from. */
export type ShownWatermark = TextWatermark | (Omit<ImageWatermark, 'url'> & { png: Buffer })

/** @throws PlaybackRefusal `video-gone` */
export async function loadVideoView(deps: PlaybackDeps, session: LiveSession): Promise<VideoView> {
  const { row } = session
  const playable = await deps.videos.get(row.videoId, row.generation)
  const video = await findVideoDetails(deps.db, row.videoId)
  if (!playable || !video) throw new PlaybackRefusal('video-gone')
  const [poster] = (await listEnabledPosters(deps.db, [row.videoId])).get(row.videoId) ?? []
  const { timelineStartS, plan } = playable
  const { durationS } = plan
  const { language, chapters } = await findChapters(deps.db, row.videoId)
  return {
    title: video.title,
    durationS,
    aspectRatio: playable.plan.videoTrack?.aspectRatio ?? 16 / 9,
    poster: poster && { token: poster.token, isPublic: video.public === 1 },
    hasStoryboard: await deps.storyboards.has(row),
    chapters: { language, chapters: toPlayedChapters(chapters, { timelineStartS, durationS }) },
    watermarks: await loadWatermarks(deps, session),
    sentences: await findPlayerSentences(deps.db, row.accountId),
  }
}

/** A watermark whose image is unavailable is left out: an image host that is down must not stop an owner's videos. */
async function loadWatermarks(deps: PlaybackDeps, { row, address }: LiveSession): Promise<ShownWatermark[]> {
  const watermarks: Watermark[] = JSON.parse(row.watermarks)
  const shown = await Promise.all(
    watermarks.map(async (watermark): Promise<ShownWatermark[]> => {
      if (watermark.type !== 'image') return [fillForSession(watermark, { address, nowS: deps.nowS() })]
      const { url, ...shownFields } = watermark
      const png = await deps.watermarkImages.find(row.accountId, url)
      if (png) return [{ ...shownFields, png }]
      deps.log.warn({ accountId: row.accountId, videoId: row.videoId }, 'watermark: image unavailable, left out of playback')
      return []
    }),
  )
  return shown.flat()
}
