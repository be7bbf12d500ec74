import type { Db } from '../db/database.ts'
import type { WorkKind } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { isHostFailure } from '../errors.ts'
import { countFailures, forgetFailures, insertBackOff, resetFailures } from './claim-store.ts'

export type FailureDeps = { db: Db; write: Write; nowS: () => number }

type FailurePolicy = {
  kind: WorkKind
  /** Failures of the host do not count: they end for all work together. */
  maxFailures: number
  retryAfterS: number
  retryAfterHostFailureS: number
}

type GuardedWork = {
  subject: string
  run(): Promise<void>
  /** Whether no further attempt can succeed. */
  isLost(): Promise<boolean>
  giveUp(error: unknown): Promise<void>
  /** Logs a failure after which it is tried again. */
  logRetry(error: unknown): void
}

/**
 * Decides what a failure means for a subject: another attempt after a while, or its end. Failures are counted in rows, for all processes.
 * @param wake called when there may be something to claim again
 * @returns runs work; rejects only when its failure cannot be recorded
 */
export function createFailureGuard(
  { db, write, nowS }: FailureDeps,
  { kind, maxFailures, retryAfterS, retryAfterHostFailureS }: FailurePolicy,
  wake: () => void,
): (work: GuardedWork, signal: AbortSignal) => Promise<void> {
  return async ({ subject, run, isLost, giveUp, logRetry }, signal) => {
    const failing = { kind, subject }
    try {
      await run()
      if ((await countFailures(db, failing)) > 0) await write((tx) => resetFailures(tx, failing))
    } catch (error) {
      if (signal.aborted) return
      const isOfHost = isHostFailure(error)
      const delayS = isOfHost ? retryAfterHostFailureS : retryAfterS
      const failures = await write((tx) => insertBackOff(tx, failing, nowS() + delayS, !isOfHost))
      if (!isOfHost && (failures >= maxFailures || (await isLost()))) {
        await giveUp(error)
        await write((tx) => forgetFailures(tx, failing))
        return
      }
      logRetry(error)
      setTimeout(wake, delayS * 1000).unref()
    }
  }
}
