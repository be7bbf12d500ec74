import { DAY_S } from '../time.ts'
import { removeOldGrades } from './grade-store.ts'
import type { PlatformDeps } from './platform.ts'
import { removeExpired } from './platform-store.ts'

const BATCH_SIZE = 1_000

/** Removes links and launches that have expired, and grades as viewings are removed. */
export async function pruneLti({ write, nowS }: Pick<PlatformDeps, 'write' | 'nowS'>, viewerDataDays: number): Promise<void> {
  await write((tx) => removeExpired(tx, nowS()))
  const firstKeptS = (Math.floor(nowS() / DAY_S) - viewerDataDays) * DAY_S
  while ((await write((tx) => removeOldGrades(tx, firstKeptS, BATCH_SIZE))) > 0);
}
