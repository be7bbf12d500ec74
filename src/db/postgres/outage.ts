import { setTimeout as pause } from 'node:timers/promises'
import type { DatabaseListener } from '../database.ts'
import { describeOutage } from './connection-errors.ts'
import { LostConnection } from './failures.ts'

const POLL_INTERVAL_MS = 1_000

/**
 * Reports that the database is unavailable, once for each reason, and once that it is available again. While it is unavailable
 * it is polled, because otherwise recovery would go unnoticed until the next statement.
 * @param poll resolves when the database accepts changes and can be read
 */
export function createOutageTracker(poll: () => Promise<unknown>) {
  const reportedReasons = new Set<string>()
  let listener: DatabaseListener | undefined

  /** To be called with the error of each failed statement; only lost connections count. */
  function record(error: unknown): void {
    if (!listener || !(error instanceof LostConnection)) return
    const reason = describeOutage(error)
    if (reportedReasons.has(reason)) return
    reportedReasons.add(reason)
    listener.unavailable(reason)
    if (reportedReasons.size === 1) void pollUntilAvailable()
  }

  async function pollUntilAvailable(): Promise<void> {
    let isAvailable = false
    while (listener && !isAvailable) {
      await pause(POLL_INTERVAL_MS, undefined, { ref: false })
      isAvailable = await poll().then(
        () => true,
        (error) => {
          record(error)
          return false
        },
      )
    }
    reportedReasons.clear()
    listener?.available()
  }

  return {
    record,
    watch(newListener: DatabaseListener): void {
      listener = newListener
    },
    stop(): void {
      listener = undefined
    },
  }
}
