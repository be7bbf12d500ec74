import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { addInterval, decodeIntervals, encodeIntervals, type Intervals, sumIntervals } from './intervals.ts'
import { findViewing, findViewingDay, saveViewing, saveViewingDay, type ViewingKey } from './viewing-store.ts'

// What each viewer has watched of each video. Merged in memory and saved every few seconds: a beat costs no write.

/** Seconds that were watched, and where the viewer is. */
export type Watched = { spans: readonly { fromS: number; toS: number }[]; positionS: number }

export type Viewings = {
  /** Adds seconds that a viewer has watched. */
  add(key: ViewingKey, watched: Watched): Promise<void>
  /** Writes what was added before the call, and drops from memory what was not used for a while. */
  save(): Promise<void>
}

type Viewing = {
  key: ViewingKey
  intervals: Intervals
  /** By day, as far as it is not saved; and today's. */
  days: Map<number, Intervals>
  positionS: number
  beganAtS: number
  lastAtS: number
  usedAtS: number
  hasChanged: boolean
}

const DAY_S = 24 * 3600
const FORGET_AFTER_S = 300
/** Viewings saved in one transaction, which delays other writes by a few milliseconds. */
const SAVE_BATCH_SIZE = 250

/** @param nowS the playback clock */
export function createViewings({ db, write, nowS }: { db: Db; write: Write; nowS(): number }): Viewings {
  const viewings = new Map<string, Viewing>()
  const loading = new Map<string, Promise<Viewing>>()

  const today = () => Math.floor(nowS() / DAY_S)

  async function getViewing(key: ViewingKey): Promise<Viewing> {
    const name = `${key.accountId} ${key.videoId} ${key.userId}`
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
      beganAtS: row?.beganAtS ?? atS,
      lastAtS: atS,
      usedAtS: atS,
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
          for (const { viewing, days } of rows) {
            await saveViewing(tx, viewing)
            for (const day of days) await saveViewingDay(tx, day)
          }
        })
      } catch (error) {
        for (const viewing of batch) viewing.hasChanged = true // the same again does no harm
        throw error
      }
    }
    forget()
  }

  function forget(): void {
    const day = today()
    for (const [name, { days, usedAtS, hasChanged }] of viewings) {
      if (hasChanged) continue
      if (usedAtS < nowS() - FORGET_AFTER_S) viewings.delete(name)
      else for (const saved of days.keys()) if (saved !== day) days.delete(saved)
    }
  }

  return {
    async add(key, { spans, positionS }) {
      const viewing = await getViewing(key)
      const day = today()
      let ofDay = viewing.days.get(day) ?? []
      for (const { fromS, toS } of spans) {
        viewing.intervals = addInterval(viewing.intervals, fromS, toS)
        ofDay = addInterval(ofDay, fromS, toS)
      }
      viewing.days.set(day, ofDay)
      Object.assign(viewing, { positionS, lastAtS: Math.floor(nowS()), hasChanged: true })
    },
    save,
  }
}

function toRows({ key, intervals, days, positionS, beganAtS, lastAtS }: Viewing) {
  const columnsOf = (watched: Intervals) => ({ intervals: encodeIntervals(watched), watchedS: sumIntervals(watched) })
  return {
    viewing: { ...key, ...columnsOf(intervals), positionS, beganAtS, lastAtS },
    days: [...days].map(([day, watched]) => ({ ...key, day, ...columnsOf(watched) })),
  }
}
