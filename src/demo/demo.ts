import type { Logger } from 'pino'
import { addAccount } from '../accounts/account.ts'
import { getOtpKey } from '../accounts/api-key.ts'
import { type DeletionDeps, deleteVideos } from '../catalogue/deletion.ts'
import type { VideoStatus } from '../catalogue/status.ts'
import { insertVideo } from '../catalogue/video-store.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { receiveSource, type SourceDeps } from '../ingest/source.ts'
import { acceptSource } from '../ingest/upload.ts'
import { insertPolicy } from '../ingest/upload-policy-store.ts'
import { issueOtp, type OtpDeps } from '../playback/otp.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { Watermark } from '../watermark/watermark.ts'
import { findDemoVideo, insertDemo } from './demo-store.ts'
import { renderDemoVideo } from './demo-video.ts'

// A new installation has one video to look at: 20 seconds, in an account of its own. Its rows are made with the first account; the
// video itself after the server serves. So whatever ends the process, a start finds one video that waits for its video, or none.

type DemoDeps = Omit<SourceDeps, 'uploadMaxBytes'> & {
  sandbox: Sandbox
  log: Logger
  /** The playback clock: keys end by it. */
  nowS: () => number
  playbackOtps: OtpDeps
}

type DemoState = 'being made' | 'playable' | 'failed'

export type Demo = {
  /** Makes the video in the background when that is still to be done. @returns whether a demo is on its way */
  begin(): Promise<boolean>
  /** Undefined: it was deleted, or there never was one. */
  findState(): Promise<DemoState | undefined>
  /** Opens one playback, as an owner's server would let it. Undefined while there is nothing to play. */
  issueOtp(): Promise<{ otp: string; videoId: string } | undefined>
  stop(): Promise<void>
}

/** From the page to the first press on play. */
const OTP_TTL_S = 600
const WAIT_FOR_UPLOAD_S = 24 * 3600
const FAILED: readonly string[] = ['Not a media file', 'Encoding error'] satisfies VideoStatus[]
/** As an owner would have the viewer's own name in the picture. */
const WATERMARKS: readonly Watermark[] = [
  { type: 'rtext', text: 'a viewer’s name', alpha: 0.55, color: '#ffffff', sizePx: 14, intervalMs: 6_000, skipMs: 0 },
]

/** Makes room for the demo, in the transaction that makes the first account. */
export async function addDemo(tx: Db, nowS: number): Promise<void> {
  const { accountId } = await addAccount(tx, { name: 'Demo', mayUpload: false, mayImport: false, createdAtS: nowS, by: 'server' })
  const videoId = newId()
  await insertVideo(tx, accountId, { id: videoId, title: 'Demo: twenty seconds', uploadTimeS: nowS })
  await insertPolicy(tx, accountId, { key: policyKey(videoId), videoId, expiresAtS: nowS + WAIT_FOR_UPLOAD_S })
  await insertDemo(tx, videoId)
}

/** Cannot be used to upload a form: forms are signed. */
function policyKey(videoId: string): string {
  return `demo/${videoId}`
}

/** The installation's demo, as far as it has one. */
export function openDemo(deps: DemoDeps): Demo {
  const stopping = new AbortController()
  let hasFailed = false
  let making = Promise.resolve()

  async function findState(): Promise<DemoState | undefined> {
    const video = await findDemoVideo(deps.db)
    if (!video) return undefined
    if (video.status === 'ready') return 'playable'
    return hasFailed || FAILED.includes(video.status) ? 'failed' : 'being made'
  }

  return {
    findState,
    async begin() {
      making = makeVideo(deps, stopping.signal).catch((error) => {
        if (stopping.signal.aborted) return
        hasFailed = true
        deps.log.warn({ err: error }, 'the demo video could not be made; the next start tries again')
      })
      return (await findState()) === 'being made'
    },
    async issueOtp() {
      return (await findState()) === 'playable' ? issueDemoOtp(deps) : undefined
    },
    async stop() {
      stopping.abort()
      await making
    },
  }
}

async function makeVideo(deps: DemoDeps, signal: AbortSignal): Promise<void> {
  const video = await findDemoVideo(deps.db)
  if (video?.status !== 'PRE-Upload') return
  await deps.sources.removeAll(video.id) // a killed run's, which no row names
  const upload = { ...deps, uploadMaxBytes: Number.POSITIVE_INFINITY } // an owner's limit is for what comes from outside
  const source = await receiveSource(upload, video.id, renderDemoVideo(deps.sandbox, signal))
  await acceptSource(upload, { policyKey: policyKey(video.id), videoId: video.id, source, fileName: 'demo.mp4' }).catch(
    (error) => {
      if (!(error instanceof Failure && error.kind === 'conflict')) throw error // deleted while it was drawn
    },
  )
}

async function issueDemoOtp(deps: DemoDeps): Promise<{ otp: string; videoId: string } | undefined> {
  const video = await findDemoVideo(deps.db)
  if (!video) return undefined
  const otp = await issueOtp(deps.playbackOtps, {
    accountId: video.accountId,
    apiKeyId: await getOtpKey(deps, video.accountId),
    videoId: video.id,
    ttlS: OTP_TTL_S,
    watermarks: WATERMARKS,
  })
  return { otp, videoId: video.id }
}

/** Deletes the demo for good. @throws Failure `not-found` when there is none */
export async function removeDemo(deps: DeletionDeps): Promise<void> {
  const video = await findDemoVideo(deps.db)
  if (!video) throw new Failure('not-found', 'There is no demo video here: it was removed, or never made.')
  await deleteVideos(deps, { accountId: video.accountId, by: 'command-line', videoIds: [video.id] })
}
