import type { Logger } from 'pino'

/** Runs work that no caller waits for: its error goes to the log. */
export async function logErrors(log: Logger, message: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => log.error({ err: error }, message))
}
