import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { failSomeWaiting, listHalfDone, removeOldDeliveries, replaySomeFailed } from './delivery-store.ts'

// What is done to as many deliveries as an endpoint has, some at a time. The hook's row says what is to be done, and is changed first;
// so what a crash cuts off goes on at the next start.

export type BatchDeps = { db: Db; write: Write; nowS: () => number }

/** So few at once that nobody waits for it. */
export const AT_ONCE = 250

/** Lists as failed what waits for an endpoint that is off. Ends early, without harm, by the signal or when it is switched on. */
export async function failWaiting({ write, nowS }: Omit<BatchDeps, 'db'>, hookId: string, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted && (await write((tx) => failSomeWaiting(tx, hookId, nowS(), AT_ONCE))) === AT_ONCE);
}

/** Sends everything once more that failed, as `beginReplay` has noted. @returns how many */
export async function replayFailed({ write }: Pick<BatchDeps, 'write'>, hookId: string): Promise<number> {
  let count = 0
  for (;;) {
    const some = await write((tx) => replaySomeFailed(tx, hookId, AT_ONCE))
    count += some
    if (some < AT_ONCE) return count
  }
}

const KEPT_S = 30 * 24 * 3600

/** Goes on with what was cut off, and removes what was finished a month ago. */
export async function sweepDeliveries(deps: BatchDeps): Promise<void> {
  const { db, write, nowS } = deps
  for (const hookId of await listHalfDone(db)) {
    await failWaiting(deps, hookId)
    await replayFailed(deps, hookId)
  }
  while ((await write((tx) => removeOldDeliveries(tx, nowS() - KEPT_S, AT_ONCE))) > 0);
}
