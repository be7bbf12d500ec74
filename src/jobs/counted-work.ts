import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import type { Signals } from '../signals/signals.ts'
import { type AttemptPolicy, type CountedWork, createAttempts } from './attempts.ts'
import type { Claim, Claims } from './claims.ts'
import { type Dispatcher, startDispatcher } from './dispatcher.ts'
import { createRoundRobin } from './round-robin.ts'

export type CountedWorkDeps = {
  db: Db
  /** A clock that never goes back. */
  nowS: () => number
  claims: Pick<Claims, 'claimNext'>
  signals: Pick<Signals, 'on'>
  log: Logger
  /** Whether the disk has space for that many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
}

type CountedWorkOptions<Work> = Omit<AttemptPolicy<Work>, 'log'> & {
  kind: 'mp4' | 'captions' | 'transcription' | 'dub'
  /** The accounts for which something is to be done. */
  listAccounts(db: Db, nowS: number): Promise<string[]>
  /** What of the account's has waited longest. */
  find(db: Db, accountId: string, nowS: number): Promise<Work | undefined>
  /** Counts an attempt before it runs, so that one that crashes this process counts, too. False: it is not as it was found. */
  begin(tx: Db, work: Work): Promise<boolean>
  run(work: Work, claim: Claim, signal: AbortSignal): Promise<void>
}

/** How often to look for work whose back-off has ended, or for free disk space. */
const POLL_INTERVAL_MS = 5_000

/** Does work of which a row counts the attempts, for one video at a time, next to encoding. Accounts take turns. */
export function startCountedWork<Work extends CountedWork>(
  { db, nowS, claims, signals, log, hasRoom }: CountedWorkDeps,
  { kind, listAccounts, find, begin, run, ...policy }: CountedWorkOptions<Work>,
): Dispatcher {
  const accounts = createRoundRobin()
  const attempt = createAttempts<Work>({ ...policy, log })

  async function findNext() {
    const accountId = accounts.next(await listAccounts(db, nowS()))
    const work = accountId === undefined ? undefined : await find(db, accountId, nowS())
    return accountId === undefined || !work ? undefined : { work, accountId }
  }

  return startDispatcher({
    slots: 1,
    async claim(urgentOnly) {
      if (urgentOnly || !(await hasRoom(0))) return undefined
      return claims.claimNext({
        kind,
        find: findNext,
        subjectOf: ({ work }) => work.videoId,
        begin: async (tx, next) => ((await begin(tx, next.work)) ? next : undefined),
        start({ work, accountId }) {
          accounts.markServed(accountId)
          return (claim, signal) => attempt(work, claim, signal, () => run(work, claim, signal))
        },
      })
    },
    pollIntervalMs: POLL_INTERVAL_MS,
    follows: { signals, work: kind },
    log,
  })
}
