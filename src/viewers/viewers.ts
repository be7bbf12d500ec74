import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { listExisting } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure, videoNotFound } from '../errors.ts'
import { DAY_S, isDay, utcDay } from '../time.ts'
import { cutIntervals, decodeIntervals, pairsOf, sumIntervals, wholeSeconds } from './intervals.ts'
import type { Viewings } from './saved-viewings.ts'
import {
  listOtpsOfViewer,
  listViewingDays,
  listViewingsOfVideo,
  listViewingsOfViewer,
  removeOtps,
  removeViewer,
  type VideoViewing,
  type ViewerKey,
  type ViewingKey,
  type ViewingPage,
} from './viewing-store.ts'

// What owners ask about their viewers, and how that is forgotten.

export type ViewersDeps = { db: Db }

/** Rows of one file, which is made in memory. */
const MAX_DAY_ROWS = 100_000

/** What a viewer has watched of a video. */
export type ListedViewing = {
  id: number
  userId: string
  videoId: string
  /** Seconds, without those watched again. */
  watchedS: number
  /** From and to, in seconds of the video, sorted. */
  intervals: [number, number][]
  positionS: number
  beganAtS: number
  lastAtS: number
  completedAtS: number | null
}

export async function listVideosOfViewer(
  { db }: ViewersDeps,
  viewer: Pick<ViewingKey, 'accountId' | 'userId'>,
  page: ViewingPage,
): Promise<ListedViewing[]> {
  return (await listViewingsOfViewer(db, viewer, page)).map(toListed)
}

/** @throws Failure `not-found` when the account has no such video */
export async function listViewersOfVideo(
  { db }: ViewersDeps,
  { accountId, videoId }: Pick<ViewingKey, 'accountId' | 'videoId'>,
  page: ViewingPage,
): Promise<ListedViewing[]> {
  if ((await listExisting(db, accountId, [videoId])).length === 0) throw videoNotFound()
  return (await listViewingsOfVideo(db, videoId, page)).map(toListed)
}

/** As the video plays now. */
function toListed({ timelineStartS, durationS, ...row }: VideoViewing): ListedViewing {
  const part = { fromS: timelineStartS ?? 0, lengthS: wholeSeconds(durationS || Number.POSITIVE_INFINITY) }
  const intervals = cutIntervals(decodeIntervals(row.intervals), part)
  const positionS = Math.min(Math.max(0, row.positionS - part.fromS), durationS || Number.POSITIVE_INFINITY)
  return { ...row, positionS, watchedS: sumIntervals(intervals), intervals: pairsOf(intervals) }
}

/**
 * What was watched on each day by each viewer.
 * @param fromDate @param toDate days in UTC, YYYY-MM-DD, both included
 * @throws Failure `invalid` for other texts, `too-large` when there are too many rows for one file
 */
export async function listWatchedDays(
  { db }: ViewersDeps,
  accountId: string,
  { fromDate, toDate }: { fromDate: string; toDate: string },
): Promise<{ date: string; userId: string; videoId: string; watchedS: number }[]> {
  const [fromDay, toDay] = [parseDay(fromDate), parseDay(toDate)]
  const rows = await listViewingDays(db, accountId, { fromDay, toDay, limit: MAX_DAY_ROWS + 1 })
  if (rows.length > MAX_DAY_ROWS)
    throw new Failure('too-large', `These days have more than ${MAX_DAY_ROWS} rows. Ask for fewer days at a time.`)
  return rows.map(({ day, ...row }) => ({ date: utcDay(day * DAY_S), ...row }))
}

/**
 * How much each viewer watched in these days, those who watched most first.
 * @throws Failure as `listWatchedDays`
 */
export async function listWatchers(
  deps: ViewersDeps,
  accountId: string,
  days: { fromDate: string; toDate: string },
): Promise<{ userId: string; videos: number; watchedS: number; lastDate: string }[]> {
  const ofViewers = Map.groupBy(await listWatchedDays(deps, accountId, days), ({ userId }) => userId)
  return [...ofViewers]
    .map(([userId, rows]) => ({
      userId,
      videos: new Set(rows.map(({ videoId }) => videoId)).size,
      watchedS: rows.reduce((sum, { watchedS }) => sum + watchedS, 0),
      lastDate: rows.at(-1)?.date ?? '', // they are in the order of days
    }))
    .toSorted((a, b) => b.watchedS - a.watchedS)
}

function parseDay(text: string): number {
  if (!isDay(text)) throw new Failure('invalid', 'from and to are days such as 2026-11-21.')
  return Date.parse(text) / 1000 / DAY_S
}

export type EraseDeps = {
  db: Db
  write: Write
  nowS: () => number
  viewings: Pick<Viewings, 'forget'>
  /** Writes what is in memory about sessions. */
  savePlayback(): Promise<void>
  /** Removes a viewer from the counters of views and bytes. */
  eraseFromUsage(viewer: ViewerKey): Promise<void>
}

/** OTPs removed in one transaction. */
const BATCH_SIZE = 500

/**
 * Removes what is stored about a viewer: what was watched, alerts, OTPs and sessions, which must have ended, and the name in usage
 * counters. Webhook deliveries that name them go by themselves.
 * @returns of how many videos something was watched
 */
export async function eraseViewer(deps: EraseDeps, { accountId, userId, by }: ViewerKey & { by: Actor }): Promise<number> {
  const { db, write, nowS, viewings } = deps
  await deps.savePlayback() // or it would be written afterwards
  viewings.forget(accountId, userId)
  await deps.eraseFromUsage({ accountId, userId })
  const otps = await listOtpsOfViewer(db, { accountId, userId })
  for (let first = 0; first < otps.length; first += BATCH_SIZE)
    await write((tx) => removeOtps(tx, otps.slice(first, first + BATCH_SIZE)))
  return write(async (tx) => {
    const videos = await removeViewer(tx, { accountId, userId })
    // The log outlives what is erased, so it does not name the viewer.
    const event = { atS: nowS(), accountId, by, kind: 'viewer:erased', subjects: ['viewer'], details: { videos } } as const
    await recordAuditEvent(tx, event)
    return videos
  })
}
