import type { Db } from '../db/database.ts'
import type { ViewingDayRow, ViewingRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { createWriteBehind, type Merge } from '../db/write-behind.ts'
import { DAY_S } from '../time.ts'
import { addVideoEvents } from '../webhooks/outbox.ts'
import {
  cutIntervals,
  decodeIntervals,
  encodeIntervals,
  type Intervals,
  joinIntervals,
  sumIntervals,
  wholeSeconds,
} from './intervals.ts'
import { findViewing, findViewingDay, markCompleted, saveViewing, saveViewingDay, type ViewingKey } from './viewing-store.ts'

// What each viewer has watched of each video. Beats add to it in memory, and cost no write.

/**
 * Seconds that were watched, where the viewer is, and how long the video is, which begins at `timelineStartS` on the time line that all
 * that it was and will be shares: trimmed, it still knows what was watched.
 */
type Watched = {
  spans: readonly { fromS: number; toS: number }[]
  positionS: number
  durationS: number
  timelineStartS: number
}

export type Viewings = {
  /** Adds seconds that a viewer has watched. */
  add(key: ViewingKey, watched: Watched): Promise<void>
  /** Where the last second is that the viewer watched, on the time line; 0 for one who has watched nothing. */
  findPosition(key: ViewingKey): Promise<number>
  /** Writes what was added before the call, and drops from memory what was not used for a while. */
  save(): Promise<void>
  /** Drops a viewer of an account from memory, with what is not saved. */
  forget(accountId: string, userId: string): void
}

type Viewing = {
  key: ViewingKey
  /** Of its row, as it was last saved or loaded; 0: it has none. */
  version: number
  intervals: Intervals
  /** By day, as far as it is not saved; and today's. */
  days: Map<number, Intervals>
  positionS: number
  durationS: number
  timelineStartS: number
  beganAtS: number
  lastAtS: number
  isCompleted: boolean
  /** The last whole tenth that `onTenth` was called for. */
  tenths: number
  /** How often it was added to, and up to which of them it is saved. */
  additions: number
  savedAdditions: number
}

/** The rows of a viewing after so many additions, and whether its viewer has now watched most of the video. */
type ViewingChange = {
  viewing: Parameters<typeof saveViewing>[1]
  days: ViewingDayRow[]
  isNowCompleted: boolean
  lengthS: number
  /** Whether it has reached another tenth of the video. */
  tenths: number
  isNewTenth: boolean
  additions: number
}

/** Of a video's whole seconds: a viewer who has watched this much has watched it, since few watch the credits. */
const COMPLETED_SHARE = 0.9

/** Called in the transaction that stores another tenth of a video as watched. */
type OnTenth = (tx: Db, viewing: ViewingKey, watched: { watchedS: number; lengthS: number; nowS: number }) => Promise<void>

type ViewingsDeps = { db: Db; write: Write /** The playback clock. */; nowS(): number; onTenth: OnTenth }

export function createViewings({ db, write, nowS, onTenth }: ViewingsDeps): Viewings {
  const today = () => Math.floor(nowS() / DAY_S)

  const viewings = createWriteBehind<Viewing, ViewingChange>(
    { write, nowS },
    {
      toChange: (viewing) => (viewing.additions > viewing.savedAdditions ? toRows(viewing) : undefined),
      write: (tx, change) => writeRows(tx, change, { nowS: Math.floor(nowS()), onTenth }),
      onWritten(viewing, { viewing: { version }, isNowCompleted, tenths, additions }) {
        Object.assign(viewing, { version: version + 1, savedAdditions: additions, tenths })
        viewing.isCompleted ||= isNowCompleted
        if (viewing.additions > additions) return
        for (const day of viewing.days.keys()) if (day !== today()) viewing.days.delete(day)
      },
    },
  )

  async function load({ accountId, userId, videoId }: ViewingKey): Promise<Viewing> {
    const key = { accountId, userId, videoId }
    const atS = Math.floor(nowS())
    const day = today()
    const [row, ofToday] = await Promise.all([findViewing(db, key), findViewingDay(db, { ...key, day })])
    return {
      key,
      version: row?.version ?? 0,
      intervals: decodeIntervals(row?.intervals ?? ''),
      days: new Map([[day, decodeIntervals(ofToday?.intervals ?? '')]]),
      positionS: row?.positionS ?? 0,
      durationS: Number.POSITIVE_INFINITY,
      timelineStartS: 0,
      beganAtS: row?.beganAtS ?? atS,
      lastAtS: atS,
      isCompleted: row !== undefined && row.completedAtS !== null,
      tenths: 0,
      additions: 0,
      savedAdditions: 0,
    }
  }

  return {
    async add(key, { spans, positionS, durationS, timelineStartS }) {
      const viewing = await viewings.getOrLoad(nameOf(key), () => load(key))
      const day = today()
      const startS = Math.round(timelineStartS)
      const watched = spans.flatMap(({ fromS, toS }) => [fromS + startS, toS + startS])
      viewing.intervals = joinIntervals(viewing.intervals, watched)
      viewing.days.set(day, joinIntervals(viewing.days.get(day) ?? [], watched))
      Object.assign(viewing, { positionS: positionS + timelineStartS, durationS, timelineStartS, lastAtS: Math.floor(nowS()) })
      viewing.additions++
    },
    async findPosition(key) {
      const viewing = viewings.get(nameOf(key)) ?? (await findViewing(db, key))
      return viewing?.positionS ?? 0
    },
    save: viewings.save,
    forget: (accountId, userId) => viewings.forget(({ key }) => key.accountId === accountId && key.userId === userId),
  }
}

const nameOf = ({ accountId, videoId, userId }: ViewingKey) => `${accountId} ${videoId} ${userId}`

function toRows({ key, version, intervals, days, positionS, beganAtS, lastAtS, ...viewing }: Viewing): ViewingChange {
  const { timelineStartS, durationS } = viewing
  const lengthS = wholeSeconds(durationS)
  const watchedS = sumIntervals(cutIntervals(intervals, { fromS: timelineStartS, lengthS }))
  const tenths = lengthS > 0 ? Math.floor((10 * watchedS) / lengthS) : 0
  const columnsOf = (watched: Intervals) => ({ intervals: encodeIntervals(watched), watchedS: sumIntervals(watched) })
  return {
    viewing: { ...key, version, intervals: encodeIntervals(intervals), watchedS, positionS, beganAtS, lastAtS },
    days: [...days].map(([day, watched]) => ({ ...key, day, ...columnsOf(watched) })),
    isNowCompleted: !viewing.isCompleted && watchedS >= COMPLETED_SHARE * lengthS,
    ...{ lengthS, tenths, isNewTenth: tenths > viewing.tenths },
    additions: viewing.additions,
  }
}

async function writeRows(
  tx: Db,
  { viewing, days, isNowCompleted, isNewTenth, lengthS }: ViewingChange,
  { nowS, onTenth }: { nowS: number; onTenth: OnTenth },
): Promise<Merge<Viewing> | undefined> {
  const { numAffectedRows } = await saveViewing(tx, viewing)
  if (!numAffectedRows) return findMerge(tx, viewing, days)
  for (const day of days) await saveViewingDay(tx, day)
  if (isNowCompleted) await complete(tx, viewing, nowS)
  if (isNewTenth) await onTenth(tx, viewing, { watchedS: viewing.watchedS, lengthS, nowS })
  return undefined
}

/** @returns undefined when nothing was written because the video was deleted */
async function findMerge(
  tx: Db,
  saved: ViewingChange['viewing'],
  days: readonly ViewingDayRow[],
): Promise<Merge<Viewing> | undefined> {
  const row = await findViewing(tx, saved)
  if (!row || row.version === saved.version) return undefined
  const dayRows: ViewingDayRow[] = []
  for (const day of days) dayRows.push((await findViewingDay(tx, day)) ?? day)
  return (viewing) => mergeRows(viewing, row, dayRows)
}

/** What was watched at several servers is watched; the viewer is where the last of them saw it. */
function mergeRows(viewing: Viewing, row: ViewingRow, dayRows: readonly ViewingDayRow[]): void {
  viewing.version = row.version
  viewing.intervals = joinIntervals(viewing.intervals, decodeIntervals(row.intervals))
  for (const { day, intervals } of dayRows)
    viewing.days.set(day, joinIntervals(viewing.days.get(day) ?? [], decodeIntervals(intervals)))
  if (row.lastAtS > viewing.lastAtS) Object.assign(viewing, { lastAtS: row.lastAtS, positionS: row.positionS })
  viewing.beganAtS = Math.min(viewing.beganAtS, row.beganAtS)
  viewing.isCompleted ||= row.completedAtS !== null
}

async function complete(
  tx: Db,
  { accountId, userId, videoId, watchedS }: ViewingKey & { watchedS: number },
  completedAtS: number,
): Promise<void> {
  if (!(await markCompleted(tx, { accountId, userId, videoId }, completedAtS))) return
  await addVideoEvents(tx, 'viewer:completed', [videoId], { userId, watchedS })
}
