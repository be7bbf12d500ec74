import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { wrapFileKey } from '../catalogue/file-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { newSeal, SealingStream } from '../crypto/sealed-file.ts'
import { newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { findGenerationWithKey } from '../encode/encode-deps.ts'
import type { GenerationWithKey } from '../encode/publication.ts'
import type { Damage } from '../encode/repair.ts'
import { Failure } from '../errors.ts'
import { createAttempts } from '../jobs/attempts.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import { createRoundRobin } from '../jobs/round-robin.ts'
import type { Signals } from '../signals/signals.ts'
import { exportedSizeBytes, exportMp4 } from './export-mp4.ts'
import {
  beginMp4Attempt,
  findPendingMp4,
  finishMp4,
  listAccountsWithPendingMp4s,
  type PendingMp4,
  refundMp4Attempt,
} from './mp4-store.ts'

type Mp4SchedulerDeps = {
  db: Db
  slowQueryDb: Db
  /** A clock that never goes back. */
  nowS: () => number
  claims: Pick<Claims, 'claimNext'>
  signals: Pick<Signals, 'on'>
  masterKey: MasterKey
  folders: VideoFolders
  log: Logger
  /** Starts the repair of a damaged segment. */
  reportDamage(damage: Damage): Promise<boolean>
  /** Whether the disk has space for that many more bytes. */
  hasRoom(forBytes: number): Promise<boolean>
}

/** How often to look for MP4s whose back-off has ended, or for free disk space. */
const POLL_INTERVAL_MS = 5_000

/**
 * Makes MP4s one at a time, concurrently with encoding: muxing takes seconds where encoding takes minutes. Accounts take turns.
 */
export function startMp4Scheduler(deps: Mp4SchedulerDeps): Dispatcher {
  const follows = { signals: deps.signals, work: 'mp4' } as const
  return startDispatcher({ slots: 1, claim: createClaim(deps), pollIntervalMs: POLL_INTERVAL_MS, follows, log: deps.log })
}

/** Creates the function that claims the next pending MP4 as a job. */
function createClaim(deps: Mp4SchedulerDeps) {
  const accounts = createRoundRobin()
  const attempt = createAttempts<PendingMp4>({
    name: 'mp4',
    problems: PROBLEMS,
    refund: refundMp4Attempt,
    fail: async (tx, { id }, problem) => void (await finishMp4(tx, id, { enabled: 0, problem })),
    log: deps.log,
  })

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (urgentOnly || !(await deps.hasRoom(0))) return undefined
    return deps.claims.claimNext({
      kind: 'mp4',
      find: findNext,
      subjectOf: ({ videoId }) => videoId,
      begin: async (tx, mp4) => ((await beginMp4Attempt(tx, mp4)) ? mp4 : undefined),
      start(mp4) {
        accounts.markServed(mp4.accountId)
        return (claim, signal) => attempt(mp4, claim, signal, () => makeMp4(deps, mp4, claim, signal))
      },
    })
  }

  async function findNext() {
    const accountId = accounts.next(await listAccountsWithPendingMp4s(deps.db, deps.nowS()))
    const mp4 = accountId === undefined ? undefined : await findPendingMp4(deps.db, accountId, deps.nowS())
    return accountId === undefined || !mp4 ? undefined : { ...mp4, accountId }
  }

  return claim
}

const PROBLEMS = {
  failed: 'The MP4 could not be made on this server. Its log says why; then request it again.',
  crashed: 'The MP4 could not be made: the server crashed during 3 attempts. Request it again when the cause is fixed.',
}

async function makeMp4(deps: Mp4SchedulerDeps, { id, videoId, generation }: PendingMp4, claim: Claim, signal: AbortSignal) {
  const video = await findGenerationWithKey(deps, { videoId, generation })
  if (!video) return // deleted meanwhile
  if (!(await deps.hasRoom(await exportedSizeBytes(deps.slowQueryDb, video))))
    throw new Failure('unavailable', 'The disk of this server has no room for this MP4.')
  const blob = `${videoId}/${newToken()}.sealed`
  try {
    const sealed = await sealMp4(deps, video, blob, signal)
    const { key, ...row } = sealed
    const finish = (tx: Db) => finishMp4(tx, id, { ...row, damaged: 0, wrappedKey: wrapFileKey(deps.masterKey, blob, key) })
    if (await claim.settle(finish)) deps.log.info({ videoId, sizeBytes: sealed.sizeBytes }, 'mp4: ready')
    else await deps.folders.files.remove(blob)
  } catch (error) {
    // A blob whose row may have been committed must stay; the sweep removes it if there is no row.
    if (!isCommitOutcomeUnknown(error)) await deps.folders.files.remove(blob)
    throw error
  }
}

/** Writes the MP4 durably. @returns the columns of its row, and its key */
async function sealMp4(
  { db, folders, reportDamage }: Mp4SchedulerDeps,
  video: GenerationWithKey,
  blob: string,
  signal: AbortSignal,
) {
  const seal = newSeal()
  const sealing = new SealingStream(seal)
  const clear = Readable.from(exportMp4({ db, segments: folders.segments, reportDamage }, video), { objectMode: false })
  await folders.files.put(blob, [clear, sealing], { signal })
  const { sizeBytes, macs } = sealing.sealed
  return { blob, sizeBytes, iv: seal.iv, macs, key: seal.key }
}
