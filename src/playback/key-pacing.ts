import type { Db } from '../db/database.ts'
import type { KeyBudgetRow, PlaybackSessionRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { ipRateLimitKey } from '../net/ip.ts'
import { affordableInS, type Balance, earn, type Terms, termsOfVideo, termsOfViewer } from './key-budget.ts'
import { type BudgetKey, findKeyBudget, saveKeyBudget } from './key-budget-store.ts'
import type { PlayableVideo } from './playable-video.ts'
import { windowCount, windowDurationS } from './playlist.ts'
import { LEASE_S } from './stream-slot-store.ts'

// Keys are released at the pace of watching: playback-protocol.md, section 6. Budgets are in memory and saved every few seconds.

/** A session, where its request came from, and its video. */
export type Playing = {
  row: Pick<PlaybackSessionRow, 'id' | 'accountId' | 'userId' | 'streamLimit'>
  address: string
  video: PlayableVideo
}

/** When to ask for a key again, and how fast the video may play until then. */
export type Wait = { waitMs: number; maxRate: number }

/** The budgets from which a session is given keys. */
export type SessionBudgets = {
  hasReleased(window: number): boolean
  /** Earns for a session that plays and has its stream slot, if it needs one. */
  recordWatching(): void
  /**
   * Earns, and pays for the key of a window unless it was released before. The session has its stream slot, if it needs one.
   * @returns undefined: the key may be released
   */
  takeWindow(window: number): Wait | undefined
}

export type KeyPacing = {
  budgetsOf(playing: Playing): Promise<SessionBudgets>
  /** Saves the budgets, and drops those from memory that were not used for a while. */
  save(): Promise<void>
}

type Budget = {
  key: BudgetKey
  balance: Balance
  /** A bit for each key window. */
  released: Buffer
  /** What its row has. */
  saved: Balance | undefined
  usedAtS: number
  /** When each session last earned, in that order. */
  watchers: Map<string, number>
}

/** So many sessions without a userId behind one address earn at a time. */
const MAX_EARNING_SESSIONS = 3
const FORGET_AFTER_S = 300
/** Budgets saved in one transaction, which delays other writes by a few milliseconds. */
const SAVE_BATCH_SIZE = 250

/** @param nowS the playback clock, with fractions of seconds */
export function createKeyPacing({ db, write, nowS }: { db: Db; write: Write; nowS(): number }): KeyPacing {
  const budgets = new Map<string, Budget>()
  const loading = new Map<string, Promise<Budget>>()

  async function getBudget(key: BudgetKey, { startS }: Terms, windows: number): Promise<Budget> {
    const name = `${key.accountId} ${key.videoId} ${key.generation} ${key.viewer}`
    const budget = budgets.get(name) ?? (await loadOnce(name, () => load(key, startS, windows)))
    budget.usedAtS = nowS()
    return budget
  }

  async function loadOnce(name: string, load: () => Promise<Budget>): Promise<Budget> {
    const promise = loading.get(name) ?? load().finally(() => loading.delete(name))
    loading.set(name, promise)
    const budget = budgets.get(name) ?? (await promise)
    budgets.set(name, budget)
    return budget
  }

  async function load(key: BudgetKey, startS: number, windows: number): Promise<Budget> {
    const row = await findKeyBudget(db, key)
    const atS = nowS()
    const balance = row ? { levelS: row.levelS, earnedAtS: row.earnedAtS } : { levelS: startS, earnedAtS: atS }
    const released = row?.released ?? Buffer.alloc(Math.ceil(windows / 8))
    return { key, balance, released, saved: row && { ...balance }, usedAtS: atS, watchers: new Map() }
  }

  async function budgetsOf({ row, address, video }: Playing): Promise<SessionBudgets> {
    const { id: sessionId, accountId, userId } = row
    const { videoId, generation, plan } = video
    const ofVideo = termsOfVideo(plan.durationS)
    const ofViewer = termsOfViewer(row.streamLimit)
    const viewer = userId === null ? `address ${ipRateLimitKey(address)}` : `user ${userId}`
    const [videoBudget, viewerBudget] = await Promise.all([
      getBudget({ accountId, viewer, videoId, generation }, ofVideo, windowCount(video)),
      // An address may have any number of viewers.
      userId === null ? undefined : getBudget({ accountId, viewer, videoId: '', generation: 0 }, ofViewer, 0),
    ])

    function recordWatching() {
      const atS = nowS()
      const sessions = userId === null ? countWatchers(videoBudget, sessionId, atS) : 1
      earn(videoBudget.balance, { ...ofVideo, rate: ofVideo.rate * Math.min(sessions, MAX_EARNING_SESSIONS) }, atS)
      if (viewerBudget) earn(viewerBudget.balance, ofViewer, atS)
    }

    return {
      recordWatching,
      hasReleased: (window) => isReleased(videoBudget, window),
      takeWindow(window) {
        recordWatching()
        if (isReleased(videoBudget, window)) return undefined
        const costS = windowDurationS(video, window)
        const waitS = Math.max(
          affordableInS(videoBudget.balance, ofVideo, costS),
          viewerBudget ? affordableInS(viewerBudget.balance, ofViewer, costS) : 0,
        )
        if (waitS > 0) return { waitMs: Math.ceil(1000 * waitS), maxRate: Math.min(ofVideo.rate, ofViewer.rate) }
        for (const budget of [videoBudget, viewerBudget]) if (budget) budget.balance.levelS -= costS
        markReleased(videoBudget, window)
        return undefined
      },
    }
  }

  async function save(): Promise<void> {
    const changed = [...budgets.values()].filter(hasChanged)
    for (let first = 0; first < changed.length; first += SAVE_BATCH_SIZE) {
      const rows = changed.slice(first, first + SAVE_BATCH_SIZE).map((budget) => ({ budget, row: toRow(budget) }))
      await write(async (tx) => {
        for (const { row } of rows) await saveKeyBudget(tx, row)
      })
      for (const { budget, row } of rows) budget.saved = { levelS: row.levelS, earnedAtS: row.earnedAtS }
    }
    const forgottenBeforeS = nowS() - FORGET_AFTER_S
    for (const [name, budget] of budgets) if (budget.usedAtS < forgottenBeforeS && !hasChanged(budget)) budgets.delete(name)
  }

  return { budgetsOf, save }
}

/** Notes that a session watches. @returns how many do now */
function countWatchers({ watchers }: Budget, sessionId: string, atS: number): number {
  watchers.delete(sessionId) // so that the first ones are those that have not earned for the longest time
  watchers.set(sessionId, atS)
  for (const [id, lastS] of watchers) {
    if (lastS > atS - LEASE_S) break
    watchers.delete(id)
  }
  return watchers.size
}

function isReleased({ released }: Budget, window: number): boolean {
  return ((released[window >> 3] ?? 0) & (1 << (window & 7))) !== 0
}

function markReleased({ released }: Budget, window: number): void {
  released[window >> 3] = (released[window >> 3] ?? 0) | (1 << (window & 7))
}

function hasChanged({ balance, saved }: Budget): boolean {
  return saved?.levelS !== balance.levelS || saved.earnedAtS !== balance.earnedAtS
}

function toRow({ key, balance, released, usedAtS }: Budget): KeyBudgetRow {
  return { ...key, ...balance, released: Buffer.from(released), usedAtS: Math.floor(usedAtS) }
}
