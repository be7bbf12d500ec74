import type { Db } from '../../db/database.ts'
import type { KeyBudgetRow, PlaybackSessionRow } from '../../db/tables.ts'
import type { Write } from '../../db/write.ts'
import { ipScopes } from '../../net/ip.ts'
import { LEASE_S } from '../lease.ts'
import type { PlayableVideo } from '../media/playable-video.ts'
import { windowDurationS } from '../media/playlist.ts'
import { affordableInS, type Balance, earn, type Terms, termsOfVideo, termsOfViewer } from './key-budget.ts'
import { type BudgetKey, findFormerKeyBudget, findKeyBudget, saveKeyBudget } from './key-budget-store.ts'
import { hasWindow, withWindow } from './window-set.ts'

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
  /** The key windows that it has released: window-set.ts. */
  released: Buffer
  /** What its row has. */
  saved: Balance | undefined
  usedAtS: number
  /** Of a place: when each session there last earned, in that order. */
  watchers: Map<string, number>
}

/** So many sessions without a userId earn at a time for their address, and for the network around it. */
const MAX_EARNING_SESSIONS = 3
/** Instead of a video's id, in the budget of a viewer over all of them. */
const ALL_VIDEOS = ''
const FORGET_AFTER_S = 300
/** Budgets saved in one transaction, which delays other writes by a few milliseconds. */
const SAVE_BATCH_SIZE = 250

/** @param nowS the playback clock, with fractions of seconds */
export function createKeyPacing({ db, write, nowS }: { db: Db; write: Write; nowS(): number }): KeyPacing {
  const budgets = new Map<string, Budget>()
  const loading = new Map<string, Promise<Budget>>()

  async function getBudget(key: BudgetKey, { startS }: Terms): Promise<Budget> {
    const name = nameOf(key)
    const budget = budgets.get(name) ?? (await loadOnce(name, () => load(key, startS)))
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

  async function load(key: BudgetKey, startS: number): Promise<Budget> {
    const row = await findKeyBudget(db, key)
    const atS = nowS()
    const { levelS, earnedAtS } = row ?? (await findFormerBalance(key)) ?? { levelS: startS, earnedAtS: atS }
    const balance = { levelS, earnedAtS }
    const released = row?.released ?? Buffer.alloc(0)
    return { key, balance, released, saved: row && { ...balance }, usedAtS: atS, watchers: new Map() }
  }

  /** Of the generation before: a video that is encoded again from the same source does not begin again for its viewers. */
  async function findFormerBalance(key: BudgetKey): Promise<Balance | undefined> {
    if (key.generation <= 1) return undefined
    const row = await findFormerKeyBudget(db, key)
    for (let generation = key.generation - 1; generation >= (row?.generation ?? 1); generation--) {
      const inMemory = budgets.get(nameOf({ ...key, generation }))
      if (inMemory) return inMemory.balance
    }
    return row
  }

  async function budgetsOf({ row, address, video }: Playing): Promise<SessionBudgets> {
    const { id: sessionId, accountId, userId } = row
    const { videoId, generation, plan } = video
    const ofVideo = termsOfVideo(plan.durationS)
    const ofViewer = termsOfViewer(row.streamLimit)
    const viewer = userId === null ? `session ${sessionId}` : `user ${userId}`
    const budgetOf = (owner: string) => getBudget({ accountId, viewer: owner, videoId, generation }, ofVideo)
    const [own, ofAllVideos, ofPlaces] = await Promise.all([
      budgetOf(viewer),
      // An address may have any number of viewers.
      userId === null ? undefined : getBudget({ accountId, viewer, videoId: ALL_VIDEOS, generation: 0 }, ofViewer),
      // Without a userId a place has a budget, too: further OTPs there, and further addresses of a network, add little.
      Promise.all(userId === null ? ipScopes(address).map((scope) => budgetOf(`address ${scope}`)) : []),
    ])
    const ofVideoBudgets = [own, ...ofPlaces]

    /** A place earns for each of its sessions that play now, up to three. */
    const termsOf = ({ watchers }: Budget): Terms => ({
      ...ofVideo,
      rate: ofVideo.rate * Math.min(Math.max(1, watchers.size), MAX_EARNING_SESSIONS),
    })

    function recordWatching() {
      const atS = nowS()
      for (const place of ofPlaces) noteWatcher(place, sessionId, atS)
      for (const budget of ofVideoBudgets) earn(budget.balance, termsOf(budget), atS)
      if (ofAllVideos) earn(ofAllVideos.balance, ofViewer, atS)
    }

    return {
      recordWatching,
      hasReleased: (window) => ofVideoBudgets.every(({ released }) => hasWindow(released, window)),
      takeWindow(window) {
        recordWatching()
        const due = ofVideoBudgets.filter(({ released }) => !hasWindow(released, window))
        if (due.length === 0) return undefined
        const costS = windowDurationS(video, window)
        const waitS = Math.max(
          ...due.map((budget) => affordableInS(budget.balance, termsOf(budget), costS)),
          ofAllVideos ? affordableInS(ofAllVideos.balance, ofViewer, costS) : 0,
        )
        if (waitS > 0) return { waitMs: Math.ceil(1000 * waitS), maxRate: Math.min(ofVideo.rate, ofViewer.rate) }
        for (const budget of due) {
          budget.balance.levelS -= costS
          budget.released = withWindow(budget.released, window)
        }
        if (ofAllVideos) ofAllVideos.balance.levelS -= costS
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

/** Notes that a session watches, and forgets those that no longer do. */
function noteWatcher({ watchers }: Budget, sessionId: string, atS: number): void {
  watchers.delete(sessionId) // so that the first ones are those that have not earned for the longest time
  watchers.set(sessionId, atS)
  for (const [id, lastS] of watchers) {
    if (lastS > atS - LEASE_S) break
    watchers.delete(id)
  }
}

/** What nothing was taken from need not be saved: a program may come from thousands of addresses. */
function hasChanged({ key, balance, released, saved }: Budget): boolean {
  if (!saved && released.length === 0 && key.videoId !== ALL_VIDEOS) return false
  return saved?.levelS !== balance.levelS || saved.earnedAtS !== balance.earnedAtS
}

function nameOf({ accountId, videoId, generation, viewer }: BudgetKey): string {
  return `${accountId} ${videoId} ${generation} ${viewer}`
}

function toRow({ key, balance, released, usedAtS }: Budget): KeyBudgetRow {
  return { ...key, ...balance, released: Buffer.from(released), usedAtS: Math.floor(usedAtS) }
}
