import { type EndReason, PlaybackRefusal } from '../refusal.ts'
import { endReasonOf, type LiveSession, MAX_IDLE_S, recordEnd } from './live-session.ts'
import type { SessionDeps } from './session-deps.ts'
import { endSession } from './session-store.ts'

const MAX_LEFT_S = 600

type EndDeps = Pick<SessionDeps, 'write' | 'nowS'>

/** @throws PlaybackRefusal `session-ended` with the reason; the end is stored the first time it is noticed */
export async function assertNotEnded(deps: EndDeps, session: LiveSession): Promise<void> {
  const why = findEndReason(session, deps.nowS())
  if (!why) return
  if (session.row.endedAtS === null) await endNow(deps, session, why)
  throw new PlaybackRefusal('session-ended', { why })
}

/** Why a session has ended; undefined while it is live. */
export function findEndReason(session: LiveSession, nowS: number): EndReason | undefined {
  const { row, leftAtS } = session
  if (row.endedAtS !== null) return endReasonOf(row)
  if (nowS >= row.endsAtS) return 'time'
  if (nowS - session.lastSeenAtS >= MAX_IDLE_S) return 'idle'
  if (leftAtS !== null && nowS - leftAtS >= MAX_LEFT_S) return 'viewer-left'
  return undefined
}

async function endNow(deps: EndDeps, session: LiveSession, why: EndReason): Promise<void> {
  const endedAtS = deps.nowS()
  await deps.write((tx) => endSession(tx, session.row.id, endedAtS, why))
  recordEnd(session, endedAtS, why)
}
