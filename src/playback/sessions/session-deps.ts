import type { Logger } from 'pino'
import type { Db } from '../../db/database.ts'
import type { PlaybackSessionRow } from '../../db/tables.ts'
import type { Write } from '../../db/write.ts'
import type { WriteBehind } from '../../db/write-behind.ts'
import type { Signals } from '../../signals/signals.ts'
import type { Viewings } from '../../viewers/saved-viewings.ts'
import type { PlayableVideos } from '../media/playable-video.ts'
import type { Countries } from '../rules/countries.ts'
import type { Suspicions } from '../suspicion/suspicion.ts'
import type { LiveSession } from './live-session.ts'
import type { Nonces } from './proof.ts'
import type { ServerKeys } from './server-key.ts'
import type { SessionRefusals } from './session-refusals.ts'

/** What the sessions of viewers need. */
export type SessionDeps = {
  db: Db
  write: Write
  signals: Signals
  /** The playback clock. */
  nowS: () => number
  /** A monotonic clock, for the rate limits of proofs. */
  monotonicMs(): number
  nonces: Nonces
  serverKeys: ServerKeys
  videos: PlayableVideos
  suspicions: Suspicions
  sessionRefusals: SessionRefusals
  viewings: Viewings
  sessions: WriteBehind<LiveSession>
  /** Called for each request that is admitted. */
  recordAddress(session: PlaybackSessionRow, address: string): void
  countries: Countries
  /** Whether valid proofs are rate-limited; not when `REELGATE_LIMITS` is off. */
  isRateLimited: boolean
  log: Logger
}

/** Where a request came from. */
export type ViewerRequest = { address: string; userAgent: string }
