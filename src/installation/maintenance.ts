import type { Logger } from 'pino'
import type { KeyUseTracker } from '../accounts/key-use.ts'
import { pruneAuditLog } from '../audit/audit-log.ts'
import type { DeletionDeps } from '../catalogue/deletion.ts'
import { FILE_BLOB, listReferencedFileBlobs } from '../catalogue/file-store.ts'
import { listReferencedSegments, SEGMENT_BLOB } from '../encode/generation-store.ts'
import { type CheckDeps, sweepSegments } from '../encode/media-check.ts'
import { levelOf } from '../errors.ts'
import { pruneStoredResponses } from '../idempotency/idempotency.ts'
import { deleteExpiredUploads } from '../ingest/expired-uploads.ts'
import { listReferencedSources, SOURCE_BLOB } from '../ingest/source-store.ts'
import { prunePlayback } from '../playback/prune.ts'
import { type PlaybackDeps, saveSessions } from '../playback/session.ts'
import { type BanPruneDeps, pruneBans } from '../rate-limits/bans.ts'
import { createOrphanSweep, createUnfinishedSweep, fileSystemNowS } from '../storage/orphan-sweep.ts'
import { refillReserve } from '../storage/reserve.ts'
import { sweepUsage, type Usage } from '../usage/usage.ts'
import { pruneDeliveries } from '../webhooks/batch-jobs.ts'
import type { Installation } from './installation.ts'

// What is done by the clock, not by a request: memory is saved, and what nobody needs is removed.

const SWEEP_EVERY_MS = 3_600_000
/** Names of one folder that a sweep looks at: a second or two of work, never the whole of a large installation at once. */
const SWEPT_NAMES = 100_000

export type MaintenanceDeps = {
  installation: Installation
  playback: PlaybackDeps
  deletion: DeletionDeps
  noteDamage: CheckDeps['noteDamage']
  keyUses: KeyUseTracker
  bans: BanPruneDeps
  usage: Usage
  /** The file that holds space for a full disk. */
  reserve: string
  log: Logger
}

/** Begins with a sweep. `stop` resolves when nothing of it runs any more. */
export function startMaintenance({
  installation,
  playback,
  deletion,
  noteDamage,
  keyUses,
  bans,
  usage,
  reserve,
  log,
}: MaintenanceDeps): {
  stop(): Promise<void>
} {
  const stopping = new AbortController()
  // A clock that has jumped must not make fresh files look old: the playback clock only goes as time does.
  const sweeps = sweepsOf(installation, playback.nowS, log)
  let sweeping = sweepAll()
  let isChecking = false
  let checking = checkMedia()

  async function sweepAll(): Promise<void> {
    const steps = [
      () => prunePlayback(playback),
      () => pruneStoredResponses(playback),
      () => pruneBans(bans),
      () => pruneAuditLog(playback),
      () => pruneDeliveries(playback),
      () => sweepUsage(playback),
      () => deleteExpiredUploads(deletion, playback.nowS()),
      async () => deletion.removeFiles(), // what met trouble, such as a database that was away
      ...sweeps,
    ]
    for (const step of steps) {
      if (stopping.signal.aborted) return
      await tried(log, 'what nobody needs could not be removed', step)
    }
  }

  /** At its own pace: a large installation takes days. */
  async function checkMedia(): Promise<void> {
    isChecking = true
    const deps = { ...installation, nowS: playback.nowS, noteDamage }
    await tried(log, 'the segments could not be checked', () => sweepSegments(deps, stopping.signal))
    isChecking = false
  }

  const saves = [
    { everyMs: 5_000, save: refill, trouble: 'the reserve for a full disk could not be made' },
    { everyMs: 5_000, save: () => saveSessions(playback), trouble: 'sessions could not be saved' },
    { everyMs: 5_000, save: usage.save, trouble: 'usage could not be saved' },
    { everyMs: 60_000, save: keyUses.save, trouble: 'the last use of keys could not be saved' },
  ]
  async function refill(): Promise<void> {
    if (await refillReserve(reserve)) log.info('space is kept in reserve for a full disk')
  }

  const timers = [
    ...saves.map(({ everyMs, save, trouble }) => setInterval(() => tried(log, trouble, save), everyMs)),
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

/** Each removes, a part in each run, what lies in one folder and no row names: a crash between a rename and its commit leaves it. */
function sweepsOf({ db, folders }: Installation, nowS: () => number, log: Logger): (() => Promise<void>)[] {
  const sweeps = {
    sources: createOrphanSweep(folders.sources, SOURCE_BLOB, (names) => listReferencedSources(db, names)),
    segments: createOrphanSweep(folders.segments, SEGMENT_BLOB, (names) => listReferencedSegments(db, names)),
    posters: createOrphanSweep(folders.posters, FILE_BLOB, (names) => listReferencedFileBlobs(db, names)),
    files: createOrphanSweep(folders.files, FILE_BLOB, (names) => listReferencedFileBlobs(db, names)),
    tmp: createUnfinishedSweep(folders.sources),
  }
  return Object.entries(sweeps).map(([folder, sweep]) => async () => {
    const removed = await sweep(Math.min(nowS(), fileSystemNowS(folders.sources)), SWEPT_NAMES)
    if (removed > 0) log.info({ folder, removed }, 'files that nothing names were removed')
  })
}

/** Does what nobody waits for; its failure is for the log. */
export async function logErrors(log: Logger, words: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => log.error({ err: error }, words))
}

/** The same for what is done again before long. */
async function tried(log: Logger, words: string, work: () => Promise<void>): Promise<void> {
  await work().catch((error) => log[levelOf(error, 'error')]({ err: error }, words))
}
