import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { failPendingBatch, listInterruptedBatches, removeOldDeliveries, replayFailedBatch } from './delivery-store.ts'

// Changes of all deliveries of a webhook, one batch per transaction. The webhook's row is changed first and says what is left to do, so
// the next start resumes what a crash interrupted.

type BatchDeps = { db: Db; write: Write; nowS: () => number }

/** Small enough that no other write waits long. */
export const BATCH_SIZE = 250

/** Marks the pending deliveries of a disabled webhook as failed. Stops early, without harm, on the signal or once it is enabled. */
export async function failPendingDeliveries({ write, nowS }: Omit<BatchDeps, 'db'>, webhookId: string, signal?: AbortSignal) {
  while (!signal?.aborted && (await write((tx) => failPendingBatch(tx, webhookId, nowS(), BATCH_SIZE))) === BATCH_SIZE);
}

/** Makes every failed delivery pending again, after `beginReplay`. @returns how many */
export async function replayFailedDeliveries({ write }: Pick<BatchDeps, 'write'>, webhookId: string): Promise<number> {
  let count = 0
  for (;;) {
    const replayed = await write((tx) => replayFailedBatch(tx, webhookId, BATCH_SIZE))
    count += replayed
    if (replayed < BATCH_SIZE) return count
  }
}

const RETENTION_S = 30 * 24 * 3600

/** Resumes interrupted batches, and removes deliveries that were finished a month ago. */
export async function pruneDeliveries(deps: BatchDeps): Promise<void> {
  const { db, write, nowS } = deps
  for (const webhookId of await listInterruptedBatches(db)) {
    await failPendingDeliveries(deps, webhookId)
    await replayFailedDeliveries(deps, webhookId)
  }
  while ((await write((tx) => removeOldDeliveries(tx, nowS() - RETENTION_S, BATCH_SIZE))) > 0);
}
