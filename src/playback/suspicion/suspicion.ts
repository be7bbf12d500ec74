import { type Alert, recordAlert } from '../../alerts/alert.ts'
import type { AlertCause } from '../../alerts/cause.ts'
import type { PlaybackSessionRow } from '../../db/tables.ts'
import type { Write } from '../../db/write.ts'
import { addressPrefix } from '../../net/ip.ts'
import { MAX_SPEED } from '../keys/key-budget.ts'
import { hasWindow, withWindow } from '../keys/window-set.ts'
import { LEASE_S } from '../lease.ts'
import type { Countries } from '../rules/countries.ts'

// Notices what a viewer who watches does not do. Counted in memory, for an hour at a time; only an alert is a write, a few seconds later.

/** A session as far as its alerts name it. */
export type SuspectSession = Pick<PlaybackSessionRow, 'id' | 'accountId' | 'userId' | 'videoId'>

/** What the keys of a session allow to be played, and what its beats report as played, in seconds of video. */
export type Progress = { drawnS: number; playedS: number }

export type Suspicions = {
  /** A key request that was allowed. @param mediaS how much its key window plays */
  recordKey(session: SuspectSession, window: number, mediaS: number): void
  /** A key request that was refused for `waitMs`. */
  recordPaced(session: SuspectSession, window: number, waitMs: number): void
  /** Any beat. */
  recordBeat(session: SuspectSession, beat: { isPlaying: boolean; positionS: number }): void
  /** A request with a valid proof. */
  recordPlace(session: SuspectSession, address: string): void
  /** Undefined when nothing of the session is in memory. */
  progressOf(sessionId: string): Progress | undefined
  /** Writes the alerts that were raised, and forgets what is older than an hour. */
  save(): Promise<void>
}

/** Counts are of an hour; then they begin again. */
const PERIOD_S = 3600
const MIN_DRAWN_S = 15 * 60
const MAX_DRAWN_TO_PLAYED = 3
const MAX_EARLY_REQUESTS = 20
const MAX_COUNTRIES = 3
const MAX_PREFIXES = 5
/** Timers of browsers end a little early. */
const EARLY_S = 0.1
/** A longer silence reports nothing: two lost beats on a bad network are shorter. */
const MAX_SILENCE_S = 60
/** How often the place of a session is noted that stays where it is. */
const PLACE_EVERY_S = 60
/** Of one viewer: more make no difference to an alert. */
const MAX_PLACES = 32
const MAX_WAITING_WINDOWS = 256
/** Alerts that wait for their write. */
const MAX_PENDING = 10_000

type Viewer = {
  beganAtS: number
  drawnS: number
  playedS: number
  earlyRequests: number
  /** By address prefix: an address there, and when a request last came from it. */
  places: Map<string, { address: string; seenAtS: number }>
  raised: Set<AlertCause>
}

type Session = {
  usedAtS: number
  /** The key windows that it has: window-set.ts. */
  drawnWindows: Buffer
  progress: Progress
  /** The last beat, or where the first key was requested. */
  last: { atS: number; positionS: number } | undefined
  /** By key window: when it may be requested again. */
  waitsUntilS: Map<number, number>
  place: { address: string; notedAtS: number } | undefined
}

type SuspicionDeps = { write: Write; nowS(): number; countries: Countries }

/** @param deps.nowS the playback clock, with fractions of seconds */
export function createSuspicions({ write, nowS, countries }: SuspicionDeps): Suspicions {
  const viewers = new Map<string, Viewer>()
  const sessions = new Map<string, Session>()
  let pending: { alert: Alert; atS: number }[] = []

  function viewerOf({ id, accountId, userId }: SuspectSession): Viewer {
    const key = `${accountId} ${userId === null ? `session ${id}` : `user ${userId}`}`
    const known = viewers.get(key)
    if (known && nowS() < known.beganAtS + PERIOD_S) return known
    // Places are seen within the last hour, not counted by the hour.
    const places = known?.places ?? new Map<string, { address: string; seenAtS: number }>()
    const counts = { drawnS: 0, playedS: 0, earlyRequests: 0, places, raised: new Set<AlertCause>() }
    const viewer: Viewer = { beganAtS: nowS(), ...counts }
    viewers.set(key, viewer)
    return viewer
  }

  function countsOf({ id }: SuspectSession): Session {
    const session = sessions.get(id) ?? newSession()
    sessions.set(id, session)
    session.usedAtS = nowS()
    return session
  }

  function raise(row: SuspectSession, cause: AlertCause, numbers: Alert['numbers']): void {
    const { raised } = viewerOf(row)
    if (raised.has(cause) || pending.length >= MAX_PENDING) return
    raised.add(cause)
    const { id: sessionId, accountId, userId, videoId } = row
    const subject = userId === null ? `session ${sessionId}` : `user ${userId}`
    pending.push({ alert: { accountId, cause, subject, sessionId, userId, videoId, numbers }, atS: Math.floor(nowS()) })
  }

  async function countCountries(places: Viewer['places']): Promise<number> {
    // A country that cannot be looked up is not a reason for an alert, nor to refuse a viewer.
    const found = await Promise.all([...places.values()].map(({ address }) => countries.find(address).catch(() => undefined)))
    return new Set(found.filter((country) => country !== undefined)).size
  }

  async function checkPlaces(row: SuspectSession, { places }: Viewer): Promise<void> {
    const prefixes = places.size
    if (prefixes < MAX_COUNTRIES) return // nor can there be as many countries
    const count = await countCountries(places)
    if (prefixes >= MAX_PREFIXES || count >= MAX_COUNTRIES) raise(row, 'many-places', { prefixes, countries: count })
  }

  return {
    recordKey(row, window, mediaS) {
      const session = countsOf(row)
      session.waitsUntilS.delete(window)
      if (hasWindow(session.drawnWindows, window)) return
      session.drawnWindows = withWindow(session.drawnWindows, window)
      session.progress.drawnS += mediaS
      session.last ??= { atS: nowS(), positionS: 0 }
      const viewer = viewerOf(row)
      viewer.drawnS += mediaS
      const { drawnS, playedS } = viewer
      if (drawnS > MIN_DRAWN_S && drawnS > MAX_DRAWN_TO_PLAYED * playedS)
        raise(row, 'keys-drawn', { drawnS: Math.round(drawnS), playedS: Math.round(playedS) })
    },

    recordPaced(row, window, waitMs) {
      const { waitsUntilS } = countsOf(row)
      const isEarly = nowS() < (waitsUntilS.get(window) ?? 0) - EARLY_S
      if (waitsUntilS.size >= MAX_WAITING_WINDOWS) waitsUntilS.clear()
      waitsUntilS.set(window, nowS() + waitMs / 1000)
      if (!isEarly) return
      const viewer = viewerOf(row)
      viewer.earlyRequests++
      if (viewer.earlyRequests >= MAX_EARLY_REQUESTS) raise(row, 'key-pace-ignored', { earlyRequests: viewer.earlyRequests })
    },

    recordBeat(row, { isPlaying, positionS }) {
      const session = countsOf(row)
      const playedS = session.last ? playedSince(session.last, { atS: nowS(), positionS, isPlaying }) : 0
      session.last = { atS: nowS(), positionS }
      session.progress.playedS += playedS
      viewerOf(row).playedS += playedS
    },

    recordPlace(row, address) {
      if (row.userId === null) return // a session moves with its viewer
      const session = countsOf(row)
      const atS = nowS()
      if (session.place?.address === address && atS < session.place.notedAtS + PLACE_EVERY_S) return
      session.place = { address, notedAtS: atS }
      const viewer = viewerOf(row)
      forgetPlaces(viewer, atS)
      const prefix = addressPrefix(address)
      const isNew = !viewer.places.has(prefix)
      if (isNew && viewer.places.size >= MAX_PLACES) return
      viewer.places.set(prefix, { address, seenAtS: atS })
      if (isNew) void checkPlaces(row, viewer) // never rejects, and no request waits for it
    },

    progressOf: (sessionId) => sessions.get(sessionId)?.progress,

    async save() {
      const batch = pending
      pending = []
      try {
        if (batch.length > 0)
          await write(async (tx) => {
            for (const { alert, atS } of batch) await recordAlert(tx, alert, atS)
          })
      } catch (error) {
        pending = [...batch, ...pending].slice(0, MAX_PENDING)
        throw error
      }
      const unusedSinceS = nowS() - PERIOD_S
      for (const [id, { usedAtS }] of sessions) if (usedAtS < unusedSinceS) sessions.delete(id)
      for (const [key, viewer] of viewers) {
        forgetPlaces(viewer, nowS())
        if (viewer.beganAtS < unusedSinceS && viewer.places.size === 0) viewers.delete(key)
      }
    },
  }
}

function newSession(): Session {
  return {
    usedAtS: 0,
    drawnWindows: Buffer.alloc(0),
    progress: { drawnS: 0, playedS: 0 },
    last: undefined,
    waitsUntilS: new Map(),
    place: undefined,
  }
}

function forgetPlaces({ places }: Viewer, atS: number): void {
  for (const [prefix, { seenAtS }] of places) if (seenAtS <= atS - PERIOD_S) places.delete(prefix)
}

/**
 * What two beats report as played between them, in seconds of video. Where the position jumps, the viewer has sought, and played
 * before and after: all of the time between the beats counts, but at most a lease, the gap that two lost beats leave.
 */
function playedSince(
  last: { atS: number; positionS: number },
  beat: { atS: number; positionS: number; isPlaying: boolean },
): number {
  const passedS = beat.atS - last.atS
  if (passedS > MAX_SILENCE_S) return 0
  const movedS = beat.positionS - last.positionS
  if (movedS >= 0 && movedS <= MAX_SPEED * passedS + 1) return Math.min(movedS, MAX_SPEED * passedS)
  return beat.isPlaying ? Math.min(passedS, LEASE_S) : 0
}
