import { listAccountIds } from '../accounts/account-store.ts'
import { sumStorage, sumStoredBytes } from '../accounts/storage-store.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { DAY_S, utcDay } from '../time.ts'
import { KEPT_DAYS } from './usage.ts'
import { listStorageOfDays, removeStorageBefore, setStorageOfDay } from './usage-store.ts'

// What the videos of an account take on the disk: now, and as measured on the days before.

/** The bytes that an account's videos take now, those in the trash apart. */
export async function getStorage({ slowQueryDb }: { slowQueryDb: Db }, accountId: string) {
  return sumStorage(slowQueryDb, accountId)
}

/**
 * What each of the days ended with, those in the trash included; today: what it has now.
 * @returns for a day its bytes; undefined where nothing was measured, as before the upgrade to this version
 */
export async function getStorageOfDays(
  { slowQueryDb, wallNowS }: { slowQueryDb: Db; wallNowS: () => number },
  accountId: string,
  days: readonly string[],
): Promise<(day: string) => number | undefined> {
  const measured = new Map(
    (await listStorageOfDays(slowQueryDb, accountId, days)).map(({ day, sizeBytes }) => [day, Number(sizeBytes)]),
  )
  const today = utcDay(wallNowS())
  if (days.includes(today)) measured.set(today, await sumStoredBytes(slowQueryDb, accountId))
  return (day) => measured.get(day)
}

/** Measures every account for today, and removes what is older than the other counters. The sums come from an index alone. */
export async function measureStorage({ db, write, nowS, wallNowS }: MeasureDeps): Promise<void> {
  const day = utcDay(wallNowS())
  for (const accountId of await listAccountIds(db)) {
    const sizeBytes = await sumStoredBytes(db, accountId)
    await write((tx) => setStorageOfDay(tx, { day, accountId, sizeBytes }))
  }
  await write((tx) => removeStorageBefore(tx, utcDay(nowS() - KEPT_DAYS * DAY_S)))
}

type MeasureDeps = {
  db: Db
  write: Write
  /** Ages: a step of the wall clock removes nothing. */
  nowS: () => number
  wallNowS: () => number
}
