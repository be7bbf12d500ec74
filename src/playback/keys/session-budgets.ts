import type { KeyBudgetRow, PlaybackSessionRow } from '../../db/tables.ts'
import { ipScopes } from '../../net/ip.ts'
import { LEASE_S } from '../lease.ts'
import type { PlayableVideo } from '../media/playable-video.ts'
import { windowDurationS } from '../media/playlist.ts'
import { affordableInS, type Balance, earn, type Terms, termsOfVideo, termsOfViewer } from './key-budget.ts'
import type { BudgetKey } from './key-budget-store.ts'
import { hasWindow, withWindow } from './window-set.ts'

// What the budgets of a session decide, wherever they are kept: playback-protocol.md, section 6.

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
  recordPlaying(): void
  /**
   * Earns, and pays for the key of a window unless it was released before. The session has its stream slot, if it needs one.
   * @returns undefined: the key may be released
   */
  takeWindow(window: number): Wait | undefined
}

export type Budget = {
  key: BudgetKey
  balance: Balance
  /** The key windows that it has released, by their generation: window-set.ts. */
  released: Map<number, Buffer>
  /** The generation that it last released a window of: the row has those of one. */
  releasedOf: number
  /** Of an address: when each of the last sessions there earned, in that order. */
  earningSessions: Map<string, number>
  /** What was paid from it since it was read or saved, in seconds of video. */
  unsavedS: number
}

/** So many sessions without a userId earn at a time for their address, and for the network around it. */
const MAX_EARNING_SESSIONS = 3
/** Instead of a video's id, in the budget of a viewer over all of them. */
const ALL_VIDEOS = ''

/** Whether it is kept although nothing was released from it: a program may come from thousands of addresses. */
export function isAlwaysKept({ videoId }: BudgetKey): boolean {
  return videoId === ALL_VIDEOS
}

/** One for each of the budgets that a first release is charged to. */
type BudgetSet<Item> = { own: Item; ofAllVideos: Item | undefined; ofAddresses: Item[] }

/** What each budget is called, and what it starts with. */
export function budgetKeysOf({ row, address, video }: Playing): BudgetSet<{ key: BudgetKey; startS: number }> {
  const { accountId, userId } = row
  const { videoId, sourceNumber, plan } = video
  const { startS } = termsOfVideo(plan.durationS)
  const viewer = userId === null ? `session ${row.id}` : `user ${userId}`
  const ofVideo = (owner: string) => ({ key: { accountId, viewer: owner, videoId, sourceNumber }, startS })
  const ofAllVideos = {
    key: { accountId, viewer, videoId: ALL_VIDEOS, sourceNumber: 0 },
    startS: termsOfViewer(row.streamLimit).startS,
  }
  return {
    own: ofVideo(viewer),
    // An address may have any number of viewers.
    ofAllVideos: userId === null ? undefined : ofAllVideos,
    // Without a userId an address has a budget, too: further OTPs there, and further addresses of a network, add little.
    ofAddresses: userId === null ? ipScopes(address).map((scope) => ofVideo(`address ${scope}`)) : [],
  }
}

/** A budget as its row has it, or a new one. */
export function newBudget(key: BudgetKey, startS: number, row: KeyBudgetRow | undefined, nowS: number): Budget {
  const { levelS, earnedAtS } = row ?? { levelS: startS, earnedAtS: nowS }
  const releasedOf = row?.releasedOf ?? 0
  const released = new Map(row ? [[releasedOf, row.released]] : [])
  const earningSessions = new Map<string, number>(JSON.parse(row?.earning ?? '[]'))
  return { key, balance: { levelS, earnedAtS }, released, releasedOf, earningSessions, unsavedS: 0 }
}

export function budgetsOf({ row, video }: Playing, budgets: BudgetSet<Budget>, nowS: () => number): SessionBudgets {
  const { own, ofAllVideos, ofAddresses } = budgets
  const { generation, plan } = video
  const ofVideo = termsOfVideo(plan.durationS)
  const ofViewer = termsOfViewer(row.streamLimit)
  const ofVideoBudgets = [own, ...ofAddresses]

  /** An address earns for each of its sessions that play now, up to three. */
  const termsOf = ({ earningSessions }: Budget): Terms => ({
    ...ofVideo,
    rate: ofVideo.rate * Math.min(Math.max(1, earningSessions.size), MAX_EARNING_SESSIONS),
  })

  function recordPlaying() {
    const atS = nowS()
    for (const budget of ofAddresses) noteSession(budget, row.id, atS)
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

/** Notes that a session plays, and forgets those that no longer do, and those that add nothing. */
function noteSession({ earningSessions }: Budget, sessionId: string, atS: number): void {
  earningSessions.delete(sessionId) // so that the first ones are those that have not earned for the longest time
  earningSessions.set(sessionId, atS)
  for (const [id, lastS] of earningSessions) {
    if (lastS > atS - LEASE_S && earningSessions.size <= MAX_EARNING_SESSIONS) break
    earningSessions.delete(id)
  }
}

/** An index has when it was used: PostgreSQL changes a row in place, without its indexes, as long as that is the same. */
const USED_STEP_S = 900

/** As its row has it, without the version. */
export function toRow({ key, balance, releasedOf, earningSessions, ...budget }: Budget): Omit<KeyBudgetRow, 'version'> {
  const released = Buffer.from(releasedIn(budget, releasedOf))
  const earning = earningSessions.size > 0 ? JSON.stringify([...earningSessions]) : null
  const usedAtS = USED_STEP_S * Math.ceil(balance.earnedAtS / USED_STEP_S)
  return { ...key, ...balance, released, releasedOf, earning, usedAtS }
}

export function releasedIn({ released }: Pick<Budget, 'released'>, generation: number): Buffer {
  return released.get(generation) ?? Buffer.alloc(0)
}

function pay(budget: Budget, costS: number): void {
  budget.balance.levelS -= costS
  budget.unsavedS += costS
}
