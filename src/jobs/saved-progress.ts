import type { Logger } from 'pino'

const SAVE_EVERY_MS = 2_000

/**
 * Saves how far work is, from 0 to 1, every few seconds; it never goes back. What cannot be saved is logged.
 * @param name of the work, in the log
 */
export function createSavedProgress(log: Logger, name: string, save: (progress: number) => Promise<unknown>) {
  let savedAtMs = Number.NEGATIVE_INFINITY
  let saved = 0
  return (progress: number): void => {
    if (progress <= saved || performance.now() < savedAtMs + SAVE_EVERY_MS) return
    savedAtMs = performance.now()
    saved = progress
    save(progress).catch((error) => log.warn({ err: error }, `${name}: progress not saved`))
  }
}
