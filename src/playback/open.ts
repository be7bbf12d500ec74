import type { Logger } from 'pino'
import { findPublicCaptions, openCaption, type PublicCaptionDeps } from '../assets/public-captions.ts'
import { openMainPoster } from '../assets/public-poster.ts'
import { findStoryboard, openStoryboardSheet, toStoryboardWebVtt } from '../assets/storyboard.ts'
import { hasStoryboard } from '../catalogue/storyboard-store.ts'
import type { Batches } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { Signals } from '../signals/signals.ts'
import { createViewQualities } from '../view-quality/view-quality.ts'
import { createViewings } from '../viewers/saved-viewings.ts'
import type { WatermarkImages } from '../watermark/watermark-image.ts'
import { createKeyPacing } from './keys/key-pacing.ts'
import { createMediaDelivery } from './media/delivery.ts'
import type { DirectBucket } from './media/direct-bucket.ts'
import { deriveMediaSecrets, type MediaOrigin } from './media/media-path.ts'
import { createPlayableVideos } from './media/playable-video.ts'
import type { PlaybackClock } from './playback-clock.ts'
import type { PlaybackDeps } from './playback-deps.ts'
import { openCountries } from './rules/countries.ts'
import { storyboardSheetName } from './serve.ts'
import { createNonces } from './sessions/proof.ts'
import { openServerKeys } from './sessions/server-key.ts'
import { createSessionMemory, followEnds } from './sessions/session-memory.ts'
import { createSessionRefusals } from './sessions/session-refusals.ts'
import { restoreStreamSlots } from './sessions/stream-slot.ts'
import { openProofEpoch } from './shared/proof-epoch.ts'
import { ALONE, type OtherServers, openSharing, type Sharing } from './shared/sharing.ts'
import { createTurns } from './shared/turns.ts'
import { createSuspicions } from './suspicion/suspicion.ts'
import { createTickets } from './ticket.ts'

type OpenPlaybackDeps = PublicCaptionDeps & {
  write: Write
  signals: Signals
  /** Undefined: no other server can use the database. */
  batches: Batches | undefined
  servers?: OtherServers
  clock: PlaybackClock
  wallNowS(): number
  watermarkImages: WatermarkImages
  recordView: PlaybackDeps['recordView']
  recordAddress: PlaybackDeps['recordAddress']
  recordSentBytes: PlaybackDeps['recordSentBytes']
  /** Called in the transaction that stores another tenth of a video as watched. */
  onTenth: Parameters<typeof createViewings>[0]['onTenth']
  mediaOrigin: MediaOrigin | undefined
  directBucket: DirectBucket | undefined
  countriesFile: string | undefined
  /** Whether the requests of a session are rate-limited. */
  isRateLimited: boolean
  log: Logger
}

/** What viewers' requests need; `savePlayback` saves what it has in memory. */
export async function openPlayback(deps: OpenPlaybackDeps): Promise<PlaybackDeps> {
  const { db, write, signals, masterKey, clock, folders, damagedFiles, log } = deps
  const countries = openCountries(deps.countriesFile)
  await restoreStreamSlots({ write, clock })
  const mediaSecrets = () => deriveMediaSecrets(masterKey, clock.nowS())
  const playback: PlaybackDeps = {
    db,
    write,
    signals,
    nowS: clock.nowS,
    preciseNowS: clock.preciseNowS,
    monotonicMs: () => performance.now(),
    nonces: createNonces(masterKey, clock.nowS),
    serverKeys: await openServerKeys({ db, write, masterKey, nowS: clock.nowS }),
    tickets: createTickets(masterKey, clock.nowS),
    sharing: ALONE,
    videos: createPlayableVideos(db, masterKey),
    keyPacing: createKeyPacing({ db, write, nowS: clock.preciseNowS }),
    suspicions: createSuspicions({ write, nowS: clock.preciseNowS, countries }),
    sessionRefusals: createSessionRefusals({ write, nowS: clock.nowS }),
    viewings: createViewings({ db, write, nowS: clock.nowS, onTenth: deps.onTenth }),
    viewQualities: createViewQualities({
      ...{ db, write, nowS: clock.nowS, wallNowS: deps.wallNowS },
      findCountry: countries.find,
    }),
    sessions: createSessionMemory({ write, nowS: clock.nowS }),
    mediaSecrets,
    delivery: createMediaDelivery({
      ...{ db, nowS: clock.nowS, mediaSecrets, mediaOrigin: deps.mediaOrigin },
      bucket: deps.directBucket,
    }),
    captions: {
      find: (videoId) => findPublicCaptions({ db }, videoId),
      open: (videoId, id) => openCaption({ db, masterKey, folders, damagedFiles }, videoId, id),
    },
    openMainPoster: (video) => openMainPoster({ db, masterKey, posters: folders.posters, damagedFiles }, video),
    storyboards: {
      has: (video) => hasStoryboard(db, video),
      describe: async (video) => {
        const found = await findStoryboard(db, video)
        return found && toStoryboardWebVtt(found.storyboard, found.durationS, storyboardSheetName)
      },
      open: (video, sheet) => openStoryboardSheet({ db, masterKey, posters: folders.posters, damagedFiles }, video, sheet),
    },
    watermarkImages: deps.watermarkImages,
    countries,
    isRateLimited: deps.isRateLimited,
    recordView: deps.recordView,
    recordAddress: deps.recordAddress,
    recordSentBytes: deps.recordSentBytes,
    log,
  }
  followEnds(signals, playback)
  const { batches, servers } = deps
  if (batches && servers) playback.sharing = await openShared({ ...playback, batches, servers })
  for (const changed of ['segment-damaged', 'audio-changed'] as const)
    signals.on(changed, ({ videoId }) => playback.videos.forget([videoId]))
  return playback
}

/** From when on other servers answer requests, too, each of a session is a turn on rows. */
export async function openShared(deps: PlaybackDeps & { batches: Batches; servers: OtherServers }): Promise<Sharing> {
  const { batches, servers, nonces, keyPacing, sessions } = deps
  batches.onConnect(async (db) => nonces.useEpoch(await openProofEpoch(db)))
  return openSharing(servers, createTurns(deps), async () => {
    await savePlayback(deps)
    keyPacing.forget()
    sessions.forget(() => true)
    // Connects: from here on the proofs of before are stale.
    await batches.transaction(async () => ({ result: undefined, isDurable: false }))
  })
}

/** Saves what is in memory of sessions, their refusals, key budgets, viewings and how they play, and the alerts that were raised. */
export async function savePlayback(deps: PlaybackDeps): Promise<void> {
  const { sharing, sessions, keyPacing, suspicions, sessionRefusals, viewings, viewQualities } = deps
  // Turns write sessions. What one is deciding on would conflict with its transaction, and be written although that may fail.
  if (sharing.isShared()) sessions.dropUnused()
  const written = [...(sharing.isShared() ? [] : [sessions]), keyPacing, suspicions, sessionRefusals, viewings, viewQualities]
  await Promise.all(written.map((memory) => memory.save()))
}
