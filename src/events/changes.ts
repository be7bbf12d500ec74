import type { AlertRow } from '../db/tables.ts'
import type { QueuedVideo } from '../progress/account-queue.ts'

export type Session = { id: string; videoId: string; userId: string | null }

export type AccountState = {
  changeNumber: number
  queue: readonly QueuedVideo[]
  /** The newest ones. */
  alerts: readonly Pick<AlertRow, 'id' | 'cause' | 'videoId' | 'userId' | 'sessionId'>[]
  /** By id. */
  sessions: ReadonlyMap<string, Session>
}

export type AccountEvent =
  /** A list of videos shows something else. */
  | { type: 'videos' }
  /** Of a video that waits, is imported or is encoded; `state` is null once there is no more work on it. */
  | { type: 'progress'; video: string; status: string | null; state: QueuedVideo['state'] | null; part: number | null }
  | { type: 'alert'; cause: string; video: string | null; userId: string | null; session: string | null }
  | { type: 'session'; session: string; video: string; userId: string | null; state: 'started' | 'ended' }

/** How far a page has followed an account, by its rows: the same at all servers. */
export type EventCursor = { changeNumber: number; alertId: number }

export function cursorOf({ changeNumber, alerts }: AccountState): EventCursor {
  return { changeNumber, alertId: alerts[0]?.id ?? 0 }
}

/** What has happened since then and is of the past; sessions and work on videos are read as they are now. */
export function describeMissed(since: EventCursor, { changeNumber, alerts }: AccountState): AccountEvent[] {
  return [...videosBetween(since.changeNumber, changeNumber), ...alertsSince(since.alertId, alerts)]
}

/** What has happened between two states of an account. */
export function describeChanges(before: AccountState, after: AccountState): AccountEvent[] {
  return [
    ...videosBetween(before.changeNumber, after.changeNumber),
    ...progressBetween(before.queue, after.queue),
    ...alertsSince(cursorOf(before).alertId, after.alerts),
    ...sessionsBetween(before.sessions, after.sessions),
  ]
}

function videosBetween(before: number, after: number): AccountEvent[] {
  return before === after ? [] : [{ type: 'videos' }]
}

function progressBetween(before: readonly QueuedVideo[], after: readonly QueuedVideo[]): AccountEvent[] {
  if (before === after) return []
  const known = new Map(before.map((video) => [video.videoId, video]))
  const left = new Set(after.map(({ videoId }) => videoId))
  const changed = after.filter((video) => hasChanged(known.get(video.videoId), video))
  const finished = before.filter(({ videoId }) => !left.has(videoId))
  return [
    ...changed.map(({ videoId: video, status, state, part }) => ({ type: 'progress' as const, video, status, state, part })),
    ...finished.map(({ videoId: video }) => ({ type: 'progress' as const, video, status: null, state: null, part: null })),
  ]
}

function hasChanged(before: QueuedVideo | undefined, after: QueuedVideo): boolean {
  return before?.status !== after.status || before.state !== after.state || before.part !== after.part
}

function alertsSince(alertId: number, alerts: AccountState['alerts']): AccountEvent[] {
  return alerts
    .filter(({ id }) => id > alertId)
    .map(({ cause, videoId, userId, sessionId }) => ({
      ...{ type: 'alert' as const, cause, video: videoId || null, userId, session: sessionId },
    }))
    .toReversed()
}

function sessionsBetween(before: AccountState['sessions'], after: AccountState['sessions']): AccountEvent[] {
  const started = [...after.values()].filter(({ id }) => !before.has(id))
  const ended = [...before.values()].filter(({ id }) => !after.has(id))
  const toEvent = (state: 'started' | 'ended') => (session: Session) => {
    const { id, videoId: video, userId } = session
    return { type: 'session' as const, session: id, video, userId, state }
  }
  return [...started.map(toEvent('started')), ...ended.map(toEvent('ended'))]
}
