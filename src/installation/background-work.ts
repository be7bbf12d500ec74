import { availableParallelism, hostname } from 'node:os'
import type { Logger } from 'pino'
import { createStorageQuota } from '../accounts/storage-quota.ts'
import { startAlertMailer } from '../alerts/mailer.ts'
import { alertOfDisabledWebhook } from '../alerts/operations.ts'
import { startMp4Scheduler } from '../assets/mp4-scheduler.ts'
import { type DeletionDeps, type EndVideoSessions, startRemovals } from '../catalogue/deletion.ts'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { findDemoVideo } from '../demo/demo-store.ts'
import { releaseRun } from '../encode/chunk-store.ts'
import { type Encoding, startEncoding } from '../encode/start.ts'
import { Failure } from '../errors.ts'
import { retryImport } from '../ingest/import.ts'
import { startImportScheduler } from '../ingest/import-work.ts'
import type { SourceDeps } from '../ingest/source.ts'
import { openClaims } from '../jobs/claims.ts'
import { fileIdentity } from '../storage/identity.ts'
import { releaseDeliveries } from '../webhooks/delivery-store.ts'
import { startWebhookSender } from '../webhooks/sender.ts'
import { createRotation, type MasterKeyRotation, resumeRotation } from './master-key-rotation.ts'
import type { Foundation } from './open-foundation.ts'

export type BackgroundWorkDeps = {
  config: Config
  endVideoSessions: EndVideoSessions
  saveUsage(): Promise<void>
  log: Logger
}

/** What runs behind the requests. */
export type BackgroundWork = {
  encoding: Encoding
  /** What an upload or an import needs to become a video. */
  receiving: SourceDeps
  /** Has a failed video encoded again, or imported again if its file did not fit. */
  retry: Encoding['retry']
  deletion: DeletionDeps
  masterKeyRotation: MasterKeyRotation
  /** Looks for all work that earlier runs left. */
  wake(): void
}

/** Starts encoding, imports, MP4 exports, the removal of deleted videos, and webhooks. @param opened stops them */
export async function startBackgroundWork(
  {
    db,
    slowQueryDb,
    write,
    truncateWal,
    signals,
    masterKey,
    folders,
    tmp,
    nowS,
    wallNowS,
    sandbox,
    outbound,
    ...foundation
  }: Foundation,
  { config, endVideoSessions, saveUsage, log }: BackgroundWorkDeps,
  opened: AsyncDisposableStack,
): Promise<BackgroundWork> {
  const { hasRoom } = foundation.space
  const { uploadMaxBytes, importMaxS, encoders } = config
  const claims = await openClaims({
    ...{ db, write, nowS, log },
    server: nameServer(config),
    isOnlyServer: true, // it has the lock of the data folder, and of the database
    release: { chunk: releaseRun, webhook: releaseDeliveries },
  })
  opened.defer(() => claims.stop())
  const encoding = startEncoding(
    {
      ...{ db, slowQueryDb, write, signals, nowS, wallNowS, masterKey, sandbox, folders, tmp, endVideoSessions, claims, log },
      slots: encoders ?? availableParallelism(),
      databaseLost: foundation.ownership.lost,
      hasRoom: () => hasRoom(0),
      findDemoVideoId: async () => (await findDemoVideo(db))?.id,
    },
    opened,
  )
  const { repairSegment } = encoding
  const { sources } = folders
  const quota = createStorageQuota({ db, slowQueryDb })
  const receiving = { db, write, signals, nowS, wallNowS, masterKey, sources, uploadMaxBytes, hasRoom, quota, log }
  const imports = await startImportScheduler({ ...receiving, claims, outbound, importMaxS })
  opened.defer(() => imports.stop())
  const mp4s = startMp4Scheduler({
    db,
    slowQueryDb,
    nowS,
    claims,
    signals,
    masterKey,
    folders,
    hasRoom,
    reportDamage: repairSegment,
    log,
  })
  opened.defer(() => mp4s.stop())
  const removals = startRemovals({ db, write, truncateWal, folders, signals, saveUsage, log })
  opened.defer(() => removals.stop())
  const copy = foundation.restoredCopy
  const sender = startWebhookSender({
    ...{ db, write, claims, signals, nowS, wallNowS, masterKey, outbound, copy, log },
    onDisabled: (tx, webhook, reason) => alertOfDisabledWebhook(tx, webhook, reason, nowS()),
  })
  opened.defer(() => sender.stop())
  if (config.alertMail) {
    const mailer = startAlertMailer({ db, claims, nowS, log }, config.alertMail)
    opened.defer(() => mailer.stop())
  }

  const stopping = new AbortController()
  const { signal } = stopping
  const rotationDeps = { db, slowQueryDb, write, truncateWal, config, nowS, signal }
  const masterKeyRotation = createRotation(rotationDeps, { masterKey, ...foundation })
  let rotating = Promise.resolve()
  opened.defer(async () => {
    stopping.abort(new Failure('unavailable', 'The server is stopping. Its next start continues the rotation.'))
    await rotating
  })
  async function retry(...failed: Parameters<Encoding['retry']>): Promise<void> {
    const isImport = await retryImport({ db, write, quota, signals }, ...failed)
    if (!isImport) await encoding.retry(...failed)
  }
  return {
    encoding,
    receiving,
    retry,
    masterKeyRotation,
    deletion: { db, write, signals, wallNowS, endVideoSessions },
    wake() {
      for (const work of ['encode', 'import', 'mp4', 'removal'] as const) void signals.send('work-queued', work)
      rotating = resumeRotation(masterKeyRotation, log, signal)
    },
  }
}

/** The data folder of a server distinguishes it from all others. */
function nameServer({ dataDir }: Config): string {
  return `${hostname()} ${fileIdentity(dataPaths(dataDir).lock) ?? dataDir}`
}
