import { availableParallelism } from 'node:os'
import type { Logger } from 'pino'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { claimInShares } from '../jobs/claim-in-shares.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import type { Job } from '../jobs/dispatcher.ts'
import { createFailureGuard, type FailureDeps } from '../jobs/failures.ts'
import { type CapacityDeps, findCapacities } from './capacity.ts'
import { CHUNK_KINDS, type ChunkKind } from './chunk-plan.ts'
import {
  beginRun,
  type ChunkFilter,
  type ClaimingEncoder,
  findNextChunk,
  findOldestChunk,
  isUrgent,
  subjectOfNextRun,
  URGENT_PRIORITY,
  type VideoChunk,
} from './chunk-store.ts'
import { encoderFingerprint } from './encoder.ts'
import { findIfUnplanned, findUnfinished, findUnplanned, findUnplannedReplacement, isFinished } from './generation-store.ts'
import type { RemoteEncoder } from './remote-encoder.ts'

export type EncodeWork = {
  examine(videoId: string, claim: Claim, signal: AbortSignal): Promise<void>
  finish(key: GenerationKey, claim: Claim, signal: AbortSignal): Promise<void>
  /** @param remote encodes it on another machine */
  encode(chunk: VideoChunk, claim: Claim, signal: AbortSignal, remote?: RemoteEncoder): Promise<void>
  isLost(videoId: string): Promise<boolean>
  /** Ends a video that failed too often. */
  fail(videoId: string, error: unknown, signal: AbortSignal): Promise<void>
}

/** What may be worked on now: any video, or the demo video alone, whose source needs no sandbox. */
type Permitted = { work: EncodeWork; only?: string | undefined }

/** Who encodes: which chunks it may have, and where it is, if not in this process. */
type Encoder = Pick<ChunkFilter, 'kinds' | 'decodesFromStart' | 'by'> & { remote?: RemoteEncoder }
type Call = Permitted & { encoder: Encoder }

/** Chunks are claimed by the encoders of this process and by those of other machines, in the same order. */
export type EncodeScheduler = {
  /** @param urgentOnly when all ordinary slots are taken */
  claim(urgentOnly: boolean): Promise<Job | undefined>
  claimForRemote(remote: RemoteEncoder, kinds: readonly ChunkKind[]): Promise<Job | undefined>
}

export type EncodeSchedulerDeps = FailureDeps &
  Pick<CapacityDeps, 'sandbox' | 'encoderSlots'> & {
    log: Logger
    claims: Pick<Claims, 'candidates' | 'claimNext'>
    /** Whether the disk has room for the output of an encode. */
    hasRoom(): Promise<boolean>
    /** Undefined: nothing, since uploads wait for a sandbox. */
    findPermitted(): Promise<Permitted | undefined>
  }

/** How often work on a video may fail before the video does. Nothing new begins without room, so a full disk is not met again and again. */
const FAILURE_POLICY = { kind: 'encoding', maxFailures: 3, retryAfterS: 30, retryAfterHostFailureS: 5 } as const
const CHECK_ROOM_EVERY_MS = 2_000
/** About as many cores as an ffmpeg uses that chooses its threads itself. */
const CORES_PER_URGENT_RUN = 4
/** How many jobs of other kinds may be claimed before a kind of work that waits: some for each urgent run that the cores have room for. */
const MAX_PASSED_OVER = 4 * Math.ceil(availableParallelism() / CORES_PER_URGENT_RUN)
/** A video whose first seconds take longer than this no longer delays the others. */
const MAX_URGENT_MS = 5_000

const CHUNKS = {
  urgent: { find: findNextChunk, upToPriority: URGENT_PRIORITY },
  backlog: { find: findNextChunk, abovePriority: URGENT_PRIORITY },
  oldest: { find: findOldestChunk },
}

/**
 * Claims what is to be done for videos, in the order in which it matters: finish a video, examine a new source, encode a chunk that is
 * waited for, encode another. Whatever arrives, each kind gets its share. The database says what is to be done and what is in progress.
 * @param wake called when there may be something to claim again
 */
export function createEncodeScheduler(deps: EncodeSchedulerDeps, wake: () => void): EncodeScheduler {
  const { db, claims, nowS } = deps
  const guard = createFailureGuard(deps, FAILURE_POLICY, wake)
  /** Runs of video that a viewer waits for right now. */
  const urgentRuns = new Set<VideoChunk>()
  let isCheckingRoom = false
  /** Whose source was examined last. */
  let lastAccountId = ''
  // A run of the backlog would take its share of the cores that an urgent run keeps busy, and double its time.
  const isHeldBack = () => urgentRuns.size * CORES_PER_URGENT_RUN >= availableParallelism()
  const chunksInOrder = (isHeldBack: () => boolean) => [
    { claim: (call: Call) => claimRun(call, 'urgent') },
    { claim: (call: Call) => claimRun(call, 'backlog'), isHeldBack },
    { claim: (call: Call) => claimRun(call, 'oldest'), isHeldBack },
  ]
  const claimOrdinary = claimInShares<Call, Job>(
    [{ claim: claimFinish }, { claim: claimSource }, ...chunksInOrder(isHeldBack)],
    MAX_PASSED_OVER,
  )
  const claimRemote = claimInShares<Call, Job>(
    chunksInOrder(() => false),
    MAX_PASSED_OVER,
  )
  const ownFingerprint = encoderFingerprint(deps.sandbox)
  // Without encoders of its own, this server encodes only what may not leave it.
  const ownEncoder: Encoder = deps.encoderSlots > 0 ? {} : { decodesFromStart: true }

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    const permitted = await findPermitted()
    if (!permitted) return undefined
    const call = { ...permitted, encoder: { ...ownEncoder, by: await findAmongOthers(ownFingerprint, CHUNK_KINDS) } }
    if (urgentOnly) return (await claimRun(call, 'urgent')) ?? (await claimSource(call))
    return claimOrdinary(call)
  }

  async function claimForRemote(remote: RemoteEncoder, kinds: readonly ChunkKind[]): Promise<Job | undefined> {
    const permitted = await findPermitted()
    // Where this server may not open uploads, it cannot check what is made of them.
    if (!permitted || permitted.only !== undefined) return undefined
    const by = await findAmongOthers(remote.encoder, kinds)
    return claimRemote({ ...permitted, encoder: { remote, kinds, decodesFromStart: false, by } })
  }

  async function findAmongOthers(fingerprint: string, kinds: readonly ChunkKind[]): Promise<ClaimingEncoder> {
    const capacities = await findCapacities(deps)
    const alike = capacities.get(fingerprint)
    const encoding = (kind: ChunkKind) =>
      [...capacities].flatMap(([other, slots]) => (other !== fingerprint && slots[kind] > 0 ? [other] : []))
    return {
      fingerprint,
      kinds: CHUNK_KINDS.filter((kind) => kinds.includes(kind) || (alike?.[kind] ?? 0) > 0),
      others: { video: encoding('video'), audio: encoding('audio') },
    }
  }

  async function findPermitted(): Promise<Permitted | undefined> {
    if (!(await deps.hasRoom())) {
      checkRoomLater()
      return undefined
    }
    return deps.findPermitted()
  }

  function checkRoomLater() {
    if (isCheckingRoom) return
    isCheckingRoom = true
    setTimeout(() => {
      isCheckingRoom = false
      wake()
    }, CHECK_ROOM_EVERY_MS).unref()
  }

  async function claimSource({ work, only }: Permitted): Promise<Job | undefined> {
    return claims.claimNext({
      kind: 'video',
      find: async () => {
        const filter = { nowS: nowS(), only }
        return (await findUnplanned(db, { ...filter, lastAccountId })) ?? (await findUnplannedReplacement(db, filter))
      },
      subjectOf: ({ id }) => id,
      begin: (tx, { id }) => findIfUnplanned(tx, id),
      start({ id, accountId }) {
        lastAccountId = accountId
        return (claim, signal) => guardVideo(work, id, () => work.examine(id, claim, signal), signal)
      },
    })
  }

  async function claimFinish({ work, only }: Permitted): Promise<Job | undefined> {
    return claims.claimNext({
      kind: 'video',
      find: () => findUnfinished(db, { nowS: nowS(), only }),
      subjectOf: ({ videoId }) => videoId,
      begin: async (tx, video) => ((await isFinished(tx, video)) ? undefined : video),
      start: (video) => (claim, signal) => guardVideo(work, video.videoId, () => work.finish(video, claim, signal), signal),
    })
  }

  async function claimRun({ work, only, encoder }: Call, which: keyof typeof CHUNKS): Promise<Job | undefined> {
    const { find, ...priorities } = CHUNKS[which]
    const { remote, ...filter } = encoder
    return claims.claimNext({
      kind: 'chunk',
      find: () => find(db, { ...priorities, ...filter, nowS: nowS(), only, candidates: claims.candidates }),
      subjectOf: subjectOfNextRun,
      begin: beginRun,
      start(chunk) {
        if (isUrgent(chunk) && !remote) trackUrgent(chunk)
        return async (claim, signal) => {
          await guardVideo(work, chunk.videoId, () => work.encode(chunk, claim, signal, remote), signal).finally(() =>
            releaseUrgent(chunk),
          )
        }
      },
    })
  }

  function guardVideo(work: EncodeWork, videoId: string, run: () => Promise<void>, signal: AbortSignal) {
    return guard(
      {
        subject: videoId,
        run,
        isLost: () => work.isLost(videoId),
        giveUp: (error) => work.fail(videoId, error, signal),
        logRetry: (error) => deps.log.warn({ err: error, videoId }, 'video: encoding failed, will be retried'),
      },
      signal,
    )
  }

  function trackUrgent(chunk: VideoChunk) {
    urgentRuns.add(chunk)
    setTimeout(() => releaseUrgent(chunk), MAX_URGENT_MS).unref()
  }

  function releaseUrgent(chunk: VideoChunk) {
    if (urgentRuns.delete(chunk)) wake()
  }

  return { claim, claimForRemote }
}
