import { recordOperationsAlert } from '../alerts/operations.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { DAY_S, utcDay } from '../time.ts'
import { summarize } from './quality-report.ts'
import { listViewQualities, listWatchedAccounts } from './view-quality-store.ts'

// An alert when the videos of an account played far worse yesterday than on the days before.

/** What is compared of a day. */
type PlayedDay = { starts: number; waitedViews: number; startMedianMs: number }

const COMPARED_DAYS = 14
/** Of the days before, so many must have enough views. */
const MIN_DAYS = 10
const MIN_VIEWS = 50
/** How many standard deviations of the days before. By simulation of days that do not change: 0.02 to 0.2 alerts in 60 days. */
const FAR = 5
/** What is less is not far worse: five more views of 100 that wait, a start that takes half as long again. */
const MIN_MORE_WAITED = 0.05
const MIN_LONGER = Math.log(1.5)
/** Days that were equal by chance are no reason to expect the next to be, too: a tenth of a start's time. */
const MIN_LOG_DEVIATION = 0.1
const MAX_VIEWS_OF_A_DAY = 20_000

/** Which of a day's numbers are far worse than on the days before, with what is usual; empty where none is. */
export function findWorse(day: PlayedDay, before: readonly PlayedDay[]): Record<string, number> {
  const compared = before.filter(({ starts }) => starts >= MIN_VIEWS)
  if (day.starts < MIN_VIEWS || compared.length < MIN_DAYS) return {}
  return { ...findMoreWaits(day, compared), ...findLaterStarts(day, compared) }
}

function findMoreWaits(day: PlayedDay, before: readonly PlayedDay[]): Record<string, number> {
  const shareOf = ({ waitedViews, starts }: PlayedDay) => waitedViews / starts
  const { mean, deviation } = describe(before.map(shareOf))
  // That of a share among so many views, were all days alike.
  const ofChance = Math.sqrt((Math.max(mean, 1 / day.starts) * (1 - mean)) / day.starts)
  const share = shareOf(day)
  if (share - mean < Math.max(MIN_MORE_WAITED, FAR * Math.max(deviation, ofChance))) return {}
  return { waitedPercent: Math.round(100 * share), usuallyWaitedPercent: Math.round(100 * mean) }
}

function findLaterStarts(day: PlayedDay, before: readonly PlayedDay[]): Record<string, number> {
  const { mean, deviation } = describe(before.map(({ startMedianMs }) => Math.log(Math.max(1, startMedianMs))))
  const longer = Math.log(Math.max(1, day.startMedianMs)) - mean
  if (longer < Math.max(MIN_LONGER, FAR * Math.max(deviation, MIN_LOG_DEVIATION))) return {}
  return { startMs: day.startMedianMs, usualStartMs: Math.round(Math.exp(mean)) }
}

function describe(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, deviation: Math.sqrt(squares / (values.length - 1)) }
}

type WorseDayDeps = { slowQueryDb: Db; write: Write; nowS(): number; wallNowS(): number }

/** Compares the last whole day of each account. To be called once in a while: an alert of the same day is counted, not repeated. */
export async function checkPlayback({ slowQueryDb, write, nowS, wallNowS }: WorseDayDeps): Promise<void> {
  const dayAgo = (days: number) => utcDay(wallNowS() - days * DAY_S)
  const yesterday = dayAgo(1)
  for (const accountId of await listWatchedAccounts(slowQueryDb, yesterday, MIN_VIEWS)) {
    const day = await readDay(slowQueryDb, accountId, yesterday)
    const before: PlayedDay[] = []
    // One after another: a busy account has as many rows of a day as should be in memory.
    for (let days = 2; days <= 1 + COMPARED_DAYS; days++) before.push(await readDay(slowQueryDb, accountId, dayAgo(days)))
    const numbers = findWorse(day, before)
    if (Object.keys(numbers).length === 0) continue
    const alert = {
      accountId,
      cause: 'playback-worse',
      subject: `day ${yesterday}`,
      numbers: { day: yesterday, ...numbers },
    } as const
    await write((tx) => recordOperationsAlert(tx, alert, nowS()))
  }
}

async function readDay(db: Db, accountId: string, day: string): Promise<PlayedDay> {
  const { starts, waitedViews, startMedianMs } = summarize(
    await listViewQualities(db, accountId, { days: [day] }, MAX_VIEWS_OF_A_DAY),
  )
  return { starts, waitedViews, startMedianMs: startMedianMs ?? 0 }
}
