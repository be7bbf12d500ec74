import { isDatabaseFull } from '../../db/sqlite/commit.ts'
import { Failure, isDiskFull } from '../../errors.ts'

/** Ends with a sentence for the operator where the disk is full, or the signal was aborted. */
export async function explainEnd<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  whenFull: string,
  whenAborted: string,
): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (isDiskFull(cause) || isDatabaseFull(cause)) throw new Failure('unavailable', whenFull, { cause })
    throw signal.aborted ? new Failure('unavailable', whenAborted) : cause
  }
}
