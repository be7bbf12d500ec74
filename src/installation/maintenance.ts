import type { Logger } from 'pino'
import type { KeyUseTracker } from '../accounts/key-use.ts'
import { pruneAlerts } from '../alerts/alert.ts'
import { checkOperations, type OperationsCheckDeps } from '../alerts/operations.ts'
import { type CheckDeps, sweepMedia } from '../assets/media-check.ts'
import { pruneAuditLog } from '../audit/audit-log.ts'
import type { DeletionDeps, VideoFolders } from '../catalogue/deletion.ts'
import { FILE_BLOB_NAME, listReferencedFileBlobs } from '../catalogue/file-store.ts'
import { deleteEndedTrash } from '../catalogue/trash.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { listReferencedSegments, SEGMENT_BLOB } from '../encode/generation-store.ts'
import { logLevelFor } from '../errors.ts'
import { pruneStoredResponses } from '../idempotency/idempotency.ts'
import { deleteExpiredUploads } from '../ingest/expired-uploads.ts'
import { listReferencedSources, SOURCE_BLOB_NAME } from '../ingest/source-store.ts'
import { prunePlayback } from '../playback/prune.ts'
import { type BanPruneDeps, pruneBans } from '../rate-limits/bans.ts'
import { createOrphanSweep, ORPHANS_KEPT_S } from '../storage/orphan-sweep.ts'
import { refillReserve } from '../storage/reserve.ts'
import { measureStorage } from '../usage/storage.ts'
import { pruneUsage, type Usage } from '../usage/usage.ts'
import { pruneSignIns } from '../users/sign-in.ts'
import { pruneDeliveries } from '../webhooks/batch-jobs.ts'

// What runs by the clock, not for a request.

const SWEEP_EVERY_MS = 3_600_000
/** How many names of a folder one sweep checks: a second or two of work, never a whole large installation. */
const SWEPT_NAMES = 100_000

export type MaintenanceDeps = Pick<
  OperationsCheckDeps,
  'wallNowS' | 'isDiskLow' | 'isSandboxMissing' | 'areWebhooksHeld' | 'findLastBackupS'
> & {
  db: Db
  slowQueryDb: Db
  write: Write
  /** The playback clock: it only goes as time does, so that a jump of the wall clock makes no fresh file look old. */
  nowS: () => number
  folders: VideoFolders
  savePlayback(): Promise<void>
  deletion: DeletionDeps
  masterKey: MasterKey
  reportDamage: CheckDeps['reportDamage']
  recordDamagedFile: CheckDeps['recordDamagedFile']
  keyUses: KeyUseTracker
  bans: BanPruneDeps
  usage: Usage
  viewerDataDays: number
  /** The file that holds space for a full disk. */
  reserve: string
  log: Logger
}

/** Saves what is in memory and removes what is no longer needed, from now on. `stop` resolves when nothing of it runs any more. */
export function startMaintenance(deps: MaintenanceDeps): { stop(): Promise<void> } {
  const { nowS, deletion, keyUses, bans, usage, reserve, log } = deps
  const stopping = new AbortController()
  const sweeps = createSweeps(deps)
  let sweeping = sweepAll()
  let isChecking = false
  let checking = checkMedia()

  async function sweepAll(): Promise<void> {
    const steps = [
      () => prunePlayback(deps, deps.viewerDataDays),
      () => pruneStoredResponses(deps),
      () => pruneBans(bans),
      () => pruneAuditLog(deps),
      () => pruneSignIns(deps),
      () => checkOperations(deps),
      () => pruneAlerts(deps, deps.viewerDataDays),
      () => pruneDeliveries(deps),
      () => pruneUsage(deps, deps.viewerDataDays),
      () => measureStorage(deps),
      () => deleteExpiredUploads(deletion, nowS()),
      () => deleteEndedTrash(deletion),
      () => deletion.signals.send('work-queued', 'removal'), // what failed before, such as while the database was unavailable
      ...sweeps,
    ]
    for (const step of steps) {
      if (stopping.signal.aborted) return
      await logErrorsQuietly(log, 'maintenance: sweep failed', step)
    }
  }

  /** At its own pace: a large installation takes days. */
  async function checkMedia(): Promise<void> {
    isChecking = true
    await logErrorsQuietly(log, 'maintenance: checking files failed', () => sweepMedia(deps, stopping.signal))
    isChecking = false
  }

  const saves = [
    { everyMs: 5_000, save: refill, failure: 'disk: reserving space failed' },
    { everyMs: 5_000, save: deps.savePlayback, failure: 'sessions: saving them failed' },
    { everyMs: 5_000, save: usage.save, failure: 'usage: saving it failed' },
    { everyMs: 60_000, save: keyUses.save, failure: 'API keys: saving their last use failed' },
  ]
  async function refill(): Promise<void> {
    if (await refillReserve(reserve)) log.info('disk: space reserved for when it is full')
  }

  const timers = [
    ...saves.map(({ everyMs, save, failure }) => setInterval(() => logErrorsQuietly(log, failure, save), everyMs)),
    setInterval(() => {
      sweeping = sweeping.then(sweepAll)
      if (!isChecking) checking = checkMedia()
    }, SWEEP_EVERY_MS),
  ]
  return {
    async stop() {
      timers.forEach(clearInterval)
      stopping.abort()
      await Promise.all([sweeping, checking])
    },
  }
}

/** Each removes orphaned files from one folder, some in each run: a crash between a rename and its commit leaves them. */
function createSweeps({ db, folders, nowS, log }: MaintenanceDeps): (() => Promise<void>)[] {
  const sweeps = {
    sources: createOrphanSweep(folders.sources, SOURCE_BLOB_NAME, (names) => listReferencedSources(db, names)),
    segments: createOrphanSweep(folders.segments, SEGMENT_BLOB, (names) => listReferencedSegments(db, names)),
    posters: createOrphanSweep(folders.posters, FILE_BLOB_NAME, (names) => listReferencedFileBlobs(db, names)),
    files: createOrphanSweep(folders.files, FILE_BLOB_NAME, (names) => listReferencedFileBlobs(db, names)),
    tmp: (atS: number) => folders.sources.removeUnfinished(atS - ORPHANS_KEPT_S),
  }
  return Object.entries(sweeps).map(([folder, sweep]) => async () => {
    const removed = await sweep(Math.min(nowS(), await folders.sources.nowS()), SWEPT_NAMES)
    if (removed > 0) log.info({ folder, removed }, 'maintenance: orphaned files removed')
  })
}

/** For work that is soon repeated: while the database is unavailable, which is logged once, its errors are for debugging only. */
async function logErrorsQuietly(log: Logger, message: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => log[logLevelFor(error, 'error')]({ err: error }, message))
}
