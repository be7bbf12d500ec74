import { encodeAudioChunk } from '../../encode/audio-chunk.ts'
import { type ChunkSink, encodeVideoChunk, TOLERATED_FRAMES } from '../../encode/chunk.ts'
import { HardwareFailure } from '../../encode/hardware.ts'
import { type ChunkEnd, InexactSeek, MediaFailure } from '../../encode/media-failure.ts'
import type { Sandbox } from '../../sandbox/bubblewrap.ts'
import type { SealedSource } from '../../sandbox/media-run.ts'
import { type EndBody, HEARTBEAT_MS, type TaskBody } from '../protocol.ts'
import { type Connection, ServerRefusal } from './connection.ts'
import { fetchParts, NotEnoughAllowed } from './needed-parts.ts'
import type { SendSegment } from './send-segment.ts'
import type { Range, SourceCopies } from './source-copies.ts'
import { type TriedHardware, tryAgain } from './try-hardware.ts'

export type RunDeps = {
  sandbox: Sandbox
  hardware: TriedHardware | undefined
  connection: Connection
  sendSegment: SendSegment
  copies: SourceCopies
}

/** How far a run is: how many of its segments were sent. */
export type Progress = { startedMs: number; sent: number; total: number }

/**
 * Encodes a chunk and sends its segments.
 * @returns how it ended; undefined: the server has taken the task back
 */
export async function runTask(
  deps: RunDeps,
  task: TaskBody,
  progress: Progress,
  stopping: AbortSignal,
): Promise<EndBody['outcome'] | undefined> {
  const { connection } = deps
  const lost = new AbortController()
  const signal = AbortSignal.any([stopping, lost.signal])
  const beating = setInterval(() => void connection.beat(task.id, signal).catch(loseIfGone), HEARTBEAT_MS)
  function loseIfGone(error: unknown): void {
    if (error instanceof ServerRefusal) lost.abort(error)
  }
  try {
    const end = await encode(deps, task, progress, signal)
    await connection.end(task.id, end, signal)
    return end.outcome
  } catch (error) {
    if (lost.signal.aborted || (error instanceof ServerRefusal && error.status === 404)) return undefined
    const reason = stopping.aborted ? undefined : error instanceof Error ? error.message.slice(0, 500) : String(error)
    await connection
      .end(task.id, { outcome: 'returned', ...(reason === undefined ? {} : { reason }) }, AbortSignal.timeout(HEARTBEAT_MS))
      .catch(() => undefined)
    if (!stopping.aborted && !(error instanceof ServerRefusal)) throw error
    return 'returned'
  } finally {
    clearInterval(beating)
  }
}

/** @throws HardwareUnusable; what has nothing to do with the source; the signal's reason */
async function encode(
  { sandbox, hardware, connection, sendSegment, copies }: RunDeps,
  task: TaskBody,
  progress: Progress,
  signal: AbortSignal,
): Promise<EndBody> {
  const { id, source, chunk, plan, threads } = task
  const gains = new Map(task.gains)
  const read = (range: Range) =>
    connection.readSource(id, range, signal).catch((error) => {
      throw error instanceof ServerRefusal && error.status === 403 ? new NotEnoughAllowed(error.message) : error
    })
  const sink: ChunkSink = {
    onInit: (renditionId, bytes) => connection.putInit(id, renditionId, bytes, signal),
    async onSegment(renditionId, number, bytes) {
      await sendSegment(task, { renditionId, number, bytes }, signal)
      progress.sent++
    },
  }
  try {
    const end: ChunkEnd = await copies.use(source, read, async (copy) => {
      await fetchParts(copy, task)
      const { keyHex, ivHex, sizeBytes } = source
      const sealed: SealedSource = { withLocalCopy: (use) => use(copy.path), keyHex, ivHex, sizeBytes }
      const request = { sandbox, source: sealed, plan, chunk, signal }
      return chunk.kind === 'audio'
        ? encodeAudioChunk({ ...request, findGain: async ({ renditionId }) => gains.get(renditionId) }, sink)
        : encodeVideoChunk({ ...request, threads: threads === 0 || hardware ? 'auto' : 1, hardware: hardware?.hardware }, sink)
    })
    const isWhole = end.truncatedAtS === undefined && (end.missingFrames ?? 0) <= TOLERATED_FRAMES
    return isWhole ? { outcome: 'done' } : { outcome: 'unclear', reason: 'its end cannot be read' }
  } catch (error) {
    // Where the card still encodes, it cannot encode this, such as a rung that is too small for it.
    if (hardware && error instanceof HardwareFailure) await tryAgain(sandbox, hardware)
    const isHardware = error instanceof HardwareFailure
    if (isHardware || error instanceof InexactSeek || error instanceof MediaFailure || error instanceof NotEnoughAllowed)
      return { outcome: 'unclear', reason: error.message.slice(0, 500) }
    throw error
  }
}
