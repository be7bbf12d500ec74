import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import { isClaimed } from './claim-store.ts'
import type { Claims } from './claims.ts'
import { type Dispatcher, startDispatcher } from './dispatcher.ts'

type DutyDeps = { db: Db; claims: Pick<Claims, 'claimNext'>; isOnlyServer: boolean; log: Logger }

/** How long a duty is left undone at most, in addition to the lease of a server that was lost. */
const LOOK_EVERY_MS = 2_000

/**
 * What one server does for all: the first that claims it, until it stops; then another.
 * @param work resolves when its signal is aborted
 */
export function startDuty(
  { db, claims, isOnlyServer, log }: DutyDeps,
  name: string,
  work: (signal: AbortSignal) => Promise<void>,
): Dispatcher {
  const duty = { kind: 'duty', subject: name } as const
  const dispatcher = startDispatcher({
    slots: 1,
    async claim(urgentOnly) {
      if (urgentOnly) return undefined
      if (isOnlyServer) return { key: name, run: work } // a claim would be renewed every few seconds for nothing
      return claims.claimNext({
        kind: 'duty',
        find: async () => ((await isClaimed(db, duty)) ? undefined : name),
        subjectOf: () => name,
        begin: async () => name,
        start: () => (_, signal) => work(signal),
      })
    },
    pollIntervalMs: LOOK_EVERY_MS,
    log,
  })
  dispatcher.wake()
  return dispatcher
}
