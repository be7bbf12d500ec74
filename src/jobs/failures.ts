import type { Db } from '../db/database.ts'
import type { WorkKind } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { isHostFailure } from '../errors.ts'
import { forgetFailures, hasFailed, insertBackOff } from './claim-store.ts'

export type FailureDeps = { db: Db; write: Write; nowS: () => number }

export type FailurePolicy = {
  kind: WorkKind
  /** Failures of the host do not count: they end for all work together. */
  maxFailures: number
  retryAfterS: number
  retryAfterHostFailureS: number
}

export type GuardedWork = {
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
    const forget = () => write((tx) => forgetFailures(tx, failing))
    try {
      await run()
      if (await hasFailed(db, failing)) await forget()
    } catch (error) {
      if (signal.aborted) return
      const isOfHost = isHostFailure(error)
      const delayS = isOfHost ? retryAfterHostFailureS : retryAfterS
      const failures = await write((tx) => insertBackOff(tx, failing, nowS() + delayS, !isOfHost))
      if (!isOfHost && (failures >= maxFailures || (await isLost()))) {
        await giveUp(error)
        await forget()
        return
      }
      logRetry(error)
      setTimeout(wake, delayS * 1000).unref()
    }
  }
}
