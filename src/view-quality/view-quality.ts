import type { Db } from '../db/database.ts'
import type { ViewQualityRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { createWriteBehind } from '../db/write-behind.ts'
import { DAY_S, utcDay } from '../time.ts'
import { browserName } from './browser.ts'
import { findViewQuality, removeOldViewQualities, saveViewQuality } from './view-quality-store.ts'

// How videos play at their viewers: what each page reports with its beats. The numbers of a report count from the opening of its page, so
// that one that is lost is made up for by the next.

/** What a player measured on its page until now. */
type QualityReport = Pick<
  ViewQualityRow,
  'measuredMs' | 'startMs' | 'waitCount' | 'waitedMs' | 'frameCount' | 'droppedFrameCount' | 'error' | 'network'
> & {
  /** For how long each height was on the screen. */
  rungs: readonly { heightPx: number; playedMs: number }[]
}

/** The page that reports. */
type View = Pick<ViewQualityRow, 'sessionId' | 'pageId' | 'accountId' | 'videoId'> & {
  userAgent: string
  address: string
}

/** Sums of all views since the start. */
type QualityTotals = {
  starts: number
  startMs: number
  waits: number
  waitedMs: number
  playedMs: number
  frames: number
  droppedFrames: number
  errors: Record<string, number>
}

export type ViewQualities = {
  record(view: View, report: QualityReport): Promise<void>
  readonly totals: Readonly<QualityTotals>
  /** Writes what was reported before the call, except of sessions that were deleted meanwhile. */
  save(): Promise<void>
}

type SavedView = { row: ViewQualityRow; savedMs: number }

type ViewQualitiesDeps = {
  db: Db
  write: Write
  nowS(): number
  /** Days are the owner's. */
  wallNowS(): number
  findCountry(address: string): Promise<string | undefined>
}

export function createViewQualities({ db, write, nowS, wallNowS, findCountry }: ViewQualitiesDeps): ViewQualities {
  const totals: QualityTotals = {
    ...{ starts: 0, startMs: 0, waits: 0, waitedMs: 0, playedMs: 0, frames: 0, droppedFrames: 0 },
    errors: {},
  }
  const views = createWriteBehind<SavedView, ViewQualityRow>(
    { write, nowS },
    {
      toChange: ({ row, savedMs }) => (row.measuredMs > savedMs ? row : undefined),
      async write(tx, row) {
        await saveViewQuality(tx, row)
        return undefined
      },
      onWritten(view, { measuredMs }) {
        view.savedMs = measuredMs
      },
    },
  )

  async function load({ userAgent, address, ...view }: View): Promise<SavedView> {
    const saved = await findViewQuality(db, view)
    if (saved) return { row: saved, savedMs: saved.measuredMs }
    const country = await findCountry(address).catch(() => undefined) // a file of countries that cannot be read stops no video
    const facts = { country: country ?? '', browser: browserName(userAgent) ?? '', day: utcDay(wallNowS()) }
    return { row: { ...NOTHING, ...facts, ...view }, savedMs: -1 }
  }

  return {
    totals,
    async record(view, { rungs, ...report }) {
      const saved = await views.getOrLoad(`${view.sessionId} ${view.pageId}`, () => load(view))
      const before = saved.row
      if (report.measuredMs <= before.measuredMs) return
      const playedMs = rungs.reduce((sum, rung) => sum + rung.playedMs, 0)
      saved.row = { ...before, ...report, playedMs, rungs: encodeRungs(rungs) }
      addDifference(totals, before, saved.row)
    },
    save: views.save,
  }
}

const NOTHING = {
  ...{ network: '', measuredMs: -1, startMs: null, waitCount: 0, waitedMs: 0, playedMs: 0 },
  ...{ frameCount: 0, droppedFrameCount: 0, error: null, rungs: '' },
}

function addDifference(totals: QualityTotals, before: ViewQualityRow, after: ViewQualityRow): void {
  const added = (value: (row: ViewQualityRow) => number) => Math.max(0, value(after) - value(before))
  totals.starts += added(({ startMs }) => Number(startMs !== null))
  totals.startMs += added(({ startMs }) => startMs ?? 0)
  totals.waits += added(({ waitCount }) => waitCount)
  totals.waitedMs += added(({ waitedMs }) => waitedMs)
  totals.playedMs += added(({ playedMs }) => playedMs)
  totals.frames += added(({ frameCount }) => frameCount)
  totals.droppedFrames += added(({ droppedFrameCount }) => droppedFrameCount)
  const { error } = after
  if (error !== null && before.error === null) totals.errors[error] = (totals.errors[error] ?? 0) + 1
}

/** As they are stored. */
function encodeRungs(rungs: QualityReport['rungs']): string {
  return rungs.map(({ heightPx, playedMs }) => `${heightPx}:${playedMs}`).join(' ')
}

export function decodeRungs(text: string): { heightPx: number; playedMs: number }[] {
  return text.split(' ').flatMap((part) => {
    const [heightPx = 0, playedMs = 0] = part.split(':').map(Number)
    return playedMs > 0 ? [{ heightPx, playedMs }] : []
  })
}

/** Views are kept for so many days. */
export const KEPT_DAYS = 90
const MAX_REMOVED_ROWS = 2_000

/** Ages are measured by the playback clock, so that a step of the wall clock removes nothing. */
export async function pruneViewQualities({ write, nowS }: { write: Write; nowS(): number }): Promise<void> {
  const firstKept = utcDay(nowS() - KEPT_DAYS * DAY_S)
  while ((await write((tx) => removeOldViewQualities(tx, firstKept, MAX_REMOVED_ROWS))) > 0);
}
