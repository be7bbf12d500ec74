import type { Db } from '../db/database.ts'
import { startDispatcher } from '../jobs/dispatcher.ts'
import { followSignals } from '../jobs/follow-signals.ts'
import { isEncodingAllowed, type Sandbox } from '../sandbox/bubblewrap.ts'
import type { EncodeCounters } from './encode-counters.ts'
import { examineSource } from './examine-source.ts'
import { failVideo, isSourceGone } from './fail-video.ts'
import { finishVideo } from './finish-video.ts'
import { type RequestedDeps, reencryptVideo } from './next-generation.ts'
import { type Damage, reportDamage } from './repair.ts'
import { retryVideo } from './retry.ts'
import { runChunk } from './run-chunk.ts'
import { createEncodeScheduler, type EncodeSchedulerDeps, type EncodeWork } from './scheduler.ts'

type EncodingDeps = Omit<RequestedDeps, 'sandbox'> &
  Omit<EncodeSchedulerDeps, 'findPermitted'> & {
    sandbox: Sandbox
    /** How many chunks are encoded concurrently. */
    slots: number
    /** Another server has taken the database: encoding ends. */
    databaseLost: Promise<void>
    /** The demo video, if there is one. This server made its source, so it is encoded even where there is no sandbox for uploads. */
    findDemoVideoId(): Promise<string | undefined>
  }

export type Encoding = {
  counters: EncodeCounters
  /** Has a damaged segment encoded again. @returns false when it is no longer published */
  repairSegment(damage: Damage): Promise<boolean>
  /** Has a video encoded again under a new content key: see `reencryptVideo`. */
  reencrypt(videoId: string, alsoInTransaction: (tx: Db, accountId: string) => Promise<void>): Promise<void>
  /** Has a failed video encoded again: see `retryVideo`. */
  retry(video: { accountId: string; videoId: string }, alsoInTransaction: (tx: Db) => Promise<void>): Promise<void>
}

/** How often to look for work that nothing announced: a source whose commit got no answer may have been kept. */
const POLL_INTERVAL_MS = 5_000

/** Encodes what is uploaded, from now on. @param opened stops it */
export function startEncoding(
  { slots, databaseLost, claims, nowS, ...deps }: EncodingDeps,
  opened: AsyncDisposableStack,
): Encoding {
  const { db, write, signals, hasRoom, log } = deps
  const counters = { segments: 0, failures: 0 }
  const videoDeps = { ...deps, counters }
  const workIn = (sandbox: Sandbox): EncodeWork => {
    const inSandbox = { ...videoDeps, sandbox }
    return {
      examine: (...source) => examineSource(inSandbox, ...source),
      finish: (...video) => finishVideo(inSandbox, ...video),
      encode: (...chunk) => runChunk(inSandbox, ...chunk),
      isLost: (videoId) => isSourceGone(videoDeps, videoId).catch(() => false), // nothing is known of it while its disk is away
      fail: (videoId, error, signal) => failVideo(videoDeps, { videoId, error, signal }),
    }
  }
  const findPermitted = createSandboxCheck(deps, workIn)
  const scheduler = createEncodeScheduler({ db, write, nowS, claims, hasRoom, findPermitted, log }, () => dispatcher.wake())
  const dispatcher = startDispatcher({ slots, claim: scheduler.claim, pollIntervalMs: POLL_INTERVAL_MS, log })
  opened.defer(() => dispatcher.stop())
  void databaseLost.then(() => dispatcher.stop())
  followSignals(signals, 'encode', dispatcher)
  return {
    counters,
    repairSegment: (damage) => reportDamage({ write, signals, log }, damage),
    reencrypt: (...video) => reencryptVideo(videoDeps, ...video),
    retry: (...video) => retryVideo(videoDeps, ...video),
  }
}

function createSandboxCheck(
  { sandbox, findDemoVideoId, log }: Pick<EncodingDeps, 'sandbox' | 'findDemoVideoId' | 'log'>,
  workIn: (sandbox: Sandbox) => EncodeWork,
): EncodeSchedulerDeps['findPermitted'] {
  let isSandboxMissing = false
  return async () => {
    if (await isEncodingAllowed(sandbox)) {
      if (isSandboxMissing) log.info('sandbox: bubblewrap runs, uploads are encoded')
      isSandboxMissing = false
      return { work: workIn(sandbox) }
    }
    isSandboxMissing = true
    const only = await findDemoVideoId()
    return only === undefined ? undefined : { work: workIn({ ...sandbox, weak: true }), only }
  }
}
