import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { encoderFingerprint } from '../../encode/encoder.ts'
import { Failure } from '../../errors.ts'
import type { Sandbox } from '../../sandbox/bubblewrap.ts'
import { type ClaimBody, MAX_JOBS, type TaskBody } from '../protocol.ts'
import { connect, ServerRefusal } from './connection.ts'
import { type Progress, type RunDeps, runTask } from './run-task.ts'
import { createSegmentSender } from './send-segment.ts'
import { openSourceCopies } from './source-copies.ts'
import { HardwareUnusable, type TriedHardware } from './try-hardware.ts'

export type WorkerOptions = {
  server: string
  token: string
  /** Whether segments may be put at an address that the server names. */
  mayPutAt(address: URL): boolean
  /** Undefined: one per core, and one with a graphics card. */
  jobs: number | undefined
  kinds: ClaimBody['kinds']
  cacheFolder: string
  cacheBytes: number
  sandbox: Sandbox
  /** What encodes video in place of x264. */
  hardware?: TriedHardware | undefined
  log: Logger
  /** Aborted first: no more chunks, and what takes longer than half a minute is returned. */
  stopping: AbortSignal
  /** Aborted second: everything is returned. */
  ending: AbortSignal
}

const MAX_LAST_MS = 30_000
const AFTER_REFUSAL_MS = 60_000
const AFTER_FAILURE_MS = 30_000

/**
 * Encodes chunks for a server until a signal ends it.
 * @throws Failure `unauthenticated` when the token is refused; HardwareUnusable
 */
export async function runWorker({ server, token, jobs: wanted, kinds, ...options }: WorkerOptions): Promise<void> {
  const { sandbox, hardware, log, stopping, ending } = options
  // A graphics card encodes a few streams at a time, and a chunk has one for each rung.
  const jobs = wanted ?? (hardware ? 1 : Math.min(availableParallelism(), MAX_JOBS))
  const connection = connect(server, token, (why) => log.warn({ why }, 'worker: the server cannot be reached, trying again'))
  const copies = await openSourceCopies(options.cacheFolder, options.cacheBytes)
  const sendSegment = createSegmentSender(connection, options.mayPutAt, (why) =>
    log.warn({ why }, 'worker: the bucket cannot be reached, segments go through the server'),
  )
  const deps: RunDeps = { sandbox, hardware, connection, sendSegment, copies }
  const claimBody: ClaimBody = { encoder: hardware?.fingerprint ?? encoderFingerprint(sandbox), kinds: [...kinds], jobs }
  const refused = new AbortController()
  const quiet = AbortSignal.any([stopping, refused.signal])
  log.info({ server, jobs, encoder: claimBody.encoder }, 'worker: waiting for chunks')
  try {
    await Promise.all(Array.from({ length: jobs }, () => encodeChunks()))
  } finally {
    await copies.close()
  }

  async function encodeChunks(): Promise<void> {
    while (!quiet.aborted) {
      const task = await claim()
      if (task) await encode(task)
    }
    if (refused.signal.reason instanceof Failure) throw refused.signal.reason
  }

  async function claim(): Promise<TaskBody | undefined> {
    try {
      return await connection.claim(claimBody, quiet)
    } catch (error) {
      if (quiet.aborted) return undefined
      if (!(error instanceof ServerRefusal)) throw error
      if (error.status === 401) refused.abort(new Failure('unauthenticated', error.message))
      else log.error({ status: error.status }, `worker: refused: ${error.message}`)
      await pause(AFTER_REFUSAL_MS, undefined, { signal: quiet }).catch(() => undefined)
      return undefined
    }
  }

  async function encode(task: TaskBody): Promise<void> {
    const { kind, firstSegment, segmentCount } = task.chunk
    const renditions =
      kind === 'video' ? (task.plan.videoTrack?.renditions.length ?? 0) : 1 + (task.plan.otherAudioTracks?.length ?? 0)
    const progress: Progress = { startedMs: performance.now(), sent: 0, total: segmentCount * renditions }
    const returning = new AbortController()
    const giveBackIfLong = () => void (remainingMs(progress) > MAX_LAST_MS && returning.abort())
    stopping.addEventListener('abort', giveBackIfLong)
    try {
      const outcome = await runTask(deps, task, progress, AbortSignal.any([ending, returning.signal]))
      log.info({ task: task.id, kind, firstSegment, segmentCount, outcome: outcome ?? 'taken back' }, 'worker: chunk ended')
    } catch (error) {
      if (error instanceof HardwareUnusable) return refused.abort(error)
      log.error({ err: error, task: task.id }, 'worker: a chunk could not be encoded here')
      await pause(AFTER_FAILURE_MS, undefined, { signal: quiet }).catch(() => undefined)
    } finally {
      stopping.removeEventListener('abort', giveBackIfLong)
    }
  }
}

function remainingMs({ startedMs, sent, total }: Progress): number {
  return sent === 0 ? Number.POSITIVE_INFINITY : ((performance.now() - startedMs) * (total - sent)) / sent
}
