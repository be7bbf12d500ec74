import { once } from 'node:events'
import { pruneAlerts } from '../alerts/alert.ts'
import { watchBucket } from '../alerts/bucket-away.ts'
import { startAlertMailer } from '../alerts/mailer.ts'
import { alertOfDisabledWebhook, checkOperations } from '../alerts/operations.ts'
import { sweepMedia } from '../assets/media-check.ts'
import { pruneAuditLog } from '../audit/audit-log.ts'
import { startRemovals } from '../catalogue/deletion.ts'
import { FILE_BLOB_NAME, listReferencedFileBlobs } from '../catalogue/file-store.ts'
import { deleteEndedTrash } from '../catalogue/trash.ts'
import { dataPaths } from '../config/data-paths.ts'
import { listReferencedSegments, SEGMENT_BLOB } from '../encode/generation-store.ts'
import { deleteEndedKept } from '../encode/replacement.ts'
import { pruneStoredResponses } from '../idempotency/idempotency.ts'
import { deleteExpiredUploads } from '../ingest/expired-uploads.ts'
import { removeExpiredUploads } from '../ingest/resumable-upload.ts'
import { listReferencedSources, SOURCE_BLOB_NAME } from '../ingest/source-store.ts'
import { pruneUploadTokens } from '../ingest/upload-token.ts'
import { findLastBackup } from '../installation/backup/last-backup.ts'
import { logErrorsQuietly, runRegularly } from '../installation/log-errors.ts'
import { resumeRotation } from '../installation/master-key-rotation.ts'
import type { Foundation } from '../installation/open-foundation.ts'
import { startDuty } from '../jobs/duty.ts'
import { pruneLti } from '../lti/prune.ts'
import { startScoreSender } from '../lti/score-sender.ts'
import { createTroubleRecorder } from '../lti/trouble.ts'
import { prunePlayback } from '../playback/prune.ts'
import { pruneBans } from '../rate-limits/bans.ts'
import { sandboxAdvice } from '../sandbox/bubblewrap.ts'
import { createOrphanSweep, ORPHANS_KEPT_S } from '../storage/orphan-sweep.ts'
import { refillReserve } from '../storage/reserve.ts'
import { measureStorage } from '../usage/storage.ts'
import { pruneUsage } from '../usage/usage.ts'
import { pruneSignIns } from '../users/sign-in.ts'
import { pruneViewQualities } from '../view-quality/view-quality.ts'
import { checkPlayback } from '../view-quality/worse-day.ts'
import { pruneDeliveries } from '../webhooks/batch-jobs.ts'
import { startWebhookSender } from '../webhooks/sender.ts'

// What runs by the clock, not for a request.

const SWEEP_EVERY_MS = 3_600_000
const REFILL_EVERY_MS = 5_000
const LOOK_AT_BUCKET_EVERY_MS = 5_000
/** How many names of a folder one sweep checks: a second or two of work, never a whole large installation. */
const SWEPT_NAMES = 100_000

/** Removes what is no longer needed, sends webhooks and mails, and checks files, until the server stops. */
export async function startMaintenance(foundation: Foundation): Promise<void> {
  const { config, log, opened, servers, nowS, restoredCopy, fileMove } = foundation
  const removals = startRemovals(foundation)
  opened.defer(() => removals.stop())
  const sender = startWebhookSender({
    ...{ ...foundation, copy: restoredCopy },
    onDisabled: (tx, webhook, reason) => alertOfDisabledWebhook(tx, webhook, reason, nowS()),
  })
  opened.defer(() => sender.stop())
  const scores = startScoreSender({ ...foundation, copy: restoredCopy, recordTrouble: createTroubleRecorder(foundation) })
  opened.defer(() => scores.stop())
  if (config.alertMail) {
    const mailer = startAlertMailer(foundation, config.alertMail)
    opened.defer(() => mailer.stop())
  }
  await fileMove.resume()
  opened.defer(() => fileMove.stop())
  const refill = setInterval(() => logErrorsQuietly(log, 'disk: reserving space failed', refillDisk), REFILL_EVERY_MS)
  opened.defer(async () => clearInterval(refill))
  const caring = startDuty({ ...foundation, isOnlyServer: !servers.mayHaveOthers }, 'maintenance', (signal) =>
    care(foundation, signal),
  )
  opened.defer(() => caring.stop())

  async function refillDisk(): Promise<void> {
    if (await refillReserve(dataPaths(config.dataDir).reserve)) log.info('disk: space reserved for when it is full')
  }
}

/** What one server does for all of an installation: it watches the bucket, finishes a rotation of the master key, and sweeps. */
async function care(foundation: Foundation, signal: AbortSignal): Promise<void> {
  const { log, rotation } = foundation
  await using started = new AsyncDisposableStack()
  await watchOutages(foundation, started)
  const rotating = resumeRotation(rotation, log, signal)
  const sweeps = createSweeps(foundation)
  let sweeping = sweepAll(foundation, sweeps, signal)
  let isChecking = false
  let checking = checkMedia()

  /** At its own pace: a large installation takes days. */
  async function checkMedia(): Promise<void> {
    if (foundation.findFilesBucket()) return // a bucket checks what it keeps, and reading all of it would cost money each week
    isChecking = true
    const files = { ...foundation, reportDamage: foundation.repairSegment }
    await logErrorsQuietly(log, 'maintenance: checking files failed', () => sweepMedia(files, signal))
    isChecking = false
  }

  const timer = setInterval(() => {
    sweeping = sweeping.then(() => sweepAll(foundation, sweeps, signal))
    if (!isChecking) checking = checkMedia()
  }, SWEEP_EVERY_MS)
  if (!signal.aborted) await once(signal, 'abort')
  clearInterval(timer)
  await Promise.all([rotating, sweeping, checking])
}

async function watchOutages(foundation: Foundation, started: AsyncDisposableStack): Promise<void> {
  const { bucket, log } = foundation
  if (!bucket) return
  const outage = () => {
    const now = bucket.outage()
    return now && { reason: now.why.message, forS: (performance.now() - now.sinceMs) / 1000 }
  }
  const work = await watchBucket({ ...foundation, outage })
  const failure = 'bucket: recording an alert about it failed'
  runRegularly({ opened: started, log }, { everyMs: LOOK_AT_BUCKET_EVERY_MS, work, failure })
}

async function sweepAll(foundation: Foundation, sweeps: readonly (() => Promise<void>)[], signal: AbortSignal): Promise<void> {
  const { config, log, signals, nowS, space, sandbox, restoredCopy, deletion, receiving } = foundation
  const { viewerDataDays } = config
  const operations = {
    ...{ ...foundation, isDiskLow: space.isLow, isSandboxMissing: sandboxAdvice(sandbox) !== undefined },
    areWebhooksHeld: () => restoredCopy.isPaused(),
    findLastBackupS: async () => (await findLastBackup(foundation))?.atS,
  }
  const steps = [
    () => prunePlayback(foundation, viewerDataDays),
    () => pruneStoredResponses(foundation),
    () => pruneBans(foundation),
    () => pruneAuditLog(foundation),
    () => pruneSignIns(foundation),
    () => pruneUploadTokens(foundation),
    () => checkOperations(operations),
    () => checkPlayback(foundation),
    () => pruneAlerts(foundation, viewerDataDays),
    () => pruneLti(foundation, viewerDataDays),
    () => pruneDeliveries(foundation),
    () => pruneUsage(foundation, viewerDataDays),
    () => pruneViewQualities(foundation),
    () => measureStorage(foundation),
    () => deleteExpiredUploads(deletion, nowS()),
    () => removeExpiredUploads({ ...receiving, ...deletion }, nowS()),
    () => deleteEndedTrash(deletion),
    () => deleteEndedKept({ ...foundation, ...deletion }),
    () => signals.send('work-queued', 'removal'), // what failed before, such as while the database was unavailable
    ...sweeps,
  ]
  for (const step of steps) {
    if (signal.aborted) return
    await logErrorsQuietly(log, 'maintenance: sweep failed', step)
  }
}

/** Each removes orphaned files from one folder, some in each run: a crash between a rename and its commit leaves them. */
function createSweeps({ db, folders, nowS, log }: Foundation): (() => Promise<void>)[] {
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
