import type { Logger } from 'pino'
import type { Db } from '../db/database.ts'
import { listReferencedSegments } from '../encode/generation-store.ts'
import { logLevelFor } from '../errors.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import { honorsPresignedPuts, type PresignedPut, type PutBytes, presignPut } from '../storage/s3/presigned-put.ts'

// Segments that workers put into the bucket themselves. An address is valid for ten minutes, whatever becomes of its task meanwhile: so what is
// put there later, and no row names, is removed after that.

type DirectUploadDeps = {
  db: Db
  folders: { segments: BlobStore }
  findFilesBucket(): Bucket | undefined
  log: Logger
}

export type DirectUploads = {
  /** Whether the files are in a bucket that accepts from others only what this server has signed. */
  arePossible(): Promise<boolean>
  /** Where one may be put, once. Undefined: it is to be sent through this server. */
  presign(file: string, bytes: PutBytes): Promise<PresignedPut | undefined>
  /** To be called when no more addresses are made for these: removes what no row names once theirs have ended. */
  removeLate(files: readonly string[]): void
}

const LIFE_S = 600
const TRIED_AGAIN_MS = 300_000

/** @param opened stops it. @param lifeS how long an address is valid */
export function openDirectUploads(
  { db, folders, findFilesBucket, log }: DirectUploadDeps,
  opened: AsyncDisposableStack,
  lifeS = LIFE_S,
): DirectUploads {
  const trials = new WeakMap<Bucket, { isHonored: Promise<boolean>; endsMs: number }>()
  const timers = new Set<NodeJS.Timeout>()
  opened.defer(() => timers.forEach(clearTimeout))

  function tryBucket(bucket: Bucket): Promise<boolean> {
    const known = trials.get(bucket)
    if (known && performance.now() < known.endsMs) return known.isHonored
    const trial = { isHonored: honorsPresignedPuts(bucket), endsMs: Number.POSITIVE_INFINITY }
    trial.isHonored = trial.isHonored.then(
      (isHonored) => {
        log.info({ isHonored }, 'worker: tried whether the bucket honors presigned uploads')
        return isHonored
      },
      (error) => {
        log[logLevelFor(error, 'warn')]({ err: error }, 'worker: presigned uploads could not be tried')
        trial.endsMs = performance.now() + TRIED_AGAIN_MS
        return false
      },
    )
    trials.set(bucket, trial)
    return trial.isHonored
  }

  async function arePossible(): Promise<boolean> {
    const bucket = findFilesBucket()
    return bucket !== undefined && (await tryBucket(bucket))
  }

  async function removeUnnamed(files: readonly string[]): Promise<void> {
    try {
      const named = await listReferencedSegments(db, files)
      for (const file of files) if (!named.has(file)) await folders.segments.remove(file)
    } catch (error) {
      log[logLevelFor(error, 'error')]({ err: error }, 'worker: what it had put into the bucket could not be removed')
    }
  }

  return {
    arePossible,
    async presign(file, bytes) {
      const bucket = findFilesBucket()
      if (!bucket || !(await tryBucket(bucket))) return undefined
      return presignPut(bucket.address, `${bucket.address.prefix}segments/${file}`, bytes, lifeS)
    },
    removeLate(files) {
      if (files.length === 0) return
      // Twice as long: the clocks of the two may differ, and what began in time ends later.
      const timer = setTimeout(() => {
        timers.delete(timer)
        void removeUnnamed(files)
      }, 2000 * lifeS).unref()
      timers.add(timer)
    },
  }
}
