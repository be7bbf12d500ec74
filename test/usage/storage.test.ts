import { expect, test } from 'vitest'
import { insertVideo } from '../../src/catalogue/video-store.ts'
import { getStorageOfDays, measureStorage } from '../../src/usage/storage.ts'
import { openOwnDatabase } from '../db/database.ts'
import { startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'

// What an account's videos take on the disk, day by day.

const DAY_S = 24 * 3600

async function openWithVideo(clock: { nowS: number; wallNowS: number }) {
  const database = await openOwnDatabase()
  await database.write(async (tx) => {
    await tx.insertInto('account').values({ id: 'ann', name: 'Ann', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute()
    await insertVideo(tx, 'ann', { id: 'f'.repeat(32), title: 'A video', uploadTimeS: 1 })
  })
  const deps = { ...database, slowQueryDb: database.db, nowS: () => clock.nowS, wallNowS: () => clock.wallNowS }
  return {
    measure: () => measureStorage(deps),
    store: (totalSizeBytes: number) => database.write((tx) => tx.updateTable('video').set({ totalSizeBytes }).execute()),
    async ofDays(...days: string[]) {
      const found = await getStorageOfDays(deps, 'ann', days)
      return days.map(found)
    },
    rows: () => database.db.selectFrom('storageDay').selectAll().execute(),
  }
}

test('each day keeps its last measurement, and today has what is stored now', async () => {
  const clock = { nowS: 400 * DAY_S, wallNowS: Date.parse('2026-03-01T08:00:00Z') / 1000 }
  const { measure, store, ofDays } = await openWithVideo(clock)
  await store(10)
  await measure()
  await store(2 ** 41)
  await measure()
  clock.wallNowS += 2 * DAY_S
  await store(5)
  expect(await ofDays('2026-02-28', '2026-03-01', '2026-03-02', '2026-03-03')).toEqual([undefined, 2 ** 41, undefined, 5])
})

test('a measurement is kept for 400 days, and a clock that jumps ahead removes none', async () => {
  const startS = Date.parse('2026-03-01T08:00:00Z') / 1000
  const clock = { nowS: startS, wallNowS: startS }
  const { measure, rows } = await openWithVideo(clock)
  await measure()
  clock.wallNowS += 3650 * DAY_S
  await measure()
  expect(await rows()).toHaveLength(2)
  clock.nowS += 400 * DAY_S
  await measure()
  expect(await rows()).toHaveLength(2)
  clock.nowS += DAY_S
  await measure()
  expect((await rows()).map(({ day }) => day)).toEqual(['2036-02-27'])
})

test('the server measures each account by itself, one without videos, too', async () => {
  const reelgate = await startReelgate()
  const accounts = readRows<{ id: string }>(reelgate, 'select id from account')
  await expect
    .poll(() => readRows(reelgate, 'select account_id as id, size_bytes as bytes from storage_day'))
    .toEqual(accounts.map(({ id }) => ({ id, bytes: 0 })))
})
