import { statfs } from 'node:fs/promises'
import { countAlertsSince } from '../alerts/alert-store.ts'
import type { Config } from '../config/config.ts'
import type { Db } from '../db/database.ts'
import type { EncodeCounters } from '../encode/encode-counters.ts'
import type { LiveSessions } from '../playback/sessions/live-session.ts'
import { countOpenChunks } from '../progress/progress-store.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import { DAY_S } from '../time.ts'
import type { ViewQualities } from '../view-quality/view-quality.ts'
import { countOpenDeliveries, listOldestRetries } from '../webhooks/delivery-store.ts'
import { countDisabledWebhooks } from '../webhooks/webhook-store.ts'
import { describeWorker, findWorkers, type WorkerTasks } from '../workers/worker.ts'
import { findLastBackup } from './backup/last-backup.ts'

type StateDeps = {
  config: Config
  bucket: Bucket | undefined
  slowQueryDb: Db
  sessions: LiveSessions
  viewQualities: Pick<ViewQualities, 'totals'>
  counters: EncodeCounters
  nowS: () => number
  wallNowS: () => number
  workerTasks: WorkerTasks | undefined
}

const ACTIVE_S = 60

/** What the metrics show of the server at the moment. What only the database knows is left out while it does not answer. */
export async function readServerState({
  config,
  bucket,
  slowQueryDb: db,
  sessions,
  viewQualities: { totals },
  counters,
  nowS,
  wallNowS,
  workerTasks,
}: StateDeps) {
  const { bavail, blocks, bsize } = await statfs(config.dataDir)
  const activeSince = nowS() - ACTIVE_S
  const active = [...sessions.values()].filter(({ row, lastSeenAtS }) => row.endedAtS === null && lastSeenAtS >= activeSince)
  const rows = await readRows(db, { nowS: nowS(), wallNowS: wallNowS(), workerTasks }).catch(() => ({ reelgate_database_up: 0 }))
  return {
    ...rows,
    ...(bucket && { reelgate_bucket_up: bucket.outage() ? 0 : 1 }),
    reelgate_playback_sessions: active.length,
    reelgate_playback_starts_total: totals.starts,
    reelgate_playback_start_seconds_total: totals.startMs / 1000,
    reelgate_playback_played_seconds_total: totals.playedMs / 1000,
    reelgate_playback_waits_total: totals.waits,
    reelgate_playback_waited_seconds_total: totals.waitedMs / 1000,
    reelgate_playback_frames_total: totals.frames,
    reelgate_playback_dropped_frames_total: totals.droppedFrames,
    reelgate_playback_errors_total: totals.errors,
    reelgate_segments_published_total: counters.segments,
    reelgate_encode_failures_total: counters.failures,
    reelgate_disk_free_bytes: bavail * bsize,
    reelgate_disk_size_bytes: blocks * bsize,
  }
}

type Now = { nowS: number; wallNowS: number } & Pick<StateDeps, 'workerTasks'>

async function readRows(db: Db, { nowS, wallNowS, workerTasks }: Now) {
  const backup = await findLastBackup({ db })
  const retries = await listOldestRetries(db)
  return {
    reelgate_database_up: 1,
    reelgate_chunks: await countOpenChunks(db),
    reelgate_workers: await countWorkers(db, nowS, workerTasks),
    reelgate_webhook_deliveries: await countOpenDeliveries(db),
    reelgate_webhook_retry_delay_seconds: Math.max(0, ...retries.map(({ dueAtS }) => nowS - dueAtS)),
    reelgate_webhooks_disabled: await countDisabledWebhooks(db),
    reelgate_alerts: await countAlertsSince(db, nowS - DAY_S),
    reelgate_backup_age_seconds: backup && Math.max(0, wallNowS - backup.atS),
  }
}

async function countWorkers(db: Db, nowS: number, workerTasks: WorkerTasks | undefined): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const worker of await findWorkers({ db, workerTasks })) {
    const { state } = describeWorker(worker, nowS)
    counts[state] = (counts[state] ?? 0) + 1
  }
  return counts
}
