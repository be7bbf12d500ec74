import type { Logger } from 'pino'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { listFirstPosters } from '../catalogue/poster-store.ts'
import {
  beginStoryboardAttempt,
  findPendingStoryboard,
  insertStoryboard,
  type NewPictures,
  type PendingStoryboard,
  refundStoryboardAttempt,
} from '../catalogue/storyboard-store.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { sealBlob } from '../crypto/sealed-blob.ts'
import { newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { findGenerationWithKey } from '../encode/encode-deps.ts'
import type { GenerationWithKey } from '../encode/publication.ts'
import type { Damage } from '../encode/repair.ts'
import { createAttempts } from '../jobs/attempts.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { Signals } from '../signals/signals.ts'
import { makeStoryboard } from './make-storyboard.ts'
import { makePosterCandidates } from './poster-candidates.ts'
import { planStoryboard } from './storyboard.ts'

type StoryboardSchedulerDeps = {
  db: Db
  /** A clock that never goes back. */
  nowS: () => number
  wallNowS: () => number
  claims: Pick<Claims, 'claimNext'>
  signals: Pick<Signals, 'on'>
  masterKey: MasterKey
  folders: VideoFolders
  sandbox: Sandbox
  log: Logger
  /** Starts the repair of a damaged segment. */
  reportDamage(damage: Damage): Promise<boolean>
  /** Whether the disk has space for that many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
}

/** How often to look for videos that another process completed, whose back-off has ended, or for free disk space. */
const POLL_INTERVAL_MS = 5_000
/** Makes storyboards one at a time, next to encoding: each takes a few hundredths of the time that its video took. */
export function startStoryboardScheduler(deps: StoryboardSchedulerDeps): Dispatcher {
  const follows = { signals: deps.signals, work: 'storyboard' } as const
  return startDispatcher({ slots: 1, claim: createClaim(deps), pollIntervalMs: POLL_INTERVAL_MS, follows, log: deps.log })
}

/** Creates the function that claims the next missing storyboard as a job. */
function createClaim(deps: StoryboardSchedulerDeps) {
  const { claims, db, nowS, wallNowS, log, hasRoom } = deps
  const attempt = createAttempts<PendingStoryboard>({
    name: 'storyboard',
    problems: PROBLEMS,
    refund: refundStoryboardAttempt,
    fail: async (tx, pending) => void (await insertStoryboard(tx, pending, NO_PICTURES, wallNowS())),
    log,
  })

  return async (urgentOnly: boolean): Promise<Job | undefined> => {
    if (urgentOnly || !(await hasRoom(0))) return undefined
    return claims.claimNext({
      kind: 'storyboard',
      find: () => findPendingStoryboard(db, nowS()),
      subjectOf: ({ videoId }) => videoId,
      begin: async (tx, pending) => ((await beginStoryboardAttempt(tx, pending)) ? pending : undefined),
      start: (pending) => (claim, signal) => attempt(pending, claim, signal, () => makeAndStore(deps, pending, claim, signal)),
    })
  }
}

const NO_PICTURES = { sheets: [], candidates: [], posters: [] }

/** For the log: its owner sees no pictures on the seek bar. */
const PROBLEMS = {
  failed: 'The storyboard could not be made: the video has none.',
  crashed: 'The storyboard could not be made, since the server crashed during 3 attempts: the video has none.',
}

async function makeAndStore(deps: StoryboardSchedulerDeps, pending: PendingStoryboard, claim: Claim, signal: AbortSignal) {
  const { db, folders, sandbox, reportDamage } = deps
  const { posters: folder, segments } = folders
  const video = await findGenerationWithKey(deps, pending)
  if (!video) return // deleted meanwhile
  const reading = { db, segments, sandbox, reportDamage }
  const sheets = await makeStoryboard(reading, video, signal)
  const candidates = await makePosterCandidates(reading, video, signal)
  const blobs: string[] = []
  const remove = async (names: readonly string[]) => {
    for (const name of names) await folder.remove(name)
  }
  const store = async (picture: Buffer) => {
    const token = newToken()
    const blob = `${video.videoId}/${token}.sealed`
    blobs.push(blob)
    await folder.put(blob, sealBlob(video.contentKey, blob, picture))
    return { blob, sizeBytes: picture.length }
  }
  let stored: { replaced: string[] } | undefined
  try {
    const made: NewPictures = { sheets: [], candidates: [], posters: [] }
    for (const sheet of sheets) made.sheets.push({ ...sheetSize(video), ...(await store(sheet)) })
    for (const { timeS, posters } of candidates) {
      for (const { jpeg, ...size } of posters.slice(-1)) made.candidates.push({ timeS, ...size, ...(await store(jpeg)) })
    }
    const replaces = (await listFirstPosters(db, video)).length > 0
    for (const { jpeg, ...size } of (replaces && candidates[0]?.posters) || [])
      made.posters.push({ ...size, ...(await store(jpeg)) })
    stored = await claim.settle((tx) => insertStoryboard(tx, pending, made, deps.wallNowS()))
  } catch (error) {
    // Blobs whose rows may have been committed must stay; the sweep removes them if there are none.
    if (!isCommitOutcomeUnknown(error)) await remove(blobs)
    throw error
  }
  if (stored) for (const blob of stored.replaced) await folder.retire(blob)
  else await remove(blobs)
}

function sheetSize({ plan }: GenerationWithKey): { widthPx: number; heightPx: number } {
  const { widthPx = 0, heightPx = 0, columns = 0, rows = 0 } = planStoryboard(plan) ?? {}
  return { widthPx: columns * widthPx, heightPx: rows * heightPx }
}
