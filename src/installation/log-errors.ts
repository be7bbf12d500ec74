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

/** Saves what is in memory again and again, and once more when the server stops. */
export function saveRegularly(
  { opened, log }: { opened: AsyncDisposableStack; log: Logger },
  { everyMs, save, failure }: { everyMs: number; save(): Promise<void>; failure: string },
): void {
  const timer = setInterval(() => logErrorsQuietly(log, failure, save), everyMs)
  opened.defer(async () => {
    clearInterval(timer)
    await logErrors(log, failure, save)
  })
}
