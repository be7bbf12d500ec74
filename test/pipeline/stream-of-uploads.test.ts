import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

/** How many uploads wait at any time, and how many are made at most. */
const WAITING = 4
const MAX_UPLOADS = 24

test('F-60: while new uploads keep coming, a video that is encoded is finished', async () => {
  const reelgate = await startReelgate()
  const { owner } = reelgate
  // With chunks that no viewer waits for: the first seconds of all uploads come before them.
  const file = await makeVideo({ seconds: 14 })
  const count = (sql: string) => readRows<{ n: number }>(reelgate, sql)[0]?.n ?? 0
  const countWaiting = () => count(`select count(*) as n from video where status in ('Queued', 'Processing')`)
  const countFinished = () => count('select count(*) as n from generation where finished_at_s is not null')

  let uploads = 0
  for (; countFinished() === 0 && uploads < MAX_UPLOADS; uploads++) {
    while (countWaiting() >= WAITING && countFinished() === 0) await pause(20)
    await owner.upload(`Upload ${uploads}`, file)
  }
  expect(countFinished()).toBeGreaterThan(0)
  expect(countWaiting()).toBeGreaterThan(0)
})
