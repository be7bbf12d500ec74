import { startDispatcher } from '../jobs/dispatcher.ts'
import { isEncodingAllowed, type Sandbox } from '../sandbox/bubblewrap.ts'
import { type ExamineDeps, examineSource } from './examine-source.ts'
import { type FailDeps, failVideo, isSourceGone } from './fail-video.ts'
import { finishVideo } from './finish-video.ts'
import type { RequestedDeps } from './next-generation.ts'
import { runChunk } from './run-chunk.ts'
import { createEncodeScheduler, type EncodeScheduler, type EncodeSchedulerDeps, type EncodeWork } from './scheduler.ts'

type EncodingDeps = RequestedDeps &
  FailDeps &
  Omit<EncodeSchedulerDeps, 'findPermitted'> & {
    transcribes: ExamineDeps['transcribes']
    /** Another server has taken the database: encoding ends. */
    databaseLost: Promise<void>
    /** The demo video, if there is one. This server made its source, so it is encoded even where there is no sandbox for uploads. */
    findDemoVideoId(): Promise<string | undefined>
  }

/** How often to look for work that nothing announced: a source whose commit got no answer may have been kept. */
const POLL_INTERVAL_MS = 5_000

/** Encodes what is uploaded, from now on. @param opened stops it. @returns claims chunks for encoders on other machines */
export function startEncoding(deps: EncodingDeps, opened: AsyncDisposableStack): Pick<EncodeScheduler, 'claimForRemote'> {
  const { encoderSlots, databaseLost, signals, log } = deps
  const gainsInProgress = new Map<string, Promise<void>>()
  const workIn = (sandbox: Sandbox): EncodeWork => {
    const inSandbox = { ...deps, sandbox, gainsInProgress }
    return {
      examine: (...source) => examineSource(inSandbox, ...source),
      finish: (...video) => finishVideo(inSandbox, ...video),
      encode: (...chunk) => runChunk(inSandbox, ...chunk),
      isLost: (videoId) => isSourceGone(deps, { videoId }).catch(() => false), // nothing is known of it while its disk is away
      fail: (videoId, error, signal) => failVideo(deps, { videoId, error, signal }),
    }
  }
  const findPermitted = createSandboxCheck(deps, workIn)
  const scheduler = createEncodeScheduler({ ...deps, findPermitted }, () => dispatcher.wake())
  const follows = { signals, work: 'encode' } as const
  const dispatcher = startDispatcher({
    slots: Math.max(1, encoderSlots),
    claim: scheduler.claim,
    pollIntervalMs: POLL_INTERVAL_MS,
    follows,
    log,
  })
  opened.defer(() => dispatcher.stop())
  void databaseLost.then(() => dispatcher.stop())
  return { claimForRemote: scheduler.claimForRemote }
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
