import { type Alert, recordAlert } from '../../alerts/alert.ts'
import type { AlertCause } from '../../alerts/cause.ts'
import type { PlaybackSessionRow } from '../../db/tables.ts'
import type { Write } from '../../db/write.ts'
import { createWriteBehind } from '../../db/write-behind.ts'
import type { Countries } from '../rules/countries.ts'
import {
  addAddress,
  addBeat,
  addKey,
  addRefusal,
  type DrawnAndPlayed,
  newSessionEvidence,
  type SessionEvidence,
} from './session-evidence.ts'
import {
  addLocation,
  findDrawnTooMuch,
  findIgnoredPace,
  findManyLocations,
  forgetLocations,
  newViewerEvidence,
  PERIOD_S,
  type ViewerEvidence,
} from './viewer-evidence.ts'

// Notices what a viewer who watches does not do. Counted in memory, for an hour at a time; only an alert is a write, a few seconds later.

/** A session as far as its alerts name it. */
type SuspectSession = Pick<PlaybackSessionRow, 'id' | 'accountId' | 'userId' | 'videoId'>

export type Suspicions = {
  /** A key request that was allowed. @param mediaS how much its key window plays */
  recordKey(session: SuspectSession, window: number, mediaS: number): void
  /** A key request that was refused for `waitMs`. */
  recordPaced(session: SuspectSession, window: number, waitMs: number): void
  /** Any beat. */
  recordBeat(session: SuspectSession, beat: { isPlaying: boolean; positionS: number }): void
  /** A request with a valid proof. */
  recordAddress(session: SuspectSession, address: string): void
  /** Undefined when nothing of the session is in memory. */
  findDrawnAndPlayed(sessionId: string): DrawnAndPlayed | undefined
  /** Writes the alerts that were raised, and forgets what is older than an hour. */
  save(): Promise<void>
}

/** Alerts that wait for their write. */
const MAX_WAITING_ALERTS = 10_000

type RaisedAlert = { alert: Alert; atS: number; isWritten: boolean }

/** @param deps.nowS the playback clock, with fractions of seconds */
export function createSuspicions(deps: { write: Write; nowS(): number; countries: Countries }): Suspicions {
  const { write, nowS, countries } = deps
  const sessions = new Map<string, SessionEvidence>()
  const viewers = new Map<string, ViewerEvidence>()
  const alerts = createWriteBehind<RaisedAlert, RaisedAlert>(
    { write, nowS },
    {
      forgetAfterS: 0,
      toChange: (raised) => (raised.isWritten ? undefined : raised),
      async write(tx, { alert, atS }) {
        await recordAlert(tx, alert, atS)
      },
      onWritten(raised) {
        raised.isWritten = true
      },
    },
  )

  function evidenceOfSession({ id }: SuspectSession): SessionEvidence {
    const session = sessions.get(id) ?? newSessionEvidence()
    sessions.set(id, session)
    session.usedAtS = nowS()
    return session
  }

  function evidenceOfViewer(session: SuspectSession): ViewerEvidence {
    const name = `${session.accountId} ${subjectOf(session)}`
    const known = viewers.get(name)
    if (known && nowS() < known.beganAtS + PERIOD_S) return known
    const viewer = newViewerEvidence(nowS(), known?.locations)
    viewers.set(name, viewer)
    return viewer
  }

  /** Raises an alert once in an hour. @param numbers undefined: there is no reason for it */
  function raise(session: SuspectSession, cause: AlertCause, numbers: Alert['numbers'] | undefined): void {
    const { raised } = evidenceOfViewer(session)
    if (numbers === undefined || raised.has(cause) || alerts.size >= MAX_WAITING_ALERTS) return
    raised.add(cause)
    const { id: sessionId, accountId, userId, videoId } = session
    const subject = subjectOf(session)
    const alert = { accountId, cause, subject, sessionId, userId, videoId, numbers }
    alerts.getOrMake(`${accountId} ${subject} ${cause}`, () => ({ alert, atS: Math.floor(nowS()), isWritten: false }))
  }

  return {
    recordKey(session, window, mediaS) {
      const drawnS = addKey(evidenceOfSession(session), { window, mediaS }, nowS())
      if (drawnS === 0) return
      const viewer = evidenceOfViewer(session)
      viewer.drawnS += drawnS
      raise(session, 'keys-drawn', findDrawnTooMuch(viewer))
    },
    recordPaced(session, window, waitMs) {
      if (!addRefusal(evidenceOfSession(session), { window, waitMs }, nowS())) return
      const viewer = evidenceOfViewer(session)
      viewer.earlyRequests++
      raise(session, 'key-pace-ignored', findIgnoredPace(viewer))
    },
    recordBeat(session, beat) {
      evidenceOfViewer(session).playedS += addBeat(evidenceOfSession(session), { ...beat, atS: nowS() })
    },
    recordAddress(session, address) {
      if (session.userId === null) return // a session moves with its viewer
      if (!addAddress(evidenceOfSession(session), address, nowS())) return
      const viewer = evidenceOfViewer(session)
      if (!addLocation(viewer, address, nowS())) return
      // Never rejects, and no request waits for it.
      void findManyLocations(viewer, countries).then((numbers) => raise(session, 'many-places', numbers))
    },
    findDrawnAndPlayed: (sessionId) => sessions.get(sessionId)?.drawnAndPlayed,
    async save() {
      await alerts.save()
      const unusedSinceS = nowS() - PERIOD_S
      for (const [id, { usedAtS }] of sessions) if (usedAtS < unusedSinceS) sessions.delete(id)
      for (const [name, viewer] of viewers) {
        forgetLocations(viewer, nowS())
        if (viewer.beganAtS < unusedSinceS && viewer.locations.size === 0) viewers.delete(name)
      }
    },
  }
}

function subjectOf({ id, userId }: SuspectSession): string {
  return userId === null ? `session ${id}` : `user ${userId}`
}
