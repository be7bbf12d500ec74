import { availableParallelism } from 'node:os'
import { isHostFailure } from '../errors.ts'
import { claimInShares } from '../jobs/claim-in-shares.ts'
import type { Job } from '../jobs/dispatcher.ts'
import { isEncodingAllowed } from '../sandbox/bubblewrap.ts'
import { claimChunk, claimOldestChunk, forVideo } from './chunk-queue.ts'
import { endRun, isUrgent, URGENT_PRIORITY, type VideoChunk } from './chunk-store.ts'
import type { EncodeDeps } from './encode-deps.ts'
import { examineSource } from './examine-source.ts'
import { failVideo, isSourceGone } from './fail-video.ts'
import { finishVideo } from './finish-video.ts'
import { findUnfinished, findUnplanned } from './generation-store.ts'
import { runChunk } from './run-chunk.ts'

/** How often work on a video may fail before the video does; failures of the host do not count. */
const MAX_ATTEMPTS = 3
const RETRY_AFTER_MS = 30_000
/** Host failures end for all videos together, and `hasRoom` keeps new work from meeting them. */
const RETRY_AFTER_HOST_FAILURE_MS = 5_000
const CHECK_ROOM_EVERY_MS = 2_000
/** About as many cores as an ffmpeg uses that chooses its threads itself. */
const CORES_PER_URGENT_RUN = 4
/** How many jobs of other kinds may be claimed before a kind of work that waits: some for each urgent run that the cores have room for. */
const MAX_PASSED_OVER = 4 * Math.ceil(availableParallelism() / CORES_PER_URGENT_RUN)
/** A video whose first seconds take longer than this no longer delays the others. */
const MAX_URGENT_MS = 5_000

const PRIORITIES = {
  urgent: { upToPriority: URGENT_PRIORITY },
  backlog: { upToPriority: undefined, abovePriority: URGENT_PRIORITY },
}

/** What may be worked on now: any video, or the demo video alone, whose source needs no sandbox. */
type Permitted = { deps: EncodeDeps; only?: string }
type Work = (signal: AbortSignal) => Promise<void>

/**
 * Claims what is to be done for videos, in the order in which it matters: finish a video, examine a new source, encode a chunk that is
 * waited for, encode another. Whatever arrives, each kind gets its share. The database says what is to be done. This process remembers
 * only the videos in progress, so that no work is begun twice, and the videos that failed a moment ago, so that a full disk is not tried
 * again as fast as the machine can.
 * @param wake called when there may be something to claim again
 */
export function createEncodeScheduler(deps: EncodeDeps, wake: () => void) {
  const inProgress = new Set<string>()
  const failures = createFailurePolicy(deps, wake)
  /** Runs that failed and could not be made pending again yet. */
  const unreleasedRuns: VideoChunk[] = []
  /** Runs of video that a viewer waits for right now. */
  const urgentRuns = new Set<VideoChunk>()
  const findPermitted = createSandboxCheck(deps)
  let isCheckingRoom = false
  /** Whose source was examined last. */
  let lastAccountId = ''
  // A run of the backlog would take its share of the cores that an urgent run keeps busy, and double its time.
  const isHeldBack = () => urgentRuns.size * CORES_PER_URGENT_RUN >= availableParallelism()
  const claimOrdinary = claimInShares<Permitted, Job>(
    [
      { claim: claimFinish },
      { claim: claimSource },
      { claim: (permitted) => claimRun(permitted, 'urgent') },
      { claim: (permitted) => claimRun(permitted, 'backlog'), isHeldBack },
      { claim: (permitted) => claimRun(permitted, 'oldest'), isHeldBack },
    ],
    MAX_PASSED_OVER,
  )

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (!(await deps.hasRoom())) {
      checkRoomLater()
      return undefined
    }
    const permitted = await findPermitted()
    if (!permitted) return undefined
    if (urgentOnly) return (await claimRun(permitted, 'urgent')) ?? (await claimSource(permitted))
    return claimOrdinary(permitted)
  }

  function checkRoomLater() {
    if (isCheckingRoom) return
    isCheckingRoom = true
    setTimeout(() => {
      isCheckingRoom = false
      wake()
    }, CHECK_ROOM_EVERY_MS).unref()
  }

  async function claimSource({ deps, only }: Permitted): Promise<Job | undefined> {
    const video = await findUnplanned(deps.db, { except: [...inProgress, ...failures.backingOff], only, lastAccountId })
    if (!video) return undefined
    lastAccountId = video.accountId
    return videoJob(video.id, (signal) => examineSource(deps, video.id, signal))
  }

  async function claimFinish({ deps, only }: Permitted): Promise<Job | undefined> {
    const video = await findUnfinished(deps.db, [...inProgress, ...failures.backingOff], only)
    return video && videoJob(video.videoId, (signal) => finishVideo(deps, video, signal))
  }

  function videoJob(videoId: string, work: Work): Job {
    inProgress.add(videoId)
    return { key: videoId, run: (signal) => failures.guard(videoId, work, signal).finally(() => inProgress.delete(videoId)) }
  }

  async function claimRun({ deps, only }: Permitted, which: 'urgent' | 'backlog' | 'oldest'): Promise<Job | undefined> {
    for (const run of unreleasedRuns.splice(0)) await releaseRun(run)
    const except = () => [...failures.backingOff]
    const claimed =
      which === 'oldest'
        ? await claimOldestChunk(deps.write, deps.chunkQueue, { except: except(), only })
        : await claimChunk(deps.write, deps.chunkQueue, () => ({ ...PRIORITIES[which], except: except() }))
    if (!claimed) return undefined
    const { run, hold } = claimed
    if (isUrgent(run)) trackUrgent(run)
    const work: Work = (signal) =>
      runChunk(deps, run, signal)
        .catch(async (error) => {
          if (!signal.aborted) failures.backingOff.add(run.videoId) // before the release, or a claim would take it immediately
          await releaseRun(run)
          throw error
        })
        .finally(() => releaseUrgent(run))
    return { key: run.videoId, run: (signal) => failures.guard(run.videoId, (signal) => hold(() => work(signal)), signal) }
  }

  function trackUrgent(chunk: VideoChunk) {
    urgentRuns.add(chunk)
    setTimeout(() => releaseUrgent(chunk), MAX_URGENT_MS).unref()
  }

  function releaseUrgent(chunk: VideoChunk) {
    if (urgentRuns.delete(chunk)) wake()
  }

  async function releaseRun(chunk: VideoChunk): Promise<void> {
    await deps.write((tx) => endRun(tx, chunk, 'pending')).catch(() => unreleasedRuns.push(chunk))
  }

  return { claim }
}

/** @returns what may be worked on now; undefined: nothing, since uploads wait for a sandbox */
function createSandboxCheck(deps: EncodeDeps): () => Promise<Permitted | undefined> {
  let isSandboxMissing = false
  return async () => {
    if (await isEncodingAllowed(deps.sandbox)) {
      if (isSandboxMissing) deps.log.info('sandbox: bubblewrap runs, uploads are encoded')
      isSandboxMissing = false
      return { deps }
    }
    isSandboxMissing = true
    const only = await deps.findDemoVideoId()
    const sandbox = { ...deps.sandbox, weak: true }
    return only === undefined ? undefined : { deps: { ...deps, sandbox, chunkQueue: forVideo(only, deps.chunkQueue) }, only }
  }
}

/** Decides what a failed job means for its video: another attempt after a while, or the end. */
function createFailurePolicy(deps: EncodeDeps, wake: () => void) {
  /** Videos whose work failed and is not yet retried. */
  const backingOff = new Set<string>()
  const counts = new Map<string, number>()

  async function afterFailure(videoId: string, error: unknown, signal: AbortSignal): Promise<void> {
    const isOfHost = isHostFailure(error)
    const count = (counts.get(videoId) ?? 0) + (isOfHost ? 0 : 1)
    counts.set(videoId, count)
    backingOff.add(videoId)
    if (!isOfHost && (count >= MAX_ATTEMPTS || (await isSourceGone(deps, videoId)))) {
      counts.delete(videoId)
      await failVideo(deps, { videoId, error, signal }).finally(() => backingOff.delete(videoId))
      return
    }
    deps.log.warn({ err: error, videoId }, 'video: encoding failed, will be retried')
    const retry = () => {
      backingOff.delete(videoId)
      wake()
    }
    setTimeout(retry, isOfHost ? RETRY_AFTER_HOST_FAILURE_MS : RETRY_AFTER_MS).unref()
  }

  return {
    backingOff,
    /** Runs work on a video. Rejects only when the failure cannot be recorded. */
    async guard(videoId: string, work: Work, signal: AbortSignal): Promise<void> {
      try {
        await work(signal)
        counts.delete(videoId)
      } catch (error) {
        if (signal.aborted) backingOff.delete(videoId)
        else await afterFailure(videoId, error, signal)
      }
    },
  }
}
