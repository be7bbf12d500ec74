import type { Logger } from 'pino'
import { findPublicCaptions, openCaption, type PublicCaptionDeps } from '../assets/public-captions.ts'
import { openMainPoster } from '../assets/public-poster.ts'
import type { Write } from '../db/write.ts'
import type { WatermarkImages } from '../watermark/watermark-image.ts'
import { openCountries } from './countries.ts'
import { deriveMediaSecret } from './media-path.ts'
import { createPlayableVideos } from './playable-video.ts'
import type { PlaybackClock } from './playback-clock.ts'
import { createNonces } from './proof.ts'
import type { PlaybackDeps } from './session.ts'
import { resumeStreamSlots } from './stream-slot.ts'
import { createTickets } from './ticket.ts'

export type OpenPlaybackDeps = PublicCaptionDeps & {
  write: Write
  clock: PlaybackClock
  watermarkImages: WatermarkImages
  recordView: PlaybackDeps['recordView']
  countriesFile: string | undefined
  /** Whether the proofs of a session are limited. */
  isRateLimited: boolean
  log: Logger
}

/** What viewers' requests need; `saveSessions` keeps what it has in memory. */
export async function openPlayback(deps: OpenPlaybackDeps): Promise<PlaybackDeps> {
  const { db, write, masterKey, clock, folders, log } = deps
  await resumeStreamSlots({ write, clock })
  return {
    db,
    write,
    nowS: clock.nowS,
    nowMs: () => performance.now(),
    nonces: createNonces(masterKey, clock.nowS),
    tickets: createTickets(masterKey, clock.nowS),
    videos: createPlayableVideos(db, masterKey),
    sessions: new Map(),
    mediaSecret: deriveMediaSecret(masterKey),
    captions: {
      find: (videoId) => findPublicCaptions({ db }, videoId),
      open: (videoId, id) => openCaption({ db, masterKey, folders }, videoId, id),
    },
    mainPoster: (video) => openMainPoster({ db, masterKey, posters: folders.posters }, video),
    watermarkImages: deps.watermarkImages,
    countries: openCountries(deps.countriesFile),
    paced: deps.isRateLimited,
    recordView: deps.recordView,
    log,
  }
}
