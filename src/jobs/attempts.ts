import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import { isHostFailure } from '../errors.ts'
import type { Claim } from './claims.ts'

/** How many attempts may fail or crash this process; failures of the whole host do not count. */
const MAX_ATTEMPTS = 3
const BACK_OFF_S = 5

/** Work of which a row counts the attempts, before each begins. */
export type CountedWork = { videoId: string; attempts: number }

export type AttemptPolicy<Work> = {
  /** In the log: `mp4`. */
  name: string
  /** Why it ended, to its owner: after a failure whose cause the log has, and after as many crashes. */
  problems: { failed: string; crashed: string }
  /** Undoes the count of an attempt that failed for a reason outside the video. */
  refund(tx: Db, work: Work): Promise<void>
  /** Records that it cannot be done. */
  fail(tx: Db, work: Work, problem: string): Promise<void>
  log: Logger
}

/** Decides what a failure means for counted work: another attempt after a while, or its end. @returns runs one attempt */
export function createAttempts<Work extends CountedWork>({ name, problems, refund, fail, log }: AttemptPolicy<Work>) {
  return async (work: Work, claim: Claim, signal: AbortSignal, run: () => Promise<void>): Promise<void> => {
    if (work.attempts >= MAX_ATTEMPTS) return giveUp(problems.crashed)
    try {
      await run()
    } catch (error) {
      const counts = !signal.aborted && !isHostFailure(error)
      if (counts && work.attempts + 1 >= MAX_ATTEMPTS) return giveUp(problems.failed, error)
      if (!signal.aborted) log.warn({ err: error, videoId: work.videoId }, `${name}: attempt failed; trying again`)
      await claim.settle(async (tx) => void (counts || (await refund(tx, work))), signal.aborted ? undefined : BACK_OFF_S)
    }

    async function giveUp(problem: string, error?: unknown): Promise<void> {
      log.error({ err: error, videoId: work.videoId, problem }, `${name}: failed`)
      await claim.settle((tx) => fail(tx, work, problem))
    }
  }
}
