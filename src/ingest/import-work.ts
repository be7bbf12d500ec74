import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { moveStatus } from '../catalogue/status.ts'
import type { Db } from '../db/database.ts'
import type { ImportRow } from '../db/tables.ts'
import { Failure, hostFailure } from '../errors.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import { createRoundRobin } from '../jobs/round-robin.ts'
import { removeBlobAndEmptyFolders, removeBlobs } from '../storage/folder.ts'
import { DELETED, type FetchDeps, fetchImport, NO_ROOM } from './import-fetch.ts'
import {
  beginImportAttempt,
  findDueImport,
  findImport,
  listAccountsWithImports,
  removeImport,
  resumeImports,
  updateImport,
} from './import-store.ts'
import { insertReceivedSource, type ReceivedSource } from './source.ts'
import { findSource } from './source-store.ts'

export type ImportSchedulerDeps = FetchDeps & {
  db: Db
  /** A clock that never goes back. */
  nowS: () => number
  /** From the first try of an import to its end. */
  importMaxS: number
  log: Logger
  /** Told after the commit that a video's source is there. */
  onSourceReceived(videoId: string): void
}

const AT_ONCE = { inAll: 8, perAccount: 4, perHost: 2 }
/** How often to claim what waited for its time, for room on the disk or for its account. */
const LOOK_EVERY_MS = 5_000
/** After the first try, the second, …; after as many and one more that got no further the import has failed. */
const WAITS_S = [5, 30, 120, 600, 1800]
/** Trouble of this machine does not count as a try. */
const MACHINE_WAIT_S = 15
/** A try that failed keeps its place for so long: many imports from a host that refuses must not become a flood. */
const REST_MS = 1_000

/** Fetches what was asked for, also what an earlier run of the server left; `wake` says that there is more. */
export async function startImportScheduler(deps: ImportSchedulerDeps): Promise<Dispatcher> {
  await deps.write(resumeImports)
  return startDispatcher({ places: AT_ONCE.inAll, claim: claimsOfImports(deps), lookEveryMs: LOOK_EVERY_MS, log: deps.log })
}

/**
 * What there is to do for imports: the accounts take turns, no account and no host has all places. The database is the truth; in
 * memory is only what is in hand.
 */
function claimsOfImports(deps: ImportSchedulerDeps) {
  const inHand = new Map<string, { accountId: string; host: string }>()
  const turns = createRoundRobin()

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (urgentOnly) return undefined // nobody waits for an import that closely
    if (!(await deps.hasRoom(0))) return undefined
    for (;;) {
      const next = await findNext()
      if (!next) return undefined
      const row = await deps.write((tx) => beginImportAttempt(tx, next.videoId, deps.nowS() + deps.importMaxS))
      if (!row) continue // deleted meanwhile
      inHand.set(row.videoId, row)
      turns.served(row.accountId)
      return { key: row.videoId, run: (signal) => runTry(row, signal).finally(() => inHand.delete(row.videoId)) }
    }
  }

  async function findNext() {
    const nowS = deps.nowS()
    const running = [...inHand.values()]
    const busy = {
      videoIds: [...inHand.keys()],
      accountIds: thoseWith(running, 'accountId', AT_ONCE.perAccount),
      hosts: thoseWith(running, 'host', AT_ONCE.perHost),
    }
    const accountIds = await listAccountsWithImports(deps.db, nowS, busy)
    const accountId = turns.first(accountIds, (id) => running.filter((row) => row.accountId === id).length)
    return accountId === undefined ? undefined : findDueImport(deps.db, accountId, nowS, busy)
  }

  async function runTry(row: ImportRow, signal: AbortSignal): Promise<void> {
    const { videoId } = row
    try {
      const leftS = (row.endsAtS ?? 0) - deps.nowS()
      if (leftS <= 0) return await fail(row, tookTooLong(deps.importMaxS))
      const source = await fetchImport(deps, row, leftS * 1000, signal)
      await deps.write((tx) => accept(tx, videoId, source))
      deps.log.info({ videoId, sizeBytes: source.sizeBytes }, 'a video was imported')
    } catch (error) {
      await settle(videoId, error, signal)
      await pause(REST_MS, undefined, { signal }).catch(() => undefined)
      return
    }
    deps.onSourceReceived(videoId)
  }

  /** The source is the video's from here on, and the address is forgotten, in one transaction. */
  async function accept(tx: Db, videoId: string, source: ReceivedSource): Promise<void> {
    if (!(await removeImport(tx, videoId))) throw DELETED
    await insertReceivedSource(deps, tx, videoId, source)
  }

  /** What becomes of an import whose try has failed. */
  async function settle(videoId: string, error: unknown, signal: AbortSignal): Promise<void> {
    const row = await findImport(deps.db, videoId)
    if (!row && (await findSource(deps.db, videoId))) return deps.onSourceReceived(videoId) // it was kept, though nobody said so
    if (!row) return removeBlobs(deps.sources, videoId) // deleted meanwhile: nothing else may be left of it
    if (signal.aborted) return postpone(row, 0, row.attempts - 1) // cut off by us
    const ofTheMachine = error === NO_ROOM ? NO_ROOM : hostFailure(error)
    const problem = ofTheMachine ?? (error instanceof Failure ? error : CAUSE_IN_LOG)
    if (problem === CAUSE_IN_LOG) deps.log.error({ err: error, videoId }, 'an import met trouble')
    if (problem.kind !== 'unavailable') return fail(row, problem)
    const waitS = ofTheMachine ? MACHINE_WAIT_S : WAITS_S[Math.max(row.attempts, 1) - 1]
    if (waitS === undefined || deps.nowS() + waitS >= (row.endsAtS ?? 0)) return fail(row, withTries(problem, row.attempts))
    deps.log.info({ videoId, problem: problem.message, waitS }, 'an import is tried again')
    await postpone(row, waitS, ofTheMachine ? row.attempts - 1 : row.attempts)
  }

  async function postpone({ videoId }: ImportRow, waitS: number, attempts: number): Promise<void> {
    await deps.write((tx) => updateImport(tx, videoId, { nextAttemptAtS: deps.nowS() + waitS, attempts: Math.max(0, attempts) }))
  }

  async function fail({ videoId, file }: ImportRow, problem: Failure): Promise<void> {
    const status = problem.kind === 'unsupported' ? 'Not a media file' : 'Encoding error'
    const hasFailed = await deps.write(async (tx) => {
      if (!(await removeImport(tx, videoId))) return false // deleted meanwhile
      return moveStatus(tx, videoId, status, problem.message)
    })
    if (file) await removeBlobAndEmptyFolders(deps.sources, file)
    if (hasFailed) deps.log.info({ videoId, status, reason: problem.message }, 'video: failed')
  }

  return claim
}

const CAUSE_IN_LOG = new Failure('unavailable', 'This server could not fetch the video. Its log says why; then import it again.')

function withTries(problem: Failure, tries: number): Failure {
  return tries > 1 ? new Failure(problem.kind, `${problem.message} It was tried ${tries} times.`) : problem
}

function tookTooLong(importMaxS: number): Failure {
  return new Failure('too-large', `The video was not fetched within ${importMaxS} seconds, the longest that an import may take.`)
}

/** Values that so many have. */
function thoseWith<Name extends string>(rows: readonly Record<Name, string>[], name: Name, count: number): string[] {
  const groups = Map.groupBy(rows, (row) => row[name])
  return [...groups].flatMap(([value, theirs]) => (theirs.length >= count ? value : []))
}
