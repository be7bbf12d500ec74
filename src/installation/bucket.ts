import { randomBytes } from 'node:crypto'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import { findSetting, saveSetting } from '../db/setting.ts'
import { Failure, StorageUnavailable } from '../errors.ts'
import { type Bucket, openBucket } from '../storage/s3/bucket.ts'
import { putMarker, readMarker } from '../storage/s3/s3-store.ts'

// Which installation the objects below a prefix belong to: both have the same id, the bucket in its marker, the database in a setting.

/** The setting with it. */
export const BUCKET_ID = 'bucket'

/**
 * Makes an empty prefix of a bucket this installation's place for files, or finds that it is. While a bucket does not answer that was
 * its place before, it is held: viewers go on, and a check compares it later.
 * @returns undefined: files are in the data folder
 * @throws Failure when the files are elsewhere, or the prefix belongs to another installation
 */
export async function openFilesBucket(
  { db, write }: Pick<Database, 'db' | 'write'>,
  { bucket: address }: Config,
): Promise<Bucket | undefined> {
  const own = await findSetting(db, BUCKET_ID)
  if (!address) {
    if (own === undefined) return undefined
    throw new Failure('unavailable', 'The files of this installation are in a bucket. Set REELGATE_STORAGE_URL to it.')
  }
  const bucket = openBucket(address)
  try {
    await assertOwn({ db, write }, bucket, own)
  } catch (error) {
    if (own === undefined || !(error instanceof StorageUnavailable)) throw error
    bucket.holdUntil(async (unheld) => {
      if ((await readMarker(unheld)) !== own) throw new StorageUnavailable(elsewhere(address, own).message)
    }, error)
  }
  return bucket
}

async function assertOwn({ db, write }: Pick<Database, 'db' | 'write'>, bucket: Bucket, own: string | undefined): Promise<void> {
  const { address } = bucket
  const found = await readMarker(bucket)
  if (own !== undefined && found === own) return
  if (found !== undefined)
    throw new Failure(
      'unavailable',
      `The files below ${describeBucket(address)} belong to another installation. Set REELGATE_STORAGE_URL to another prefix.`,
    )
  if (await db.selectFrom('video').select('id').limit(1).executeTakeFirst()) throw elsewhere(address, own)
  await claim(bucket, write, own ?? randomBytes(16).toString('hex'))
}

/** The setting comes first: a marker without one would belong to no installation. */
async function claim(bucket: Bucket, write: Database['write'], id: string): Promise<void> {
  await write((tx) => saveSetting(tx, BUCKET_ID, id))
  await putMarker(bucket, id)
}

function elsewhere(address: NonNullable<Config['bucket']>, own: string | undefined): Failure {
  const sentence =
    own === undefined
      ? 'This installation has videos, and their files are in its data folder: they cannot be moved to a bucket yet. Remove REELGATE_STORAGE_URL, or begin with an empty data folder.'
      : `The files of this installation are not below ${describeBucket(address)}. Set REELGATE_STORAGE_URL to the bucket and prefix where they are.`
  return new Failure('unavailable', sentence)
}

export function describeBucket({ bucket, prefix, endpoint }: NonNullable<Config['bucket']>): string {
  return `s3://${bucket}/${prefix} at ${endpoint}`
}

/** Whether one is lost with the other, whatever their prefixes. */
export function isSameBucket(one: Address, other: Address): boolean {
  return one.bucket === other.bucket && one.endpoint === other.endpoint
}

type Address = Pick<NonNullable<Config['bucket']>, 'bucket' | 'endpoint'>

/**
 * For rows that are restored: finds that a bucket has their files, or makes an empty prefix the place for these.
 * @param id of the installation, in its rows or new
 * @param hasFiles whether the files must be there already
 * @throws Failure `conflict`
 */
export async function claimForRestore(address: NonNullable<Config['bucket']>, id: string, hasFiles: boolean): Promise<void> {
  const bucket = openBucket(address)
  const found = await readMarker(bucket)
  if (found === id) return
  if (found === undefined && !hasFiles) return putMarker(bucket, id)
  throw new Failure(
    'conflict',
    hasFiles
      ? `The files of this backup are not below ${describeBucket(address)}. Set REELGATE_STORAGE_URL to the bucket and prefix where they are.`
      : `The files below ${describeBucket(address)} belong to another installation. Set REELGATE_STORAGE_URL to another prefix.`,
  )
}
