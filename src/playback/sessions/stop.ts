import { type Actor, recordAuditEvent } from '../../audit/audit-log.ts'
import { hashSecret } from '../../crypto/secret.ts'
import type { Db } from '../../db/database.ts'
import type { Write } from '../../db/write.ts'
import type { Signals } from '../../signals/signals.ts'
import { type EraseDeps, eraseViewer } from '../../viewers/viewers.ts'
import { expireOtp } from '../otp-store.ts'
import type { Countries } from '../rules/countries.ts'
import type { DrawnAndPlayed } from '../suspicion/session-evidence.ts'
import type { Suspicions } from '../suspicion/suspicion.ts'
import { isWatching, type LiveSessions, MAX_SILENT_S } from './live-session.ts'
import {
  endMatchingSessions,
  findLiveSessions,
  type LiveSessionRow,
  listWatchingSessions,
  type SessionFilter,
} from './session-store.ts'

// An owner sees who watches, and stops them: playback-protocol.md, section 4.

export type StopDeps = {
  db: Db
  write: Write
  nowS: () => number
  signals: Pick<Signals, 'send'>
  sessions: LiveSessions
  /** Undefined: no server runs, so nothing is counted. */
  suspicions: Pick<Suspicions, 'findDrawnAndPlayed'> | undefined
  countries: Countries
}

/** What to stop. An OTP that is not spent yet opens nothing any more. */
export type StopTarget = { sessionId: string } | { userId: string } | { videoId: string } | { otp: string }

/** With what its keys allow to be played and its beats report as played; null after a restart, and when it has not been active for an hour. */
type ListedSession = LiveSessionRow & { [Seconds in keyof DrawnAndPlayed]: number | null } & {
  /** Where its OTP was redeemed; null: not known. */
  country: string | null
}

/** The account's sessions that watch now, the newest first: those that were started and whose page is open. */
export async function listSessions(
  { db, nowS, sessions, suspicions, countries }: Pick<StopDeps, 'db' | 'nowS' | 'sessions' | 'suspicions' | 'countries'>,
  accountId: string,
  filter: Pick<SessionFilter, 'userId' | 'videoId'>,
  limit: number,
): Promise<ListedSession[]> {
  // Rows are a few seconds old, and memory is empty after a restart: what memory knows counts, unless another server has seen the session since.
  const stored = await listWatchingSessions(db, accountId, filter, { seenSinceS: nowS() - MAX_SILENT_S, limit })
  const watching = newestWatching(sessions, { accountId, filter, limit, nowS: nowS() })
  const [storedIds, watchingIds] = [new Set(stored.map(({ id }) => id)), new Set(watching)]
  const added = await findLiveSessions(
    db,
    watching.filter((id) => !storedIds.has(id)),
  )
  const isNewer = (row: LiveSessionRow) => row.lastSeenAtS > (sessions.peek(row.id)?.lastSeenAtS ?? 0)
  const rows = [...stored.filter((row) => watchingIds.has(row.id) || isNewer(row)), ...added.filter((row) => !isNewer(row))]
    .toSorted((a, b) => b.startedAtS - a.startedAtS)
    .slice(0, limit)
  return Promise.all(
    rows.map(async (row) => {
      const media = suspicions?.findDrawnAndPlayed(row.id)
      const [drawnS, playedS] = media ? [Math.round(media.drawnS), Math.round(media.playedS)] : [null, null]
      return { ...row, drawnS, playedS, country: await findCountry(countries, row.address) }
    }),
  )
}

/** Ids of the sessions in memory that watch now and match. */
function newestWatching(
  sessions: LiveSessions,
  { accountId, filter: { userId, videoId }, limit, nowS }: NewestWatching,
): string[] {
  return [...sessions.values()]
    .filter(
      (session) =>
        session.row.accountId === accountId &&
        (userId === undefined || session.row.userId === userId) &&
        (videoId === undefined || session.row.videoId === videoId) &&
        isWatching(session, nowS),
    )
    .map(({ row }) => row)
    .toSorted((a, b) => b.startedAtS - a.startedAtS)
    .slice(0, limit)
    .map(({ id }) => id)
}
type NewestWatching = { accountId: string; filter: Pick<SessionFilter, 'userId' | 'videoId'>; limit: number; nowS: number }

/** The list is worth having without countries, too, where their database cannot be read. */
async function findCountry(countries: Countries, address: string | null): Promise<string | null> {
  if (address === null) return null
  return (await countries.find(address).catch(() => undefined)) ?? null
}

/**
 * Ends the sessions of a viewer, a video or an OTP, or one session: no key, playlist or file is sent to them from here on. The player
 * stops at its next beat, within 6 s. @returns how many were stopped
 */
export async function stopSessions(
  { write, nowS, signals }: StopDeps,
  { accountId, by, target }: { accountId: string; by: Actor; target: StopTarget },
): Promise<number> {
  const otpHash = 'otp' in target ? hashSecret(target.otp) : undefined
  const filter: SessionFilter = 'otp' in target ? { otpHash } : target
  const endedAtS = nowS()
  const ids = await write(async (tx) => {
    const ended = await endMatchingSessions(tx, { accountId, filter, endedAtS, endReason: 'stopped' })
    const hasExpired = otpHash !== undefined && (await expireOtp(tx, accountId, otpHash, endedAtS))
    const subjects = ended.length === 0 && hasExpired ? ['an unspent OTP'] : ended
    // Neither an OTP nor a viewer: the audit log is kept longer than what is known of viewers.
    const details = 'sessionId' in target || 'videoId' in target ? target : undefined
    await recordAuditEvent(tx, { atS: endedAtS, accountId, by, kind: 'session:stopped', subjects, details })
    return ended
  })
  void signals.send('session-ended', { sessionIds: ids, why: 'stopped' })
  return ids.length
}

/** Stops the sessions of a viewer, and removes what names the viewer: see `eraseViewer`. @returns how many were stopped, and of how many videos something was watched */
export async function stopAndEraseViewer(
  { stops, ...deps }: EraseDeps & { stops: StopDeps },
  { userId, ...holder }: { accountId: string; by: Actor; userId: string },
): Promise<{ sessions: number; videos: number }> {
  const sessions = await stopSessions(stops, { ...holder, target: { userId } })
  return { sessions, videos: await eraseViewer(deps, { ...holder, userId }) }
}
