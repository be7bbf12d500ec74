import type { PublicCaption } from '../assets/public-captions.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import type { ViewQualities } from '../view-quality/view-quality.ts'
import type { WatermarkImages } from '../watermark/watermark-image.ts'
import type { KeyPacing } from './keys/key-pacing.ts'
import type { MediaDelivery } from './media/delivery.ts'
import type { MediaSecrets } from './media/media-path.ts'
import type { SessionDeps } from './sessions/session-deps.ts'
import type { Sharing } from './shared/sharing.ts'
import type { Tickets } from './ticket.ts'

export type PlaybackDeps = SessionDeps & {
  /** `nowS` with its fraction. */
  preciseNowS(): number
  tickets: Tickets
  sharing: Sharing
  keyPacing: KeyPacing
  mediaSecrets(): MediaSecrets
  delivery: MediaDelivery
  captions: Captions
  /** The JPEG of a video's main poster, public or not. */
  openMainPoster(video: { videoId: string; accountId: string }): Promise<Buffer | undefined>
  storyboards: Storyboards
  viewQualities: ViewQualities
  watermarkImages: Pick<WatermarkImages, 'find'>
  /** Called for each session that receives its first key. */
  recordView(session: PlaybackSessionRow): void
  /** Called for what another origin sends to a viewer's address. */
  recordSentBytes(videoId: string, address: string, sentBytes: number): void
}

/** Small pictures of what a session plays. */
type Storyboards = {
  /** @returns whether the generation has one now */
  has(video: GenerationKey): Promise<boolean>
  /** @returns the WebVTT that names its sheets; undefined when it has none */
  describe(video: GenerationKey): Promise<string | undefined>
  /** @param sheet counted from 0 @returns WebP; undefined when there is no such sheet */
  open(video: GenerationKey, sheet: number): Promise<Buffer | undefined>
}

/** The captions of a video. */
type Captions = {
  find(videoId: string): Promise<PublicCaption[]>
  /** @returns WebVTT, on the video's time line; undefined when the video has no captions with this id */
  open(videoId: string, id: number): Promise<string | undefined>
}
