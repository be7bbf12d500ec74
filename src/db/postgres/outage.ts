import { setTimeout as pause } from 'node:timers/promises'
import type { OutageListener } from '../database.ts'
import { describeOutage } from './connection-errors.ts'
import { LostConnection } from './failures.ts'

const ASK_EVERY_MS = 1_000

/**
 * Tells that the database is away, once for each reason that somebody meets, and once that it is back: it is asked until it is, for
 * nobody else may.
 * @param ask resolves when the database takes changes and can be read
 */
export function createOutageTracker(ask: () => Promise<unknown>) {
  const whys = new Set<string>()
  let news: OutageListener | undefined

  /** What somebody's statement failed with. */
  function notice(error: unknown): void {
    if (!news || !(error instanceof LostConnection)) return
    const why = describeOutage(error)
    if (whys.has(why)) return
    whys.add(why)
    news.away(why)
    if (whys.size === 1) void untilBack()
  }

  async function untilBack(): Promise<void> {
    let isBack = false
    while (news && !isBack) {
      await pause(ASK_EVERY_MS, undefined, { ref: false })
      isBack = await ask().then(
        () => true,
        (error) => {
          notice(error)
          return false
        },
      )
    }
    whys.clear()
    news?.back()
  }

  return {
    notice,
    watch(heard: OutageListener): void {
      news = heard
    },
    stop(): void {
      news = undefined
    },
  }
}
