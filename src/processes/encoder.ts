import { startEmbeddedCaptionsScheduler } from '../assets/embedded-captions-scheduler.ts'
import { startMp4Scheduler } from '../assets/mp4-scheduler.ts'
import { startStoryboardScheduler } from '../assets/storyboard-scheduler.ts'
import { startTranscriptionScheduler } from '../assets/transcription-scheduler.ts'
import { findDemoVideo } from '../demo/demo-store.ts'
import { saveServerCapacity } from '../encode/capacity-store.ts'
import { startDubScheduler } from '../encode/dub-scheduler.ts'
import { encoderFingerprint } from '../encode/encoder.ts'
import { startEncoding } from '../encode/start.ts'
import { startImportScheduler } from '../ingest/import-work.ts'
import { runRegularly } from '../installation/log-errors.ts'
import type { Foundation } from '../installation/open-foundation.ts'
import { openDirectUploads } from '../workers/direct-uploads.ts'
import { type HandOut, startHandOut } from '../workers/hand-out.ts'
import { startRecheck } from '../workers/recheck.ts'
import { createCapacityWatch } from '../workers/watch-capacity.ts'
import { createWorkerWatch } from '../workers/watch-workers.ts'

/**
 * Encodes, imports, exports MP4s, reads captions out of files, transcribes, adds audio tracks and makes storyboards until the server stops.
 * @returns what hands out chunks to workers
 */
export async function startEncoder(foundation: Foundation): Promise<HandOut> {
  const { config, opened, db, deletion, receiving, space, ownership, repairSegment } = foundation
  await announceCapacity(foundation)
  const { claimForRemote } = startEncoding(
    {
      ...{ ...deletion, ...foundation },
      transcribes: config.transcriber !== undefined,
      databaseLost: ownership.lost,
      hasRoom: space.hasRoom,
      findDemoVideoId: async () => (await findDemoVideo(db))?.id,
    },
    opened,
  )
  const onSuspended = startRecheck(foundation, opened)
  const direct = openDirectUploads(foundation, opened)
  const handOut = startHandOut({ ...foundation, direct, claimForRemote, onSuspended }, opened)
  const watchWorkers = createWorkerWatch({ ...foundation, workerTasks: handOut })
  runRegularly(foundation, { everyMs: 60_000, work: watchWorkers, failure: 'worker: looking after workers failed' })
  const watchCapacity = createCapacityWatch(foundation)
  runRegularly(foundation, {
    everyMs: 60_000,
    work: watchCapacity,
    failure: 'worker: looking for chunks without an encoder failed',
  })
  const imports = await startImportScheduler({ ...receiving, ...foundation, importMaxS: config.importMaxS })
  opened.defer(() => imports.stop())
  const { transcriber } = config
  if (transcriber) {
    const transcriptions = startTranscriptionScheduler({ ...foundation, transcriber, hasRoom: space.hasRoom })
    opened.defer(() => transcriptions.stop())
  }
  const captions = startEmbeddedCaptionsScheduler({ ...foundation, hasRoom: space.hasRoom })
  opened.defer(() => captions.stop())
  const dubs = startDubScheduler({ ...foundation, hasRoom: space.hasRoom })
  opened.defer(() => dubs.stop())
  const mp4s = startMp4Scheduler({ ...foundation, hasRoom: space.hasRoom, reportDamage: repairSegment })
  opened.defer(() => mp4s.stop())
  const storyboards = startStoryboardScheduler({ ...foundation, hasRoom: space.hasRoom, reportDamage: repairSegment })
  opened.defer(() => storyboards.stop())
  return handOut
}

/** Has the other servers of the database know what this one encodes with. */
async function announceCapacity({ write, servers, sandbox, encoderSlots: slots }: Foundation): Promise<void> {
  if (!servers.mayHaveOthers) return
  await write((tx) => saveServerCapacity(tx, servers.id, { encoder: encoderFingerprint(sandbox), slots }))
}
