import { setTimeout as pause } from 'node:timers/promises'
import type { Batches, Db } from '../../db/database.ts'
import type { KeyBudgetRow } from '../../db/tables.ts'
import type { Signals } from '../../signals/signals.ts'
import type { BudgetKey } from '../keys/key-budget-store.ts'
import {
  type Budget,
  budgetKeysOf,
  budgetsOf,
  isAlwaysKept,
  newBudget,
  type Playing,
  type SessionBudgets,
  toRow,
} from '../keys/session-budgets.ts'
import { LEASE_S } from '../lease.ts'
import type { PlayableVideo } from '../media/playable-video.ts'
import { type EndReason, PlaybackRefusal } from '../refusal.ts'
import { type LiveSession, recordEnd } from '../sessions/live-session.ts'
import type { Nonces } from '../sessions/proof.ts'
import { streamClaim } from '../sessions/stream-slot.ts'
import { openProofEpoch } from './proof-epoch.ts'
import {
  endTakenSessions,
  lockNumber,
  lockSessions,
  readKeyBudgets,
  readSlots,
  type SlotOwner,
  takeLocks,
  writeKeyBudgets,
  writeSessions,
  writeSlots,
} from './shared-rows.ts'
import { adoptRow, type SharedColumns, toColumns } from './shared-session.ts'
import { newViewerSlots, releaseViewerSlot, takeViewerSlot, type ViewerSlots } from './viewer-slots.ts'

// A request of a session whose requests any of several servers answers is one turn: its session, the slots of its viewer and its budgets
// are locked, read, decided on and written in one transaction, with those of other requests that arrive in the same millisecond.

/** What a turn decides on, locked and as it is on all servers. What it changes is written, also when it ends with a refusal. */
export type Turn = {
  session: LiveSession
  /** The playback clock, with its fraction. */
  preciseNowS: number
  /** Empty without a video. */
  budgets: SessionBudgets | undefined
  /** @throws PlaybackRefusal `stream-limit` */
  takeSlot(): void
  /** The slot is free now, or at that time. */
  releaseSlot(endsAtS: number | undefined): void
  /** The session ends now. */
  end(why: EndReason): void
  /** The transaction must survive a power cut of the database. */
  mustSurvive(): void
}

type TurnRequest<Result> = {
  session: LiveSession
  /** The epoch of the nonce that was checked. */
  epoch: string
  /** Where the request came from. */
  address: string
  /** Whose budgets are needed. */
  video: PlayableVideo | undefined
  /** Decides without waiting; may be called again, with the rows as they are then. @throws PlaybackRefusal */
  decide(turn: Turn): Result
}

export type Turns = { take<Result>(request: TurnRequest<Result>): Promise<Result> }

type TurnDeps = {
  batches: Batches
  signals: Pick<Signals, 'send'>
  nonces: Pick<Nonces, 'useEpoch'>
  /** The playback clock, with fractions of seconds. */
  preciseNowS(): number
}

/** A request that waits for its transaction. */
type Pending = Omit<TurnRequest<unknown>, 'decide'> & { decide(turn: Turn): void; resolve(): void; reject(error: unknown): void }
type Refused = { refusal: unknown }

/** Requests that arrive within this time share a transaction. */
const COLLECT_MS = 1
/** Under load a transaction begins so long after the one before: one for many requests takes little more than one for each of them. */
const PACE_MS = 8
const MAX_BATCH = 50

export function createTurns({ batches, signals, nonces, preciseNowS }: TurnDeps): Turns {
  let waiting: Pending[] = []
  const inFlight = new Set<string>()
  let running = 0
  let lastBeganMs = 0

  function take<Result>(request: TurnRequest<Result>): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      let result: Result
      const decide = (turn: Turn) => {
        result = request.decide(turn)
      }
      waiting.push({ ...request, decide, resolve: () => resolve(result), reject })
      void run()
    })
  }

  /** A session is in one transaction at a time, so that what is in memory of it is of the last one. */
  function takeBatch(): Pending[] {
    const batch: Pending[] = []
    const left: Pending[] = []
    const sessions = new Map<string, LiveSession>()
    for (const turn of waiting) {
      const { session } = turn
      // It may have been dropped from memory and read again since: then there are two copies of it.
      const isFree = !inFlight.has(session.row.id) && (sessions.get(session.row.id) ?? session) === session
      if (isFree && batch.length < MAX_BATCH) {
        batch.push(turn)
        sessions.set(session.row.id, session)
      } else left.push(turn)
    }
    waiting = left
    for (const id of sessions.keys()) inFlight.add(id)
    return batch
  }

  async function run(): Promise<void> {
    if (running >= batches.count) return
    running++
    do {
      await pause(Math.max(COLLECT_MS, lastBeganMs + PACE_MS - performance.now()))
      const batch = takeBatch()
      if (batch.length === 0) break
      lastBeganMs = performance.now()
      await runBatch(batch)
      for (const { session } of batch) inFlight.delete(session.row.id)
    } while (waiting.length > 0)
    running--
    if (waiting.length > 0 && running === 0) void run()
  }

  async function runBatch(batch: readonly Pending[]): Promise<void> {
    try {
      const { outcomes, state, written } = await batches.transaction((tx) => decideBatch(tx, batch))
      for (const columns of written) noteWritten(state, columns)
      if (state.taken.length > 0) void signals.send('session-ended', { sessionIds: state.taken, why: 'taken' })
      for (const [n, turn] of batch.entries()) {
        const refused = outcomes[n]
        if (refused) turn.reject(refused.refusal)
        else turn.resolve()
      }
    } catch (error) {
      for (const turn of batch) turn.reject(error)
    }
  }

  async function decideBatch(tx: Db, batch: readonly Pending[]) {
    const state = await lockState(tx, batch, preciseNowS)
    for (const { epoch } of state.rows.values()) nonces.useEpoch(epoch ?? (await openProofEpoch(tx)))
    const outcomes = batch.map((turn): Refused | undefined => {
      const row = state.rows.get(turn.session.row.id)
      if (!row) return { refusal: new PlaybackRefusal('not-allowed') } // its viewer was erased meanwhile
      if (row.epoch !== turn.epoch) return { refusal: new PlaybackRefusal('proof-stale') }
      try {
        turn.decide(turnOn(state, turn))
        return undefined
      } catch (error) {
        return { refusal: error }
      }
    })
    const written = await writeState(tx, state)
    return { result: { outcomes, state, written }, isDurable: state.isDurable }
  }

  return { take }
}

/** The rows that the requests of one transaction have locked, in memory. */
type State = {
  /** The playback clock when they were locked. */
  nowS: number
  rows: Map<string, SharedColumns & { epoch: string | null }>
  sessions: Map<string, LiveSession>
  changedSessions: Set<LiveSession>
  slots: Map<string, ViewerSlots & { owner: SlotOwner }>
  budgets: Map<string, Budget & { isStored: boolean; before: string }>
  /** Sessions that are not in this transaction by themselves, and lose their slot. */
  taken: string[]
  isDurable: boolean
}

const budgetName = ({ accountId, videoId, sourceNumber, viewer }: BudgetKey) =>
  `${accountId} ${videoId} ${sourceNumber} ${viewer}`
const slotName = ({ accountId, userId }: SlotOwner) => `${accountId} ${userId}`

async function lockState(tx: Db, batch: readonly Pending[], preciseNowS: () => number): Promise<State> {
  const sessions = new Map(batch.map(({ session }) => [session.row.id, session]))
  const { owners, keys } = findWanted(batch)
  const locks = [
    ...[...owners.keys()].map((name) => lockNumber('slots', name)),
    ...[...keys.keys()].map((name) => lockNumber('budget', name)),
  ]
  const wantedKeys = [...keys.values()].map(({ key }) => key)
  const [, rows, slotRows, budgetRows] = await Promise.all([
    locks.length > 0 && takeLocks(tx, new Set(locks)),
    lockSessions(tx, [...sessions.keys()], [...owners.values()]),
    owners.size > 0 ? readSlots(tx, [...owners.values()]) : [],
    wantedKeys.length > 0 ? readKeyBudgets(tx, wantedKeys) : [],
  ])
  const nowS = preciseNowS()
  for (const row of rows) {
    const session = sessions.get(row.id)
    if (session) adoptRow(session, row, 1000 * nowS)
  }
  return {
    ...{ nowS, sessions, changedSessions: new Set(), taken: [], isDurable: false },
    rows: new Map(rows.map((row) => [row.id, row])),
    slots: openSlots(owners, slotRows),
    budgets: openBudgets(keys, budgetRows, nowS),
  }
}

type WantedBudget = { key: BudgetKey; startS: number }

/** Whose slots and which budgets the requests may change, by name. */
function findWanted(batch: readonly Pending[]) {
  const owners = new Map<string, SlotOwner>()
  const keys = new Map<string, WantedBudget>()
  for (const { session, video, address } of batch) {
    const claim = streamClaim(session)
    if (claim) owners.set(slotName(claim), { accountId: claim.accountId, userId: claim.userId })
    if (!video) continue
    const { own, ofAllVideos, ofAddresses } = budgetKeysOf({ row: session.row, address, video })
    for (const wanted of [own, ...(ofAllVideos ? [ofAllVideos] : []), ...ofAddresses]) keys.set(budgetName(wanted.key), wanted)
  }
  return { owners, keys }
}

function openSlots(owners: ReadonlyMap<string, SlotOwner>, rows: Awaited<ReturnType<typeof readSlots>>): State['slots'] {
  const rowsOf = Map.groupBy(rows, slotName)
  return new Map(
    [...owners].map(([name, owner]) => {
      const own = rowsOf.get(name) ?? []
      const stopsOldest = own[0]?.streamLimitPolicy === 'stop-oldest'
      const slots = own.map(({ streamLimitPolicy: _, ...row }) => row)
      return [name, { ...newViewerSlots(slots, stopsOldest), owner }]
    }),
  )
}

function openBudgets(keys: ReadonlyMap<string, WantedBudget>, rows: readonly KeyBudgetRow[], nowS: number): State['budgets'] {
  const rowOf = new Map(rows.map((row) => [budgetName(row), row]))
  return new Map(
    [...keys].map(([name, { key, startS }]) => {
      const row = rowOf.get(name)
      const budget = newBudget(key, startS, row, nowS)
      return [name, { ...budget, isStored: row !== undefined, before: balanceText(budget) }]
    }),
  )
}

const balanceText = ({ balance: { levelS, earnedAtS } }: Budget) => `${levelS} ${earnedAtS}`

function turnOn(state: State, { session, video, address }: Pending): Turn {
  const nowS = Math.floor(state.nowS)
  const claim = streamClaim(session)
  const slots = claim && state.slots.get(slotName(claim))
  state.changedSessions.add(session)

  function end(ended: LiveSession, why: EndReason): void {
    recordEnd(ended, nowS, why)
    state.isDurable = true
  }

  return {
    session,
    preciseNowS: state.nowS,
    budgets: video && budgetsOn(state, { row: session.row, address, video }),
    takeSlot() {
      if (!claim || !slots) return
      const { stopped, freeAtS } = takeViewerSlot(slots, claim, nowS, nowS + LEASE_S)
      if (freeAtS !== undefined) throw new PlaybackRefusal('stream-limit', { waitMs: 1000 * Math.max(0, freeAtS - nowS) })
      if (stopped === undefined) return
      const inBatch = state.sessions.get(stopped)
      if (inBatch) {
        state.changedSessions.add(inBatch)
        end(inBatch, 'taken')
      }
      state.taken.push(stopped)
      state.isDurable = true
    },
    releaseSlot: (endsAtS) => slots && releaseViewerSlot(slots, session.row.id, endsAtS),
    end(why) {
      if (slots) releaseViewerSlot(slots, session.row.id, undefined)
      end(session, why)
    },
    mustSurvive() {
      state.isDurable = true
    },
  }
}

function budgetsOn({ budgets, nowS }: State, playing: Playing): SessionBudgets {
  const { own, ofAllVideos, ofAddresses } = budgetKeysOf(playing)
  const find = ({ key }: { key: BudgetKey }) => {
    const budget = budgets.get(budgetName(key))
    if (!budget) throw new Error('a budget was not locked')
    return budget
  }
  const found = { own: find(own), ofAllVideos: ofAllVideos && find(ofAllVideos), ofAddresses: ofAddresses.map(find) }
  return budgetsOf(playing, found, () => nowS)
}

/** Its row has what is in memory, so nothing is left to be saved. */
function noteWritten({ sessions, rows }: State, { endedAtS, endReason, ...columns }: SharedColumns): void {
  const session = sessions.get(columns.id)
  if (session) session.row = { ...session.row, ...columns, version: (rows.get(columns.id)?.version ?? 0) + 1 }
}

/** @returns what the sessions now have */
async function writeState(tx: Db, state: State): Promise<SharedColumns[]> {
  const { changedSessions, slots, budgets, taken, sessions, nowS } = state
  const columns = [...changedSessions].map(toColumns)
  const { stored = [], others = [] } = Object.groupBy(findChanged(budgets), ({ isStored }) => (isStored ? 'stored' : 'others'))
  const changed = [...slots.values()].filter((viewer) => viewer.changed.size > 0)
  const written = changed.flatMap((viewer) => viewer.rows.filter(({ n }) => viewer.changed.has(n)))
  const emptied = changed.flatMap(({ owner, rows, changed: numbers }) =>
    [...numbers].filter((n) => !rows.some((row) => row.n === n)).map((n) => ({ ...owner, n })),
  )
  const endedElsewhere = taken.filter((id) => !sessions.has(id))
  await Promise.all([
    columns.length > 0 && writeSessions(tx, columns),
    changed.length > 0 && writeSlots(tx, written, emptied),
    stored.length + others.length > 0 && writeKeyBudgets(tx, { stored: stored.map(toRow), others: others.map(toRow) }),
    endedElsewhere.length > 0 && endTakenSessions(tx, endedElsewhere, Math.floor(nowS)),
  ])
  return columns
}

/** What nothing was taken from need not be stored. */
function findChanged(budgets: State['budgets']) {
  return [...budgets.values()].filter(
    (budget) =>
      balanceText(budget) !== budget.before && (budget.isStored || budget.released.size > 0 || isAlwaysKept(budget.key)),
  )
}
