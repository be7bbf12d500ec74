import { Readable } from 'node:stream'
import type { Logger } from 'pino'
import type { VideoFolders } from '../catalogue/deletion.ts'
import { wrapFileKey } from '../catalogue/file-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { newSeal, SealingStream } from '../crypto/sealed-file.ts'
import { newToken } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown, type Write } from '../db/write.ts'
import type { OpenGeneration } from '../encode/publication.ts'
import type { Damage } from '../encode/repair.ts'
import { openGeneration } from '../encode/scheduler.ts'
import { Failure, isHostFailure } from '../errors.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import { createRoundRobin } from '../jobs/round-robin.ts'
import { putBlobStream, removeBlobAndEmptyFolders } from '../storage/folder.ts'
import { exportedSizeBytes, exportMp4 } from './export-mp4.ts'
import {
  beginMp4Attempt,
  findPendingMp4,
  finishMp4,
  listAccountsWithPendingMp4s,
  type PendingMp4,
  uncountMp4Attempt,
} from './mp4-store.ts'

export type Mp4SchedulerDeps = {
  db: Db
  slowDb: Db
  write: Write
  masterKey: MasterKey
  folders: VideoFolders
  log: Logger
  /** Has a damaged segment encoded again. */
  noteDamage(damage: Damage): Promise<boolean>
  /** Whether the disk has room for so many bytes more. */
  hasRoom(forBytes: number): Promise<boolean>
}

/** How often to look for what waits for its time, or for room on the disk. */
const LOOK_EVERY_MS = 5_000
/** How often making one may fail, or end this process; trouble of the whole machine does not count. */
const TRIES = 3
const REST_MS = 5_000

/**
 * Makes MP4s, one at a time, beside the encodes: a video that takes them many minutes is joined in seconds. Accounts take turns.
 */
export function startMp4Scheduler(deps: Mp4SchedulerDeps): Dispatcher {
  return startDispatcher({ places: 1, claim: claimsOfMp4s(deps), lookEveryMs: LOOK_EVERY_MS, log: deps.log })
}

/** What there is to do for MP4s. The database is the truth. */
function claimsOfMp4s(deps: Mp4SchedulerDeps) {
  const resting = new Set<number>()
  const turns = createRoundRobin()
  /** What became of the last try, until it is written. */
  let outcome: ((tx: Db) => Promise<unknown>) | undefined

  async function claim(urgentOnly: boolean): Promise<Job | undefined> {
    if (urgentOnly || !(await deps.hasRoom(0))) return undefined
    await writeOutcome()
    const accountId = turns.first(await listAccountsWithPendingMp4s(deps.db, [...resting]))
    const unmade = accountId === undefined ? undefined : await findPendingMp4(deps.db, accountId, [...resting])
    if (!accountId || !unmade) return undefined
    turns.served(accountId)
    return { key: unmade.videoId, run: (signal) => tryToMake(unmade, signal) }
  }

  async function tryToMake(unmade: PendingMp4, signal: AbortSignal): Promise<void> {
    if (unmade.attempts >= TRIES) return giveUp(unmade, ENDED_THE_SERVER)
    try {
      if (await deps.write((tx) => beginMp4Attempt(tx, unmade))) await makeMp4(deps, unmade, signal)
    } catch (error) {
      await settle(unmade, error, signal)
    }
  }

  /** What becomes of an MP4 after a try that failed. */
  async function settle(unmade: PendingMp4, error: unknown, signal: AbortSignal): Promise<void> {
    const { id, videoId, attempts } = unmade
    const isForgiven = signal.aborted || isHostFailure(error)
    if (!isForgiven && attempts + 1 >= TRIES) return giveUp(unmade, CAUSE_IN_LOG, error)
    if (isForgiven) await end((tx) => uncountMp4Attempt(tx, unmade))
    if (signal.aborted) return
    deps.log.warn({ err: error, videoId }, 'making an MP4 failed and is tried again')
    resting.add(id)
    setTimeout(() => resting.delete(id), REST_MS).unref()
  }

  async function giveUp({ id, videoId }: PendingMp4, problem: string, error?: unknown): Promise<void> {
    deps.log.error({ err: error, videoId, problem }, 'an MP4 could not be made')
    await end((tx) => finishMp4(tx, id, { enabled: 0, problem }))
  }

  /** What the database does not take now is written before the next try begins. */
  async function end(how: (tx: Db) => Promise<unknown>): Promise<void> {
    outcome = how
    await writeOutcome().catch((error) => {
      if (!isHostFailure(error)) throw error
    })
  }

  async function writeOutcome(): Promise<void> {
    if (outcome) await deps.write(outcome)
    outcome = undefined
  }

  return claim
}

const CAUSE_IN_LOG = 'The MP4 could not be made on this server. Its log says why; then ask for it again.'
const ENDED_THE_SERVER = `The MP4 could not be made: ${TRIES} times this server ended while it was at it. Ask for it again when that is mended.`

async function makeMp4(deps: Mp4SchedulerDeps, { id, videoId, generation }: PendingMp4, signal: AbortSignal): Promise<void> {
  const video = await openGeneration(deps, videoId, generation)
  if (!video) return // deleted meanwhile
  if (!(await deps.hasRoom(await exportedSizeBytes(deps.slowDb, video)))) throw NO_ROOM
  const blob = `${videoId}/${newToken()}.sealed`
  try {
    const sealed = await sealMp4(deps, video, blob, signal)
    if (await deps.write((tx) => finishMp4(tx, id, sealed)))
      deps.log.info({ videoId, sizeBytes: sealed.sizeBytes }, 'an MP4 was made')
    else await removeBlobAndEmptyFolders(deps.folders.files, blob)
  } catch (error) {
    // What may have been committed stays: the sweep takes it if it was not.
    if (!isCommitOutcomeUnknown(error)) await removeBlobAndEmptyFolders(deps.folders.files, blob)
    throw error
  }
}

const NO_ROOM = new Failure('unavailable', 'The disk of this server has no room for this MP4.')

/** @returns what the row says of an MP4 that lies there, durable */
async function sealMp4(
  { db, masterKey, folders, noteDamage }: Mp4SchedulerDeps,
  video: OpenGeneration,
  blob: string,
  signal: AbortSignal,
) {
  const seal = newSeal()
  const sealing = new SealingStream(seal)
  const clear = Readable.from(exportMp4({ db, segments: folders.segments, noteDamage }, video), { objectMode: false, signal })
  await putBlobStream(folders.files, blob, [clear, sealing])
  const { sizeBytes, macs } = sealing.sealed
  return { blob, sizeBytes, iv: seal.iv, macs, wrappedKey: wrapFileKey(masterKey, blob, seal.key) }
}
