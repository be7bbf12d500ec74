import type { Logger } from 'pino'
import { logLevelFor } from '../errors.ts'

/** Runs work that no caller waits for: its error goes to the log. */
export async function logErrors(log: Logger, message: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => log.error({ err: error }, message))
}

/** For work that is soon repeated: while the database is unavailable, which is logged once, its errors are for debugging only. */
export async function logErrorsQuietly(log: Logger, message: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => log[logLevelFor(error, 'error')]({ err: error }, message))
}

/** Runs work again and again, and once more when the server stops, such as saving what is in memory. */
export function runRegularly(
  { opened, log }: { opened: AsyncDisposableStack; log: Logger },
  { everyMs, work, failure }: { everyMs: number; work(): Promise<void>; failure: string },
): void {
  const timer = setInterval(() => logErrorsQuietly(log, failure, work), everyMs)
  opened.defer(async () => {
    clearInterval(timer)
    await logErrors(log, failure, work)
  })
}
