import type { Db } from '../db/database.ts'
import { listDays } from '../time.ts'
import { getStorageOfDays } from './storage.ts'
import { KEPT_DAYS } from './usage.ts'
import { listMostViewed, listUsageOfDays } from './usage-store.ts'

// What an owner's charts show, from the counters of views and bytes, and the measurements of storage.

const MOST_VIEWED = 20

export type StatisticsDeps = { slowQueryDb: Db; wallNowS: () => number }

type Period = { from: string; to: string; videoId?: string }
type DayStatistics = {
  day: string
  viewCount: number
  sentBytes: number
  /** Undefined where it was not measured, and for one video. */
  storageBytes: number | undefined
}

/**
 * Views, sent bytes and storage of each day in UTC, those without any included; and the most viewed videos, unless one is named.
 * @throws Failure `invalid` for what is no day, or too many
 */
export async function getStatistics(
  deps: StatisticsDeps,
  accountId: string,
  { videoId, ...period }: Period,
): Promise<{ days: DayStatistics[]; videos: Awaited<ReturnType<typeof listMostViewed>> }> {
  const { slowQueryDb } = deps
  const days = listDays(period, KEPT_DAYS)
  const found = new Map((await listUsageOfDays(slowQueryDb, accountId, { days, videoId })).map((row) => [row.day, row]))
  const videos = videoId === undefined ? await listMostViewed(slowQueryDb, accountId, days, MOST_VIEWED) : []
  const storageBytes = videoId === undefined ? await getStorageOfDays(deps, accountId, days) : () => undefined
  return {
    days: days.map((day) => ({ ...(found.get(day) ?? { day, viewCount: 0, sentBytes: 0 }), storageBytes: storageBytes(day) })),
    videos,
  }
}

/** What usage is summed over: each month or day of a period, or all of it. */
export const USAGE_SPANS = ['month', 'day', 'all'] as const
type UsageSpan = (typeof USAGE_SPANS)[number]

/**
 * Views and sent bytes of each video that has any, by month, by day or of the whole period: the newest span first, and within it the most
 * viewed video.
 * @returns at most `limit` rows; `span` is such as `2026-11`, `2026-11-21` or `2026-11-01/2026-11-21`
 * @throws Failure `invalid` for what is no day, or too many
 */
export async function getUsageByVideo(
  { slowQueryDb }: Pick<StatisticsDeps, 'slowQueryDb'>,
  accountId: string,
  { from, to, by }: { from: string; to: string; by: UsageSpan },
  limit: number,
) {
  const spans = Map.groupBy(
    listDays({ from, to }, KEPT_DAYS),
    (day) => ({ month: day.slice(0, 7), day, all: `${from}/${to}` })[by],
  )
  const rows: ({ span: string } & Awaited<ReturnType<typeof listMostViewed>>[number])[] = []
  for (const [span, days] of [...spans].toReversed()) {
    if (rows.length >= limit) break
    const videos = await listMostViewed(slowQueryDb, accountId, days, limit - rows.length)
    rows.push(...videos.map((video) => ({ span, ...video })))
  }
  return rows
}
