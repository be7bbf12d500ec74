import type { Db } from '../../db/database.ts'
import type { KeyBudgetRow, PlaybackSessionRow } from '../../db/tables.ts'
import type { Write } from '../../db/write.ts'
import { createWriteBehind } from '../../db/write-behind.ts'
import { ipScopes } from '../../net/ip.ts'
import { LEASE_S } from '../lease.ts'
import type { PlayableVideo } from '../media/playable-video.ts'
import { windowDurationS } from '../media/playlist.ts'
import { affordableInS, type Balance, earn, type Terms, termsOfVideo, termsOfViewer } from './key-budget.ts'
import { type BudgetKey, findKeyBudget, saveKeyBudget } from './key-budget-store.ts'
import { hasWindow, joinWindows, withWindow } from './window-set.ts'

// Keys are released at the pace of watching: playback-protocol.md, section 6. Budgets are in memory and saved every few seconds.

/** A session, where its request came from, and its video. */
type Playing = {
  row: Pick<PlaybackSessionRow, 'id' | 'accountId' | 'userId' | 'streamLimit'>
  address: string
  video: PlayableVideo
}

/** When to ask for a key again, and how fast the video may play until then. */
type Wait = { waitMs: number; maxRate: number }

/** The budgets from which a session is given keys. */
export type SessionBudgets = {
  hasReleased(window: number): boolean
  /** Earns for a session that plays and has its stream slot, if it needs one. */
  recordPlaying(): void
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
  /** The key windows that it has released, by their generation: window-set.ts. */
  released: Map<number, Buffer>
  /** The generation that it last released a window of: the row has those of one. */
  releasedOf: number
  /** Of an address: when each session there last earned, in that order. */
  earningSessions: Map<string, number>
  /** What its row has, and the version of that; 0: it has none. */
  saved: Balance | undefined
  version: number
  /** What was paid from it and is not saved, in seconds of video. */
  unsavedS: number
  /** What its row has if the last write was committed, which is not known. */
  maybeSaved: BudgetChange | undefined
}

type BudgetChange = { row: KeyBudgetRow; paidS: number }

/** So many sessions without a userId earn at a time for their address, and for the network around it. */
const MAX_EARNING_SESSIONS = 3
/** Instead of a video's id, in the budget of a viewer over all of them. */
const ALL_VIDEOS = ''

/** @param nowS the playback clock, with fractions of seconds */
export function createKeyPacing({ db, write, nowS }: { db: Db; write: Write; nowS(): number }): KeyPacing {
  const budgets = createWriteBehind<Budget, BudgetChange>(
    { write, nowS },
    {
      toChange,
      async write(tx, { row }) {
        const { numAffectedRows } = await saveKeyBudget(tx, row)
        if (numAffectedRows) return undefined
        const found = await findKeyBudget(tx, row)
        return found && ((budget) => mergeRow(budget, found))
      },
      onWritten,
      onUnknown(budget, change) {
        budget.maybeSaved = change
      },
    },
  )

  const getBudget = (key: BudgetKey, { startS }: Terms) => budgets.getOrLoad(nameOf(key), () => load(key, startS))

  async function load(key: BudgetKey, startS: number): Promise<Budget> {
    const row = await findKeyBudget(db, key)
    const atS = nowS()
    const { levelS, earnedAtS } = row ?? { levelS: startS, earnedAtS: atS }
    const balance = { levelS, earnedAtS }
    const releasedOf = row?.releasedOf ?? 0
    const released = new Map(row ? [[releasedOf, row.released]] : [])
    const stored = { saved: row && { ...balance }, version: row?.version ?? 0, unsavedS: 0, maybeSaved: undefined }
    return { key, balance, released, releasedOf, earningSessions: new Map(), ...stored }
  }

  async function budgetsOf({ row, address, video }: Playing): Promise<SessionBudgets> {
    const { id: sessionId, accountId, userId } = row
    const { videoId, generation, sourceNumber, plan } = video
    const ofVideo = termsOfVideo(plan.durationS)
    const ofViewer = termsOfViewer(row.streamLimit)
    const viewer = userId === null ? `session ${sessionId}` : `user ${userId}`
    const budgetOf = (owner: string) => getBudget({ accountId, viewer: owner, videoId, sourceNumber }, ofVideo)
    const [own, ofAllVideos, ofAddresses] = await Promise.all([
      budgetOf(viewer),
      // An address may have any number of viewers.
      userId === null ? undefined : getBudget({ accountId, viewer, videoId: ALL_VIDEOS, sourceNumber: 0 }, ofViewer),
      // Without a userId an address has a budget, too: further OTPs there, and further addresses of a network, add little.
      Promise.all(userId === null ? ipScopes(address).map((scope) => budgetOf(`address ${scope}`)) : []),
    ])
    const ofVideoBudgets = [own, ...ofAddresses]

    /** An address earns for each of its sessions that play now, up to three. */
    const termsOf = ({ earningSessions }: Budget): Terms => ({
      ...ofVideo,
      rate: ofVideo.rate * Math.min(Math.max(1, earningSessions.size), MAX_EARNING_SESSIONS),
    })

    function recordPlaying() {
      const atS = nowS()
      for (const budget of ofAddresses) noteSession(budget, sessionId, atS)
      for (const budget of ofVideoBudgets) earn(budget.balance, termsOf(budget), atS)
      if (ofAllVideos) earn(ofAllVideos.balance, ofViewer, atS)
    }

    return {
      recordPlaying,
      hasReleased: (window) => ofVideoBudgets.every((budget) => hasWindow(releasedIn(budget, generation), window)),
      takeWindow(window) {
        recordPlaying()
        const due = ofVideoBudgets.filter((budget) => !hasWindow(releasedIn(budget, generation), window))
        if (due.length === 0) return undefined
        const costS = windowDurationS(video, window)
        const waitS = Math.max(
          ...due.map((budget) => affordableInS(budget.balance, termsOf(budget), costS)),
          ofAllVideos ? affordableInS(ofAllVideos.balance, ofViewer, costS) : 0,
        )
        if (waitS > 0) return { waitMs: Math.ceil(1000 * waitS), maxRate: Math.min(ofVideo.rate, ofViewer.rate) }
        for (const budget of due) {
          pay(budget, costS)
          budget.released.set(generation, withWindow(releasedIn(budget, generation), window))
          budget.releasedOf = generation
        }
        if (ofAllVideos) pay(ofAllVideos, costS)
        return undefined
      },
    }
  }

  return { budgetsOf, save: budgets.save }
}

/** Notes that a session plays, and forgets those that no longer do. */
function noteSession({ earningSessions }: Budget, sessionId: string, atS: number): void {
  earningSessions.delete(sessionId) // so that the first ones are those that have not earned for the longest time
  earningSessions.set(sessionId, atS)
  for (const [id, lastS] of earningSessions) {
    if (lastS > atS - LEASE_S) break
    earningSessions.delete(id)
  }
}

function releasedIn({ released }: Budget, generation: number): Buffer {
  return released.get(generation) ?? Buffer.alloc(0)
}

function pay(budget: Budget, costS: number): void {
  budget.balance.levelS -= costS
  budget.unsavedS += costS
}

/** What nothing was taken from need not be saved: a program may come from thousands of addresses. */
function toChange(budget: Budget): BudgetChange | undefined {
  const { key, balance, releasedOf, saved, version, unsavedS } = budget
  if (!saved && budget.released.size === 0 && key.videoId !== ALL_VIDEOS) return undefined
  if (saved?.levelS === balance.levelS && saved.earnedAtS === balance.earnedAtS) return undefined
  const usedAtS = Math.floor(balance.earnedAtS)
  const released = Buffer.from(releasedIn(budget, releasedOf))
  return { row: { ...key, ...balance, released, releasedOf, usedAtS, version }, paidS: unsavedS }
}

function onWritten(budget: Budget, { row, paidS }: BudgetChange): void {
  budget.saved = { levelS: row.levelS, earnedAtS: row.earnedAtS }
  budget.version = row.version + 1
  budget.unsavedS -= paidS
  budget.maybeSaved = undefined
}

/** Another server has released keys: they are paid for as well as those that were released here. What both have earned is earned once. */
function mergeRow(budget: Budget, row: KeyBudgetRow): void {
  const { levelS, earnedAtS, releasedOf, version } = row
  const { maybeSaved } = budget
  if (maybeSaved?.row.levelS === levelS && maybeSaved.row.earnedAtS === earnedAtS) {
    onWritten(budget, maybeSaved)
    return
  }
  budget.balance = { levelS: levelS - budget.unsavedS, earnedAtS }
  budget.released.set(releasedOf, joinWindows(releasedIn(budget, releasedOf), row.released))
  budget.saved = { levelS, earnedAtS }
  budget.version = version
  budget.maybeSaved = undefined
}

function nameOf({ accountId, videoId, sourceNumber, viewer }: BudgetKey): string {
  return `${accountId} ${videoId} ${sourceNumber} ${viewer}`
}
