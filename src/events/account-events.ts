import type { Logger } from 'pino'
import { listAlertRows } from '../alerts/alert-store.ts'
import type { Db } from '../db/database.ts'
import { Failure, logLevelFor } from '../errors.ts'
import { isWatching, type LiveSessions, MAX_SILENT_S } from '../playback/sessions/live-session.ts'
import { listWatchingSessions } from '../playback/sessions/session-store.ts'
import { type AccountQueueDeps, listQueue } from '../progress/account-queue.ts'
import type { Servers } from '../servers/servers.ts'
import { findChangeNumber } from './change-number-store.ts'
import {
  type AccountEvent,
  type AccountState,
  cursorOf,
  describeChanges,
  describeMissed,
  type EventCursor,
  type Session,
} from './changes.ts'

// What happens in an account, for pages that show it while it happens. Nothing announces it: as long as someone listens, the rows of that
// account are compared with what they were a second ago. So no other feature knows of it, and no process misses what another one changes.

type AccountEventsDeps = AccountQueueDeps & {
  db: Db
  sessions: Pick<LiveSessions, 'values'>
  servers: Pick<Servers, 'isShared'>
  /** The playback clock. */
  nowS: () => number
  log: Logger
}

export type AccountEvents = {
  /**
   * Calls `listener` with what happens in an account, in this order, and about once a second with nothing. What happens after it
   * resolves is not missed.
   * @param since how far it has followed the account before, at any server; what it has missed comes first
   * @returns what ends that
   * @throws Failure `limited` when too many listen
   */
  listen(accountId: string, listener: Listener, since?: EventCursor): Promise<() => void>
  stop(): void
}
type Listener = (events: readonly AccountEvent[], cursor: EventCursor) => void

/** `listeners`: each with how far it has come, until it has got what it has missed. */
type Watched = { listeners: Map<Listener, EventCursor | undefined>; state: AccountState | undefined }

const INTERVAL_MS = 1_000
const MAX_LISTENERS_PER_ACCOUNT = 200
const MAX_LISTENERS = 2_000
const MAX_ALERTS = 20
const MAX_SESSIONS = 500

export function createAccountEvents(deps: AccountEventsDeps): AccountEvents {
  const { log } = deps
  const accounts = new Map<string, Watched>()
  let timer: NodeJS.Timeout | undefined
  let isComparing = false

  async function compareAll(): Promise<void> {
    if (isComparing) return // a slow database is not asked twice
    isComparing = true
    const sessions = sessionsHere()
    for (const [accountId, watched] of accounts)
      await compare(accountId, watched, sessions.get(accountId)).catch((error) =>
        log[logLevelFor(error, 'warn')]({ err: error }, 'events: reading the state of an account failed'),
      )
    isComparing = false
  }

  async function compare(accountId: string, watched: Watched, here: AccountState['sessions'] = new Map()): Promise<void> {
    const before = watched.state
    const sessions = deps.servers.isShared() ? await sessionsOfAll(accountId, here) : here
    const state = { ...(await readState(accountId)), sessions }
    watched.state = state
    const events = before === undefined ? [] : describeChanges(before, state)
    for (const [listener, since] of watched.listeners) {
      watched.listeners.set(listener, undefined)
      listener(since ? describeMissed(since, state) : events, cursorOf(state))
    }
  }

  async function readState(accountId: string): Promise<Omit<AccountState, 'sessions'>> {
    return {
      changeNumber: await findChangeNumber(deps.db, accountId),
      alerts: await listAlertRows(deps.db, accountId, {}, { limit: MAX_ALERTS }),
      queue: await listQueue(deps, accountId),
    }
  }

  /** What other servers have is in rows, a few seconds old. */
  async function sessionsOfAll(accountId: string, here: AccountState['sessions']): Promise<AccountState['sessions']> {
    const seen = { seenSinceS: deps.nowS() - MAX_SILENT_S, limit: MAX_SESSIONS }
    const stored = await listWatchingSessions(deps.db, accountId, {}, seen)
    return new Map([...stored.map((row): [string, Session] => [row.id, row]), ...here])
  }

  /** By account, as far as anyone listens to it. */
  function sessionsHere(): Map<string, AccountState['sessions']> {
    const found = new Map([...accounts.keys()].map((id): [string, Map<string, Session>] => [id, new Map()]))
    for (const session of deps.sessions.values()) {
      const { row } = session
      if (found.has(row.accountId) && isWatching(session, deps.nowS())) found.get(row.accountId)?.set(row.id, row)
    }
    return found
  }

  function countListeners(): number {
    return [...accounts.values()].reduce((sum, { listeners }) => sum + listeners.size, 0)
  }

  return {
    async listen(accountId, listener, since) {
      const watched: Watched = accounts.get(accountId) ?? { listeners: new Map(), state: undefined }
      if (watched.listeners.size >= MAX_LISTENERS_PER_ACCOUNT || countListeners() >= MAX_LISTENERS)
        throw new Failure('limited', 'Too many pages follow what happens here. Close some of them.', { retryAfterS: 60 })
      watched.listeners.set(listener, watched.state ? undefined : since)
      accounts.set(accountId, watched)
      timer ??= setInterval(compareAll, INTERVAL_MS).unref()
      function stopListening(): void {
        watched.listeners.delete(listener)
        if (watched.listeners.size === 0) accounts.delete(accountId)
        if (accounts.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
      try {
        // What the listener reads from now on is compared with this.
        if (watched.state) listener(since ? describeMissed(since, watched.state) : [], cursorOf(watched.state))
        else await compare(accountId, watched, sessionsHere().get(accountId))
      } catch (error) {
        stopListening()
        throw error
      }
      return stopListening
    },
    stop() {
      clearInterval(timer)
      accounts.clear()
    },
  }
}
