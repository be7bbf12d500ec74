import type { Logger } from 'pino'
import type { PublicCaption } from '../assets/public-captions.ts'
import type { Db } from '../db/database.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import type { Viewings } from '../viewers/viewing.ts'
import type { WatermarkImages } from '../watermark/watermark-image.ts'
import type { KeyPacing } from './keys/key-pacing.ts'
import type { MediaSecrets } from './media/media-path.ts'
import type { PlayableVideos } from './media/playable-video.ts'
import type { Countries } from './rules/countries.ts'
import type { LiveSessions } from './sessions/live-session.ts'
import type { Nonces } from './sessions/proof.ts'
import type { ServerKeys } from './sessions/server-key.ts'
import type { SessionRefusals } from './sessions/session-refusals.ts'
import type { Suspicions } from './suspicion/suspicion.ts'
import type { Tickets } from './ticket.ts'

export type PlaybackDeps = {
  db: Db
  write: Write
  /** The playback clock. */
  nowS: () => number
  /** The same with its fraction. */
  preciseNowS(): number
  /** A monotonic clock, for the rate limits of proofs. */
  monotonicMs(): number
  nonces: Nonces
  serverKeys: ServerKeys
  tickets: Tickets
  videos: PlayableVideos
  keyPacing: KeyPacing
  suspicions: Suspicions
  sessionRefusals: SessionRefusals
  viewings: Viewings
  sessions: LiveSessions
  mediaSecrets(): MediaSecrets
  captions: Captions
  /** The JPEG of a video's main poster, public or not. */
  openMainPoster(video: { videoId: string; accountId: string }): Promise<Buffer | undefined>
  watermarkImages: Pick<WatermarkImages, 'find'>
  countries: Countries
  /** Whether valid proofs are rate-limited; not when `REELGATE_LIMITS` is off. */
  isRateLimited: boolean
  log: Logger
  /** Called for each session that receives its first key. */
  recordView(session: PlaybackSessionRow): void
}

/** The captions of a video. */
export type Captions = {
  find(videoId: string): Promise<PublicCaption[]>
  /** @returns WebVTT; undefined when the video has no captions with this id */
  open(videoId: string, id: number): Promise<string | undefined>
}

/** Where a request came from. */
export type ViewerRequest = { address: string; userAgent: string }
