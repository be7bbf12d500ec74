import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import { addInterval, decodeIntervals, encodeIntervals, type Intervals, sumIntervals, wholeSeconds } from './intervals.ts'
import { findViewing, findViewingDay, markCompleted, saveViewing, saveViewingDay, type ViewingKey } from './viewing-store.ts'

// What each viewer has watched of each video. Merged in memory and saved every few seconds: a beat costs no write.

/** Seconds that were watched, where the viewer is, and how long the video is. */
export type Watched = { spans: readonly { fromS: number; toS: number }[]; positionS: number; durationS: number }

export type Viewings = {
  /** Adds seconds that a viewer has watched. */
  add(key: ViewingKey, watched: Watched): Promise<void>
  /** Where the last second is that the viewer watched; 0 for one who has watched nothing. */
  findPosition(key: ViewingKey): Promise<number>
  /** Writes what was added before the call, and drops from memory what was not used for a while. */
  save(): Promise<void>
  /** Drops a viewer of an account from memory, with what is not saved. */
  forget(accountId: string, userId: string): void
}

type Viewing = {
  key: ViewingKey
  intervals: Intervals
  /** By day, as far as it is not saved; and today's. */
  days: Map<number, Intervals>
  positionS: number
  durationS: number
  beganAtS: number
  lastAtS: number
  usedAtS: number
  isCompleted: boolean
  hasChanged: boolean
}

const DAY_S = 24 * 3600
/** Of a video's whole seconds: a viewer who has watched this much has watched it, since few watch the credits. */
const COMPLETED_SHARE = 0.9
const FORGET_AFTER_S = 300
/** Viewings saved in one transaction, which delays other writes by a few milliseconds. */
const SAVE_BATCH_SIZE = 250

/** @param nowS the playback clock */
export function createViewings({ db, write, nowS }: { db: Db; write: Write; nowS(): number }): Viewings {
  const viewings = new Map<string, Viewing>()
  const loading = new Map<string, Promise<Viewing>>()

  const today = () => Math.floor(nowS() / DAY_S)

  async function getViewing(key: ViewingKey): Promise<Viewing> {
    const name = nameOf(key)
    const viewing = viewings.get(name) ?? (await loadOnce(name, key))
    viewing.usedAtS = nowS()
    return viewing
  }

  async function loadOnce(name: string, key: ViewingKey): Promise<Viewing> {
    const promise = loading.get(name) ?? load(key).finally(() => loading.delete(name))
    loading.set(name, promise)
    const loaded = await promise
    const viewing = viewings.get(name) ?? loaded
    viewings.set(name, viewing)
    return viewing
  }

  async function load({ accountId, userId, videoId }: ViewingKey): Promise<Viewing> {
    const key = { accountId, userId, videoId }
    const atS = Math.floor(nowS())
    const day = today()
    const [row, ofToday] = await Promise.all([findViewing(db, key), findViewingDay(db, { ...key, day })])
    return {
      key,
      intervals: decodeIntervals(row?.intervals ?? ''),
      days: new Map([[day, decodeIntervals(ofToday?.intervals ?? '')]]),
      positionS: row?.positionS ?? 0,
      durationS: Number.POSITIVE_INFINITY,
      beganAtS: row?.beganAtS ?? atS,
      lastAtS: atS,
      usedAtS: atS,
      isCompleted: row !== undefined && row.completedAtS !== null,
      hasChanged: false,
    }
  }

  async function save(): Promise<void> {
    const changed = [...viewings.values()].filter(({ hasChanged }) => hasChanged)
    for (let first = 0; first < changed.length; first += SAVE_BATCH_SIZE) {
      const batch = changed.slice(first, first + SAVE_BATCH_SIZE)
      const rows = batch.map(toRows)
      for (const viewing of batch) viewing.hasChanged = false
      try {
        await write(async (tx) => {
          for (const { viewing, days, isNowCompleted } of rows) {
            await saveViewing(tx, viewing)
            for (const day of days) await saveViewingDay(tx, day)
            if (isNowCompleted) await complete(tx, viewing)
          }
        })
        for (const [index, { isNowCompleted }] of rows.entries())
          if (isNowCompleted) Object.assign(batch[index] ?? {}, { isCompleted: true })
      } catch (error) {
        for (const viewing of batch) viewing.hasChanged = true // the same again does no harm
        throw error
      }
    }
    dropUnused()
  }

  async function complete(tx: Db, { accountId, userId, videoId, watchedS }: ViewingKey & { watchedS: number }): Promise<void> {
    if (!(await markCompleted(tx, { accountId, userId, videoId }, Math.floor(nowS())))) return
    await addVideoEvents(tx, 'viewer:completed', [videoId], { userId, watchedS })
  }

  function dropUnused(): void {
    const day = today()
    for (const [name, { days, usedAtS, hasChanged }] of viewings) {
      if (hasChanged) continue
      if (usedAtS < nowS() - FORGET_AFTER_S) viewings.delete(name)
      else for (const saved of days.keys()) if (saved !== day) days.delete(saved)
    }
  }

  return {
    async add(key, { spans, positionS, durationS }) {
      const viewing = await getViewing(key)
      const day = today()
      let ofDay = viewing.days.get(day) ?? []
      for (const { fromS, toS } of spans) {
        viewing.intervals = addInterval(viewing.intervals, fromS, toS)
        ofDay = addInterval(ofDay, fromS, toS)
      }
      viewing.days.set(day, ofDay)
      Object.assign(viewing, { positionS, durationS, lastAtS: Math.floor(nowS()), hasChanged: true })
    },
    async findPosition(key) {
      const viewing = viewings.get(nameOf(key)) ?? (await findViewing(db, key))
      return viewing?.positionS ?? 0
    },
    save,
    forget(accountId, userId) {
      for (const [name, { key }] of viewings) if (key.accountId === accountId && key.userId === userId) viewings.delete(name)
    },
  }
}

const nameOf = ({ accountId, videoId, userId }: ViewingKey) => `${accountId} ${videoId} ${userId}`

function toRows({ key, intervals, days, positionS, durationS, beganAtS, lastAtS, isCompleted }: Viewing) {
  const columnsOf = (watched: Intervals) => ({ intervals: encodeIntervals(watched), watchedS: sumIntervals(watched) })
  return {
    isNowCompleted: !isCompleted && sumIntervals(intervals) >= COMPLETED_SHARE * wholeSeconds(durationS),
    viewing: { ...key, ...columnsOf(intervals), positionS, beganAtS, lastAtS },
    days: [...days].map(([day, watched]) => ({ ...key, day, ...columnsOf(watched) })),
  }
}
