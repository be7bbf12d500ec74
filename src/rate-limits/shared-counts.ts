import type { Batches } from '../db/database.ts'
import { type CountRow, listCountsOfOthers, removeOldCounts, saveCounts } from './shared-count-rows.ts'
import type { SharedWindows } from './sliding-window.ts'

// Several servers count together: each adds what it has counted to rows of its own, and reads those of the others, a few times a second.
// Between two exchanges they may let through what arrives in that time.

export type SharedCounts = {
  /** @param name the same for the same limit on all servers */
  share(name: string, windows: SharedWindows): void
  /** Adds what was counted here to the rows, and what was counted elsewhere to memory. */
  exchange(): Promise<void>
}

type SharedCountsDeps = {
  batches: Batches
  /** Of this server, in rows. */
  server: string
  /** The playback clock. */
  nowS(): number
}

const REMOVE_EVERY_S = 10

export function createSharedCounts({ batches, server, nowS }: SharedCountsDeps): SharedCounts {
  const limits = new Map<string, SharedWindows>()
  /** What rows of others had when they were last read: only the difference is new. */
  const seen = new Map<string, CountRow>()
  let changedAfterS = 0
  let removedAtS = 0
  let unsaved: CountRow[] = []
  let exchanging: Promise<void> | undefined

  function addDifference(row: CountRow): void {
    const { server: of, name, subject, atS } = row
    const key = [of, name, subject, atS].join(' ')
    const before = seen.get(key)
    seen.set(key, row)
    // Less than before: a crash of PostgreSQL has emptied the rows.
    const isEmptied = before !== undefined && row.counted < before.counted
    const known = before && !isEmptied ? before : { passed: 0, counted: 0 }
    limits.get(name)?.addCount({ subject, atS, passed: row.passed - known.passed, all: row.counted - known.counted })
  }

  function forgetEnded(): void {
    removedAtS = nowS()
    for (const [key, { endsAtS }] of seen) if (endsAtS <= nowS()) seen.delete(key)
  }

  async function exchangeNow(): Promise<void> {
    for (const [name, windows] of limits) {
      for (const { subject, atS, passed, all } of windows.takeCounts())
        unsaved.push({ server, name, subject, atS, passed, counted: all, endsAtS: atS + windows.windowS })
    }
    const isRemoving = nowS() - removedAtS >= REMOVE_EVERY_S
    const saved = unsaved
    const { rows, readAtS } = await batches.transaction(async (tx) => {
      if (saved.length > 0) await saveCounts(tx, saved)
      if (isRemoving) await removeOldCounts(tx, server, nowS())
      return { result: await listCountsOfOthers(tx, server, changedAfterS), isDurable: false }
    })
    unsaved = unsaved.slice(saved.length)
    changedAfterS = readAtS
    for (const row of rows) addDifference(row)
    if (isRemoving) forgetEnded()
  }

  return {
    share(name, windows) {
      limits.set(name, windows)
    },
    exchange() {
      exchanging ??= exchangeNow().finally(() => {
        exchanging = undefined
      })
      return exchanging
    },
  }
}
