import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { failPendingBatch, listInterruptedBatches, removeOldDeliveries, replayFailedBatch } from './delivery-store.ts'

// What is done to as many deliveries as an endpoint has, some at a time. The hook's row says what is to be done, and is changed first;
// so what a crash cuts off goes on at the next start.

export type BatchDeps = { db: Db; write: Write; nowS: () => number }

/** So few at once that nobody waits for it. */
export const BATCH_SIZE = 250

/** Lists as failed what waits for an endpoint that is off. Ends early, without harm, by the signal or when it is switched on. */
export async function failPendingDeliveries(
  { write, nowS }: Omit<BatchDeps, 'db'>,
  webhookId: string,
  signal?: AbortSignal,
): Promise<void> {
  while (!signal?.aborted && (await write((tx) => failPendingBatch(tx, webhookId, nowS(), BATCH_SIZE))) === BATCH_SIZE);
}

/** Sends everything once more that failed, as `beginReplay` has noted. @returns how many */
export async function replayFailedDeliveries({ write }: Pick<BatchDeps, 'write'>, webhookId: string): Promise<number> {
  let count = 0
  for (;;) {
    const some = await write((tx) => replayFailedBatch(tx, webhookId, BATCH_SIZE))
    count += some
    if (some < BATCH_SIZE) return count
  }
}

const KEPT_S = 30 * 24 * 3600

/** Goes on with what was cut off, and removes what was finished a month ago. */
export async function pruneDeliveries(deps: BatchDeps): Promise<void> {
  const { db, write, nowS } = deps
  for (const webhookId of await listInterruptedBatches(db)) {
    await failPendingDeliveries(deps, webhookId)
    await replayFailedDeliveries(deps, webhookId)
  }
  while ((await write((tx) => removeOldDeliveries(tx, nowS() - KEPT_S, BATCH_SIZE))) > 0);
}
