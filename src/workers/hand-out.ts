import { createDecipheriv } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { VideoFolders } from '../catalogue/deletion.ts'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Db } from '../db/database.ts'
import type { WorkerRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { checkResult, drawSample } from '../encode/check/check-result.ts'
import type { ChunkSink } from '../encode/chunk.ts'
import { CHUNK_KINDS, type ChunkKind } from '../encode/chunk-plan.ts'
import { findInit } from '../encode/generation-store.ts'
import { InexactSeek } from '../encode/media-failure.ts'
import type { RemoteEncoder, RemotePart } from '../encode/remote-encoder.ts'
import type { EncodeScheduler } from '../encode/scheduler.ts'
import { Failure } from '../errors.ts'
import { findSource } from '../ingest/source-store.ts'
import { startDispatcher } from '../jobs/dispatcher.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import type { Signals } from '../signals/signals.ts'
import { BlobLost } from '../storage/blob-store.ts'
import type { DirectUploads } from './direct-uploads.ts'
import {
  type AddressBody,
  type AddressReply,
  CLAIM_WAIT_MS,
  type ClaimBody,
  type EndBody,
  MAX_JOBS,
  type TaskBody,
} from './protocol.ts'
import { openTask, type Task, taskNotFound, WorkerLost } from './task.ts'
import { type CurrentTask, suspendWorker, type WorkerTasks } from './worker.ts'
import { findWorkerByHash, updateWorker } from './worker-store.ts'

// Chunks for workers. A request that waits for one is an encoder of this server: its chunk is claimed, run and published here, and only
// the encoding happens elsewhere.

type HandOutDeps = {
  db: Db
  write: Write
  nowS: () => number
  folders: Pick<VideoFolders, 'sources' | 'segments'>
  direct: DirectUploads
  sandbox: Sandbox
  signals: Pick<Signals, 'on' | 'send'>
  claimForRemote: EncodeScheduler['claimForRemote']
  /** What it had published is to be checked. */
  onSuspended(): void
  log: Logger
}

export type HandOut = WorkerTasks & {
  /** Waits for a chunk. Undefined: there was none for a while, or the signal ended the wait. */
  claim(worker: WorkerRow, body: ClaimBody, signal: AbortSignal): Promise<TaskBody | undefined>
  /** The task of a worker. It is alive with each request. @throws Failure `not-found` */
  getTask(worker: Pick<WorkerRow, 'id'>, taskId: string): Task
  /** Part of the source, sealed as it is stored. @throws Failure `forbidden` when the task has fetched enough */
  openSource(task: Task, range: { first: number; last: number }): Promise<{ first: number; last: number; bytes: Readable }>
  /** Where a worker may put a segment itself. Undefined: it is to be sent here. */
  presign(task: Task, segment: SegmentName, bytes: AddressBody): Promise<AddressReply | undefined>
  /** Takes a segment that was put there. */
  receiveStored(task: Task, segment: SegmentName): Promise<void>
  end(task: Task, body: EndBody): void
  /** Answers those that wait, and lets none wait from now on: the server stops. */
  stopWaiting(): void
}

type SegmentName = { renditionId: number; number: number }

/** A request that waits for a chunk. */
type Poll = {
  worker: WorkerRow
  kinds: readonly ChunkKind[]
  encoder: string
  /** False: nothing waits for it any more. */
  answer(task: TaskBody | undefined): boolean
  isOpen(): boolean
}

/** Of results that wait for their check, in memory: with more of them no chunk is handed out. */
const MAX_UNCHECKED_BYTES = 512 * 2 ** 20
/** All runs that workers have, on machines of any size. */
const MAX_TASKS = 1_000
const LOOK_EVERY_MS = 5_000
/** A worker that could not encode gets no chunk before. */
const REST_MS = 30_000
const SEEN_EVERY_S = 30
/** Of files with an index of their samples, of which a worker can read parts. */
const FIRST_BOXES = ['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip']
/** How much of the speed is that of the last task. */
const NEWEST_SHARE = 0.3

/** @param opened stops it */
export function startHandOut(deps: HandOutDeps, opened: AsyncDisposableStack, maxUncheckedBytes = MAX_UNCHECKED_BYTES): HandOut {
  const { db, write, nowS, folders, direct, signals, log } = deps
  const nowMs = () => performance.now()
  const polls = new Set<Poll>()
  const tasks = new Map<string, Task>()
  const restsUntilMs = new Map<string, number>()
  const speeds = new Map<string, number>()
  const dispatcher = startDispatcher({
    slots: MAX_TASKS,
    claim: claimForPoll,
    pollIntervalMs: LOOK_EVERY_MS,
    follows: { signals, work: 'encode' },
    log,
  })
  const timer = setInterval(endOverdue, LOOK_EVERY_MS)
  let isStopping = false
  opened.defer(async () => {
    clearInterval(timer)
    stopWaiting()
    await dispatcher.stop()
  })

  function stopWaiting(): void {
    isStopping = true
    for (const poll of polls) poll.answer(undefined)
  }

  function endOverdue(): void {
    for (const task of tasks.values()) {
      if (!task.isOverdue(nowMs())) continue
      log.warn(
        { worker: task.worker.name, videoId: task.part.video.videoId },
        'worker: silent for too long, its chunk is free again',
      )
      task.fail(new WorkerLost('the worker was silent for too long'))
    }
  }

  function uncheckedBytes(): number {
    return tasks.values().reduce((sum, task) => sum + (task.hasEnded() ? task.heldBytes() : 0), 0)
  }

  async function claimForPoll(isExtra: boolean) {
    if (isExtra || uncheckedBytes() > maxUncheckedBytes) return undefined
    /** For which encoders and kinds there is nothing. */
    const missing = new Set<string>()
    for (const poll of [...polls]) {
      const asked = [poll.encoder, ...poll.kinds.toSorted()].join()
      if (missing.has(asked) || (restsUntilMs.get(poll.worker.id) ?? 0) > nowMs()) continue
      const remote: RemoteEncoder = {
        ...{ workerId: poll.worker.id, encoder: poll.encoder },
        encode: (part, sink) => encode(poll, part, sink),
      }
      polls.delete(poll) // no other chunk is claimed for it meanwhile
      const job = await deps.claimForRemote(remote, poll.kinds).catch((error) => {
        waitOn(poll)
        throw error
      })
      if (!job) {
        waitOn(poll)
        missing.add(asked)
        continue
      }
      return {
        ...job,
        // Where it was not needed, as for a chunk that is finished already, the request waits on.
        run: (signal: AbortSignal) => job.run(signal).finally(() => waitOn(poll)),
      }
    }
    return undefined
  }

  function waitOn(poll: Poll): void {
    if (poll.isOpen()) polls.add(poll)
  }

  async function claim(worker: WorkerRow, body: ClaimBody, signal: AbortSignal): Promise<TaskBody | undefined> {
    await saveSeen(worker, body)
    assertMayEncode(worker)
    const { promise, resolve } = Promise.withResolvers<TaskBody | undefined>()
    let isOpen = true
    const poll: Poll = {
      worker,
      ...{ kinds: body.kinds, encoder: body.encoder },
      isOpen: () => isOpen,
      answer(task) {
        if (!isOpen) return false
        isOpen = false
        resolve(task)
        return true
      },
    }
    const end = () => void poll.answer(undefined)
    const timer = setTimeout(end, CLAIM_WAIT_MS)
    signal.addEventListener('abort', end)
    if (isStopping) end()
    else if (worker.drained === 0) {
      polls.add(poll)
      dispatcher.wake()
    }
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      polls.delete(poll)
    }
  }

  async function saveSeen(worker: WorkerRow, { encoder, jobs = 1, kinds: asked }: ClaimBody): Promise<void> {
    const kinds = CHUNK_KINDS.filter((kind) => asked.includes(kind)).join()
    const hasChanged = worker.encoder !== encoder || worker.jobs !== jobs || worker.kinds !== kinds
    if (hasChanged || nowS() - (worker.lastSeenAtS ?? 0) >= SEEN_EVERY_S)
      await write((tx) => updateWorker(tx, worker.id, { lastSeenAtS: nowS(), encoder, jobs, kinds }))
  }

  function assertMayEncode(worker: WorkerRow): void {
    if (worker.suspendedReason !== null)
      throw new Failure(
        'forbidden',
        `This worker is suspended: ${worker.suspendedReason}. "reelgate worker resume" lets it work again.`,
      )
    const waiting = [...polls].filter((poll) => poll.worker.id === worker.id)
    const running = [...tasks.values()].filter((task) => task.worker.id === worker.id && !task.hasEnded())
    if (waiting.length + running.length >= MAX_JOBS)
      throw new Failure('limited', `A worker has or waits for at most ${MAX_JOBS} chunks.`, { retryAfterS: 60 })
  }

  /** Encodes a part on the machine that a request came from. */
  async function encode(poll: Poll, part: RemotePart, sink: ChunkSink): Promise<boolean> {
    const { video, signal } = part
    const source = await findSource(db, video.videoId, video.sourceNumber)
    if (!source) throw new WorkerLost('the video was deleted')
    const sealed = await examine(source.file, part.source)
    // It may have been removed, drained or suspended while its request waited.
    const worker = await findWorkerByHash(db, poll.worker.hash)
    if (!worker || worker.drained === 1 || worker.suspendedReason !== null) {
      poll.answer(undefined)
      throw new WorkerLost('the worker gets no chunks any more')
    }
    const isStoring = part.storing !== undefined && (await direct.arePossible())
    signal.throwIfAborted()
    const task = openTask(poll.worker, part, sealed, nowMs, { isStoring })
    const abort = () => task.fail(signal.reason)
    signal.addEventListener('abort', abort)
    tasks.set(task.id, task)
    try {
      if (!poll.answer(task.body)) throw new WorkerLost('the worker no longer waits')
      const { outcome, reason } = await task.ended
      if (outcome === 'done') return await publish(task, sink)
      log.info({ worker: task.worker.name, videoId: video.videoId, outcome, reason }, 'worker: did not encode a chunk')
      if (outcome === 'unclear') return false
      if (reason !== undefined) restsUntilMs.set(task.worker.id, nowMs() + REST_MS)
      throw new WorkerLost('the worker returned the chunk')
    } finally {
      tasks.delete(task.id)
      signal.removeEventListener('abort', abort)
      await dropStored(task)
    }
  }

  /** Checks what a worker has made, and passes it on to be encrypted and published. False: the source itself cannot be compared with it. */
  async function publish(task: Task, sink: ChunkSink): Promise<boolean> {
    const { worker, part, inits } = task
    await keepSpeed(task)
    const segments = task.listSegments()
    const { plan, encoder, part: chunk, source, gains, signal } = part
    const findGain = async ({ renditionId }: { renditionId: number }) => gains.get(renditionId)
    // Drawn now that all are there: it does not know which.
    const compared = worker.trusted === 1 ? drawSample(segments) : segments
    const checked = await checkResult(
      { sandbox: deps.sandbox, encoder, source, plan, chunk, inits, segments, findGain, signal },
      { compared },
    ).catch((error) => {
      if (error instanceof InexactSeek) return undefined
      throw error
    })
    if (!checked) return false
    if (!checked.ok) return suspend(task, checked.reason)
    if (await hasOtherInits(part.video, checked.inits))
      return suspend(task, 'its encoder writes other parameter sets than the one that began this video')
    for (const [renditionId, init] of checked.inits) await sink.onInit(renditionId, init)
    for (const { renditionId, number, bytes, isStored } of segments) {
      if (isStored) part.storing?.addStored(renditionId, number, bytes)
      else await sink.onSegment(renditionId, number, bytes)
    }
    task.isPassedOn = true
    return true
  }

  /** What a worker has put into the bucket and is not published. */
  async function dropStored(task: Task): Promise<void> {
    const taken = task.listTaken()
    direct.removeLate(taken.map(({ file }) => file))
    for (const { file, isStored } of taken)
      if (!isStored || !task.isPassedOn) await folders.segments.remove(file).catch(() => undefined) // it is removed late
  }

  /** Two machines may call their encoders the same and write other parameter sets: segments of both would not play together. */
  async function hasOtherInits(video: GenerationKey, inits: ReadonlyMap<number, Buffer>): Promise<boolean> {
    for (const [renditionId, init] of inits) {
      const published = await findInit(db, video, renditionId)
      if (published && !published.equals(init)) return true
    }
    return false
  }

  async function suspend({ worker, part }: Task, reason: string): Promise<never> {
    log.error({ worker: worker.name, videoId: part.video.videoId, reason }, 'worker: suspended, what it sent failed a check')
    await suspendWorker({ write, nowS }, worker, reason)
    endTasksOf(worker.id)
    deps.onSuspended()
    throw new WorkerLost('the worker’s result failed a check')
  }

  async function keepSpeed({ worker: { id }, part: { part }, startedMs, lengthS }: Task): Promise<void> {
    if (part.kind !== 'video') return
    const newest = (1000 * lengthS) / (nowMs() - startedMs)
    const speed = NEWEST_SHARE * newest + (1 - NEWEST_SHARE) * (speeds.get(id) ?? newest)
    speeds.set(id, speed)
    await write((tx) => updateWorker(tx, id, { speed, lastSeenAtS: nowS() }))
  }

  async function examine(file: string, { keyHex, ivHex }: SealedSource): Promise<{ sizeBytes: number; hasIndex: boolean }> {
    await using blob = await folders.sources.open(file)
    const start = Buffer.alloc(16)
    await blob.read(start, 0)
    const decipher = createDecipheriv('aes-128-cbc', Buffer.from(keyHex, 'hex'), Buffer.from(ivHex, 'hex')).setAutoPadding(false)
    return { sizeBytes: blob.sizeBytes, hasIndex: FIRST_BOXES.includes(decipher.update(start).toString('latin1', 4, 8)) }
  }

  function endTasksOf(workerId: string): void {
    for (const task of tasks.values())
      if (task.worker.id === workerId) task.fail(new WorkerLost('the worker was removed or suspended'))
    for (const poll of polls) if (poll.worker.id === workerId) poll.answer(undefined)
  }

  return {
    claim,
    getTask(worker, taskId) {
      const task = tasks.get(taskId)
      if (!task || task.worker.id !== worker.id) throw taskNotFound()
      task.beat()
      return task
    },
    async openSource(task, asked) {
      const { video } = task.part
      const range = task.takeRange(asked)
      const source = await findSource(db, video.videoId, video.sourceNumber)
      if (!source) throw taskNotFound()
      const blob = await folders.sources.open(source.file)
      return { ...range, bytes: blob.stream(range) }
    },
    async presign(task, { renditionId, number }, bytes) {
      return direct.presign(task.takeName(renditionId, number, bytes), bytes)
    },
    async receiveStored(task, { renditionId, number }) {
      await task.receiveStored(renditionId, number, (file) =>
        folders.segments.read(file).catch((error) => {
          if (error instanceof BlobLost) throw new Failure('conflict', 'The segment is not in the bucket.')
          throw error
        }),
      )
    },
    end(task, body) {
      task.end(body)
    },
    tasksOf(workerId): CurrentTask[] {
      const own = [...tasks.values()].filter(({ worker }) => worker.id === workerId)
      return own.map(({ part: { video, part }, startedMs }) => ({
        ...{ videoId: video.videoId, kind: part.kind, firstSegment: part.firstSegment, segmentCount: part.segmentCount },
        forS: Math.round((nowMs() - startedMs) / 1000),
      }))
    },
    endTasksOf,
    stopWaiting,
  }
}
