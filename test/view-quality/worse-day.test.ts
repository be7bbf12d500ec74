import { describe, expect, test } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import { checkPlayback, findWorse } from '../../src/view-quality/worse-day.ts'
import { openOwnDatabase } from '../db/database.ts'
import { rounds } from '../seeded-random.ts'
import { type Account, simulateDays } from './simulated-days.ts'

const KINDS: readonly Account[] = [
  { viewsADay: 60, waits: 0.1, daysDiffer: 0.1, startMs: 800, weekend: 1 },
  { viewsADay: 200, waits: 0.05, daysDiffer: 0.2, startMs: 800, weekend: 1.2 },
  { viewsADay: 200, waits: 0.3, daysDiffer: 0.3, startMs: 1500, weekend: 1.5 },
  { viewsADay: 100, waits: 0.02, daysDiffer: 0.3, startMs: 600, weekend: 1.3 },
  { viewsADay: 60, waits: 0.01, daysDiffer: 0.4, startMs: 600, weekend: 1 },
]
const BEFORE = 14

/** How many of the days after the first 14 raise an alert. */
function countAlerts(account: Account, days: number, seed: number): number {
  const simulated = simulateDays(account, BEFORE + days, seed)
  return simulated.filter((day, at) => at >= BEFORE && isWorse(day, simulated.slice(at - BEFORE, at))).length
}

const isWorse = (...days: Parameters<typeof findWorse>) => Object.keys(findWorse(...days)).length > 0

describe('F-320: an alert that a day is far worse', () => {
  test('at most once in 60 days where nothing changed, for 99 of 100 accounts, and mostly never', () => {
    const accounts = rounds(20, 400)
    for (const kind of KINDS) {
      const counts = Array.from({ length: accounts }, (_, n) => countAlerts(kind, 60, n + 1))
      expect(counts.filter((count) => count > 1).length, JSON.stringify(kind)).toBeLessThanOrEqual(accounts / 100)
      expect(counts.reduce((sum, count) => sum + count, 0) / accounts, JSON.stringify(kind)).toBeLessThan(0.3)
    }
  })

  test('is raised on most days on which five times as many views wait and starts take five times as long', () => {
    const account = { viewsADay: 120, waits: 0.1, daysDiffer: 0.1, startMs: 800, weekend: 1 }
    const days = Array.from({ length: 20 }, (_, n) => simulateDays(account, 15, n + 1, BEFORE, 5))
    const raised = days.filter((simulated) => isWorse(simulated[BEFORE] ?? NONE, simulated.slice(0, BEFORE)))
    expect(raised.length).toBeGreaterThanOrEqual(19)
  })

  test('needs 50 views on the day and on ten days before it', () => {
    const usual = { starts: 60, waitedViews: 6, startMedianMs: 800 }
    const bad = { starts: 60, waitedViews: 50, startMedianMs: 9000 }
    const before = Array.from({ length: BEFORE }, () => usual)
    expect(findWorse(bad, before)).toEqual({
      ...{ waitedPercent: 83, usuallyWaitedPercent: 10, startMs: 9000, usualStartMs: 800 },
    })
    expect(findWorse({ ...bad, starts: 49 }, before)).toEqual({})
    expect(findWorse(bad, before.slice(5))).toEqual({})
    expect(findWorse(bad, before.with(0, { ...usual, starts: 5 }).slice(0, 11))).not.toEqual({})
    expect(findWorse(usual, before)).toEqual({})
  })

  test('is one alert of the day, with what was usual', async () => {
    const { db, write } = await openOwnDatabase()
    const nowS = Date.parse('2026-11-21T10:00:00Z') / 1000
    await write(async (tx) => {
      await tx.insertInto('account').values({ id: 'a', name: 'a', createdAtS: 0, mayUpload: 1, mayImport: 1 }).execute()
      for (let ago = 1; ago <= 15; ago++) await addViews(tx, new Date((nowS - ago * 86_400) * 1000), ago === 1 ? 40 : 3)
    })
    const check = () => checkPlayback({ slowQueryDb: db, write, nowS: () => nowS, wallNowS: () => nowS })
    await check()
    await check()
    const [alert, ...others] = await db.selectFrom('alert').selectAll().execute()
    expect(others).toEqual([])
    expect(alert).toMatchObject({ accountId: 'a', cause: 'playback-worse', occurrenceCount: 2 })
    expect(JSON.parse(alert?.numbers ?? '')).toEqual({ day: '2026-11-20', waitedPercent: 80, usuallyWaitedPercent: 6 })
  })
})

const NONE = { starts: 0, waitedViews: 0, startMedianMs: 0 }

/** 50 views, of which so many waited. */
async function addViews(db: Db, at: Date, waited: number): Promise<void> {
  const day = at.toISOString().slice(0, 10)
  const common = { day, accountId: 'a', videoId: 'v', country: '', browser: '', network: '', measuredMs: 9000, startMs: 700 }
  const counts = { waitedMs: 0, playedMs: 0, frameCount: 0, droppedFrameCount: 0, error: null, rungs: '' }
  const views = Array.from({ length: 50 }, (_, n) => ({
    ...{ sessionId: `${day} ${n}`, pageId: 'p', ...common, ...counts },
    waitCount: Number(n < waited),
  }))
  await db.insertInto('viewQuality').values(views).execute()
}
