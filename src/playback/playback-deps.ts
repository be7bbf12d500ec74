import type { PublicCaption } from '../assets/public-captions.ts'
import type { PlaybackSessionRow } from '../db/tables.ts'
import type { WatermarkImages } from '../watermark/watermark-image.ts'
import type { KeyPacing } from './keys/key-pacing.ts'
import type { MediaSecrets } from './media/media-path.ts'
import type { SessionDeps } from './sessions/session-deps.ts'
import type { Tickets } from './ticket.ts'

export type PlaybackDeps = SessionDeps & {
  /** `nowS` with its fraction. */
  preciseNowS(): number
  tickets: Tickets
  keyPacing: KeyPacing
  mediaSecrets(): MediaSecrets
  captions: Captions
  /** The JPEG of a video's main poster, public or not. */
  openMainPoster(video: { videoId: string; accountId: string }): Promise<Buffer | undefined>
  watermarkImages: Pick<WatermarkImages, 'find'>
  /** Called for each session that receives its first key. */
  recordView(session: PlaybackSessionRow): void
}

/** The captions of a video. */
type Captions = {
  find(videoId: string): Promise<PublicCaption[]>
  /** @returns WebVTT, on the video's time line; undefined when the video has no captions with this id */
  open(videoId: string, id: number): Promise<string | undefined>
}
