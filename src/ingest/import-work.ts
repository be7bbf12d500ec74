import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { StorageQuota } from '../accounts/storage-quota.ts'
import { recordOperationsAlert } from '../alerts/operations.ts'
import { findReplacement, removeReplacement, takeNumber, updateReplacement } from '../catalogue/replacement-store.ts'
import { moveStatus } from '../catalogue/status.ts'
import type { Db } from '../db/database.ts'
import type { ImportRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure, hostFailure } from '../errors.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import { createRoundRobin } from '../jobs/round-robin.ts'
import type { Signals } from '../signals/signals.ts'
import { type FetchDeps, fetchImport, videoDeletedDuringImport } from './import-fetch.ts'
import {
  beginImportAttempt,
  findDueImport,
  findImport,
  holdImport,
  listAccountsWithImports,
  listRunningImports,
  removeImport,
  resumeImports,
  updateImport,
} from './import-store.ts'
import { insertReceivedSource, NoRoom, type ReceivedSource } from './source.ts'
import { findSource } from './source-store.ts'
import { attachSource } from './upload.ts'

type ImportSchedulerDeps = Omit<FetchDeps, 'write'> & {
  db: Db
  write: Write
  claims: Pick<Claims, 'claimNext'>
  /** A clock that never goes back. */
  nowS: () => number
  wallNowS: () => number
  /** The time limit from the first attempt of an import to its end. */
  importMaxS: number
  quota: StorageQuota
  log: Logger
  signals: Signals
}

const MAX_RUNNING = { total: 8, perAccount: 4, perHost: 2 }
/** How often to look for imports that were waiting for their next attempt, for disk space or for their account. */
const POLL_INTERVAL_MS = 5_000
/** After the first attempt, the second, …. One more attempt without progress, and the import has failed. */
const RETRY_DELAYS_S = [5, 30, 120, 600, 1800]
/** Failures of this host, which do not count as attempts. */
const HOST_RETRY_DELAY_S = 15
/** A failed attempt keeps its slot this long, so that many imports from a host that rejects them do not flood it. */
const FAILURE_PAUSE_MS = 1_000

/** Runs pending imports, also those from before a restart. */
export async function startImportScheduler(deps: ImportSchedulerDeps): Promise<Dispatcher> {
  await deps.write(resumeImports)
  return startDispatcher({
    slots: MAX_RUNNING.total,
    claim: createImportClaim(deps),
    pollIntervalMs: POLL_INTERVAL_MS,
    follows: { signals: deps.signals, work: 'import' },
    log: deps.log,
  })
}

/** Claims the next import: accounts take turns, and no account and no host gets all slots. */
function createImportClaim(deps: ImportSchedulerDeps) {
  const accounts = createRoundRobin()

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (urgentOnly) return undefined // no import is urgent
    if (!(await deps.hasRoom(0))) return undefined
    return deps.claims.claimNext({
      kind: 'import',
      find: findNext,
      subjectOf: ({ videoId }) => videoId,
      begin: async (tx, found) =>
        (await mayRun(tx, found))
          ? beginImportAttempt(tx, found.videoId, { nowS: deps.nowS(), maxS: deps.importMaxS })
          : undefined,
      start(row) {
        accounts.markServed(row.accountId)
        return (claim, signal) => runAttempt(row, claim, signal)
      },
    })
  }

  async function findNext() {
    const nowS = deps.nowS()
    const running = await listRunningImports(deps.db)
    const busy = {
      accountIds: keysAtLimit(running, 'accountId', MAX_RUNNING.perAccount),
      hosts: keysAtLimit(running, 'host', MAX_RUNNING.perHost),
    }
    const accountIds = await listAccountsWithImports(deps.db, nowS, busy)
    const accountId = accounts.next(accountIds, (id) => running.filter((row) => row.accountId === id).length)
    return accountId === undefined ? undefined : findDueImport(deps.db, accountId, nowS, busy)
  }

  /** Whether no limit is exceeded with this one, which is claimed: another process may have claimed one since it was found. */
  async function mayRun(tx: Db, { accountId, host }: Pick<ImportRow, 'accountId' | 'host'>): Promise<boolean> {
    const running = await listRunningImports(tx)
    return (
      running.filter((row) => row.accountId === accountId).length <= MAX_RUNNING.perAccount &&
      running.filter((row) => row.host === host).length <= MAX_RUNNING.perHost
    )
  }

  async function runAttempt(row: ImportRow, claim: Claim, signal: AbortSignal): Promise<void> {
    const { videoId } = row
    try {
      const leftS = (row.endsAtS ?? 0) - deps.nowS()
      if (leftS <= 0) return await fail(row, claim, timedOut(deps.importMaxS))
      await fetchSource(row, { claim, timeoutMs: leftS * 1000, signal })
    } catch (error) {
      await settle(videoId, claim, error, signal)
      await pause(FAILURE_PAUSE_MS, undefined, { signal }).catch(() => undefined)
      return
    }
    reportReceived()
  }

  async function fetchSource(
    row: ImportRow,
    { claim, timeoutMs, signal }: { claim: Claim; timeoutMs: number; signal: AbortSignal },
  ): Promise<void> {
    const { videoId } = row
    await deps.quota.assertNotFull(row.accountId)
    using reservation = deps.quota.receive(row)
    const write = <T>(change: (tx: Db) => Promise<T>) =>
      deps.write(async (tx) => {
        if (!(await claim.isHeld(tx))) throw takenOver()
        return change(tx)
      })
    const source = await fetchImport({ ...deps, write }, { row, timeoutMs, reservation }, signal)
    const isAccepted = await claim.settle(async (tx) => {
      await accept(tx, row, source)
      return true
    })
    if (!isAccepted) throw takenOver()
    deps.log.info({ videoId, sizeBytes: source.sizeBytes }, 'import: finished')
  }

  /** In one transaction: gives the video its source, and removes the import with its URL. */
  async function accept(tx: Db, { videoId, replaces }: ImportRow, source: ReceivedSource): Promise<void> {
    if (!(await removeImport(tx, videoId))) throw videoDeletedDuringImport()
    if (replaces === 0) return insertReceivedSource(deps, tx, videoId, source)
    const fileName = (await findReplacement(tx, videoId))?.fileName ?? ''
    await removeReplacement(tx, videoId) // it waited for this file
    await attachSource(deps, tx, { videoId, source, fileName, replaces: true }, await takeNumber(tx, videoId))
  }

  function reportReceived(): void {
    void deps.signals.send('work-queued', 'encode')
  }

  /** Retries or fails an import after a failed attempt. */
  async function settle(videoId: string, claim: Claim, error: unknown, signal: AbortSignal): Promise<void> {
    const row = await findImport(deps.db, videoId)
    if (!row && (await findSource(deps.db, videoId))) return reportReceived() // it was committed, though the outcome was unknown
    if (!row) return deps.sources.removeAll(videoId) // deleted in the meantime: remove what was received
    if (signal.aborted) return postpone(row, claim, { delayS: 0, attempts: row.attempts - 1 }) // the server is stopping
    const ownFailure = error instanceof NoRoom ? error : hostFailure(error)
    const isUnexpected = !ownFailure && !(error instanceof Failure)
    if (isUnexpected) deps.log.error({ err: error, videoId }, 'import: unexpected error')
    const problem = ownFailure ?? (error instanceof Failure ? error : unexpectedFailure())
    if (problem.kind !== 'unavailable') return fail(row, claim, problem)
    const delayS = ownFailure ? HOST_RETRY_DELAY_S : RETRY_DELAYS_S[Math.max(row.attempts, 1) - 1]
    if (delayS === undefined || deps.nowS() + delayS >= (row.endsAtS ?? 0))
      return fail(row, claim, withAttemptCount(problem, row.attempts))
    deps.log.info({ videoId, problem: problem.message, delayS }, 'import: attempt failed; retrying')
    await postpone(row, claim, { delayS, attempts: ownFailure ? row.attempts - 1 : row.attempts })
  }

  async function postpone({ videoId }: ImportRow, claim: Claim, { delayS, attempts }: { delayS: number; attempts: number }) {
    const next = { nextAttemptAtS: deps.nowS() + delayS, attempts: Math.max(0, attempts) }
    await claim.settle((tx) => updateImport(tx, videoId, next))
  }

  /** With the alert of a failed encode: one a day for each account, however many imports fail. */
  async function fail({ videoId, accountId, file, replaces }: ImportRow, claim: Claim, problem: Failure): Promise<void> {
    const status = problem.kind === 'unsupported' ? 'Not a media file' : 'Encoding error'
    const settleRow = problem.kind === 'over-quota' && replaces === 0 ? holdImport : removeImport
    const hasFailed = await claim.settle(async (tx) => {
      if (!(await settleRow(tx, videoId))) return false // deleted in the meantime
      if (replaces === 1) await updateReplacement(tx, videoId, { problem: problem.message })
      else if (!(await moveStatus(tx, videoId, status, problem.message))) return false
      const numbers = { reason: problem.message }
      await recordOperationsAlert(tx, { accountId, cause: 'encode-failed', videoId, numbers }, deps.nowS())
      return true
    })
    if (hasFailed === undefined) return // taken over
    if (file) await deps.sources.remove(file)
    if (!hasFailed) return
    if (replaces === 1)
      deps.log.info({ videoId, reason: problem.message }, 'video: the file that was to replace it was not fetched')
    else deps.log.info({ videoId, status, reason: problem.message }, 'video: failed')
  }

  return claim
}

function takenOver(): Failure {
  return new Failure('unavailable', 'Another process has taken this import over.')
}

function unexpectedFailure(): Failure {
  return new Failure('unavailable', 'This server could not fetch the video; its log has the cause. Import it again later.')
}

function withAttemptCount(problem: Failure, attempts: number): Failure {
  return attempts > 1 ? new Failure(problem.kind, `${problem.message} It was tried ${attempts} times.`) : problem
}

function timedOut(importMaxS: number): Failure {
  return new Failure('too-large', `The video was not fetched within ${importMaxS} seconds, the time limit of an import.`)
}

/** The values of a column that at least `limit` rows have. */
function keysAtLimit<Name extends string>(rows: readonly Record<Name, string>[], name: Name, limit: number): string[] {
  const groups = Map.groupBy(rows, (row) => row[name])
  return [...groups].flatMap(([key, group]) => (group.length >= limit ? key : []))
}
