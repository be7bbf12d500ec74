import { findVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import { videoNotFound } from '../errors.ts'
import { cutIntervals, decodeIntervals, pairsOf, sumIntervals, wholeSeconds } from './intervals.ts'
import { listViewingsOfVideo } from './viewing-store.ts'

export type RetentionDeps = { db: Db; slowQueryDb: Db }

/** How many viewers watched each part of a video. */
type Retention = {
  lengthS: number
  /** Viewers who watched any of it. */
  viewerCount: number
  completedCount: number
  averageWatchedS: number
  /** Equal parts, and how many of those viewers watched each, on average over its seconds. */
  parts: { fromS: number; toS: number; viewerCount: number }[]
}

const MAX_PARTS = 100
/** The newest viewers; more of them change no curve. */
const MAX_VIEWERS = 20_000
const PAGE_SIZE = 1_000

/** @throws Failure `not-found` when the account has no such video */
export async function getRetention({ db, slowQueryDb }: RetentionDeps, accountId: string, videoId: string): Promise<Retention> {
  const video = await findVideo(db, accountId, videoId)
  if (!video || video.deletedAtS !== null) throw videoNotFound()
  const seconds = wholeSeconds(video.durationS)
  const changes = new Int32Array(seconds + 1) // of the number of viewers, at each second
  const sums = { viewerCount: 0, completedCount: 0, watchedS: 0 }
  for (let below: number | undefined; sums.viewerCount < MAX_VIEWERS; ) {
    const viewings = await listViewingsOfVideo(slowQueryDb, videoId, { limit: PAGE_SIZE, below })
    for (const { intervals, completedAtS } of viewings) {
      const watched = cutIntervals(decodeIntervals(intervals), { fromS: video.timelineStartS, lengthS: seconds })
      sums.viewerCount++
      sums.completedCount += Number(completedAtS !== null)
      sums.watchedS += sumIntervals(watched)
      addViewing(changes, watched)
    }
    below = viewings.at(-1)?.id
    if (viewings.length < PAGE_SIZE) break
  }
  const { viewerCount, completedCount, watchedS } = sums
  const averageWatchedS = viewerCount === 0 ? 0 : Math.round((10 * watchedS) / viewerCount) / 10
  return { lengthS: video.durationS, viewerCount, completedCount, averageWatchedS, parts: toParts(changes, seconds) }
}

function addViewing(changes: Int32Array, intervals: readonly number[]): void {
  const lastS = changes.length - 1
  for (const [fromS, toS] of pairsOf(intervals)) {
    changes[Math.min(fromS, lastS)] = (changes[Math.min(fromS, lastS)] ?? 0) + 1
    changes[Math.min(toS, lastS)] = (changes[Math.min(toS, lastS)] ?? 0) - 1
  }
}

function toParts(changes: Int32Array, seconds: number): Retention['parts'] {
  const counts: number[] = []
  let count = 0
  for (const change of changes.subarray(0, seconds)) {
    count += change
    counts.push(count)
  }
  const partCount = Math.min(MAX_PARTS, seconds)
  return Array.from({ length: partCount }, (_, n) => {
    const [fromS, toS] = [Math.floor((n * seconds) / partCount), Math.floor(((n + 1) * seconds) / partCount)]
    const sum = counts.slice(fromS, toS).reduce((total, one) => total + one, 0)
    return { fromS, toS, viewerCount: Math.round((10 * sum) / (toS - fromS)) / 10 }
  })
}
