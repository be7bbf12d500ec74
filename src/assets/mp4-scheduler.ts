import { Readable } from 'node:stream'
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
import type { Claim } from '../jobs/claims.ts'
import { type CountedWorkDeps, startCountedWork } from '../jobs/counted-work.ts'
import type { Dispatcher } from '../jobs/dispatcher.ts'
import { exportedSizeBytes, exportMp4 } from './export-mp4.ts'
import {
  beginMp4Attempt,
  findPendingMp4,
  finishMp4,
  listAccountsWithPendingMp4s,
  type PendingMp4,
  refundMp4Attempt,
} from './mp4-store.ts'

type Mp4SchedulerDeps = CountedWorkDeps & {
  slowQueryDb: Db
  masterKey: MasterKey
  folders: VideoFolders
  /** Starts the repair of a damaged segment. */
  reportDamage(damage: Damage): Promise<boolean>
}

/**
 * Makes MP4s one at a time, concurrently with encoding: muxing takes seconds where encoding takes minutes. Accounts take turns.
 */
export function startMp4Scheduler(deps: Mp4SchedulerDeps): Dispatcher {
  return startCountedWork<PendingMp4>(deps, {
    ...{ kind: 'mp4', name: 'mp4', problems: PROBLEMS },
    ...{ listAccounts: listAccountsWithPendingMp4s, find: findPendingMp4 },
    ...{ begin: beginMp4Attempt, refund: refundMp4Attempt },
    fail: async (tx, { id }, problem) => void (await finishMp4(tx, id, { enabled: 0, problem })),
    run: (mp4, claim, signal) => makeMp4(deps, mp4, claim, signal),
  })
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
