import { listSummaries } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { ViewQualityRow } from '../db/tables.ts'
import { listDays } from '../time.ts'
import { decodeRungs, KEPT_DAYS } from './view-quality.ts'
import { listViewQualities } from './view-quality-store.ts'

// What owners ask about how their videos play: docs/playback-quality.md defines each number.

export const QUALITY_GROUPS = ['day', 'video', 'country', 'browser', 'network'] as const
type QualityGroup = (typeof QUALITY_GROUPS)[number]

export type QualityReportDeps = { slowQueryDb: Db }

/** Of a group of views. */
type Quality = {
  views: number
  /** Those whose first frame was shown, and how long that took: the median and the 95th percentile. */
  starts: number
  startMedianMs: number | null
  startP95Ms: number | null
  /** Views that were given up before the first frame, with no error. */
  abandoned: number
  /** Views that waited at least once, of those that started. */
  waitedViews: number
  waits: number
  waitedMs: number
  playedMs: number
  frames: number
  droppedFrames: number
  /** Views that an error stopped, by its kind. */
  errors: Record<string, number>
  /** For how long each height was on the screen. */
  rungs: { heightPx: number; playedMs: number }[]
}

/** The newest views; more of them change no median. */
const MAX_VIEWS = 200_000

/**
 * How videos played in these days, by `by`; the newest day first, else the group with the most views.
 * @throws Failure `invalid` for what is no day, or too many
 */
export async function getQuality(
  { slowQueryDb }: QualityReportDeps,
  accountId: string,
  { from, to, by, videoId }: { from: string; to: string; by: QualityGroup; videoId?: string | undefined },
): Promise<({ group: string; title: string | null } & Quality)[]> {
  const views = await listViewQualities(slowQueryDb, accountId, { days: listDays({ from, to }, KEPT_DAYS), videoId }, MAX_VIEWS)
  const groups = [...Map.groupBy(views, (view) => groupOf(view, by))]
  const titles =
    by === 'video'
      ? await findTitles(
          slowQueryDb,
          accountId,
          groups.map(([id]) => id),
        )
      : undefined
  const rows = groups.map(([group, ofGroup]) => ({ group, title: titles?.get(group) ?? null, ...summarize(ofGroup) }))
  return by === 'day' ? rows : rows.toSorted((a, b) => b.views - a.views)
}

/** A statement may have only so many values. */
const BATCH_SIZE = 500

async function findTitles(db: Db, accountId: string, videoIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const titles = new Map<string, string>()
  for (let first = 0; first < videoIds.length; first += BATCH_SIZE)
    for (const { id, title } of await listSummaries(db, accountId, videoIds.slice(first, first + BATCH_SIZE)))
      titles.set(id, title)
  return titles
}

function groupOf(view: ViewQualityRow, by: QualityGroup): string {
  return by === 'video' ? view.videoId : view[by]
}

export function summarize(views: readonly ViewQualityRow[]): Quality {
  const startsMs = views.flatMap(({ startMs }) => startMs ?? []).toSorted((a, b) => a - b)
  const sum = (value: (view: ViewQualityRow) => number) => views.reduce((total, view) => total + value(view), 0)
  const errors: Record<string, number> = {}
  const heights = new Map<number, number>()
  for (const { error, rungs } of views) {
    if (error !== null) errors[error] = (errors[error] ?? 0) + 1
    for (const { heightPx, playedMs } of decodeRungs(rungs)) heights.set(heightPx, (heights.get(heightPx) ?? 0) + playedMs)
  }
  return {
    views: views.length,
    starts: startsMs.length,
    startMedianMs: percentile(startsMs, 50),
    startP95Ms: percentile(startsMs, 95),
    abandoned: sum(({ startMs, error }) => Number(startMs === null && error === null)),
    waitedViews: sum(({ startMs, waitCount }) => Number(startMs !== null && waitCount > 0)),
    waits: sum(({ waitCount }) => waitCount),
    waitedMs: sum(({ waitedMs }) => waitedMs),
    playedMs: sum(({ playedMs }) => playedMs),
    frames: sum(({ frameCount }) => frameCount),
    droppedFrames: sum(({ droppedFrameCount }) => droppedFrameCount),
    errors,
    rungs: [...heights].map(([heightPx, playedMs]) => ({ heightPx, playedMs })).toSorted((a, b) => b.heightPx - a.heightPx),
  }
}

/** The smallest value that so many of 100 do not exceed. */
function percentile(sorted: readonly number[], of100: number): number | null {
  return sorted[Math.ceil((of100 / 100) * sorted.length) - 1] ?? null
}
