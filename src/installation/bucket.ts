import type { Config } from '../config/config.ts'
import { Failure } from '../errors.ts'
import { type BucketAddress, openBucket } from '../storage/s3/bucket.ts'
import { putMarker, readMarker } from '../storage/s3/s3-store.ts'

// Which installation the objects below a prefix belong to: both have the same id, the bucket in its marker, the database in a setting.

/** The setting with it. */
export const BUCKET_ID = 'bucket'

export function describeBucket({ bucket, prefix, endpoint }: Pick<BucketAddress, 'bucket' | 'prefix' | 'endpoint'>): string {
  return `s3://${bucket}/${prefix} at ${endpoint}`
}

/** Whether one is lost with the other, whatever their prefixes. */
export function isSameBucket(one: Address, other: Address): boolean {
  return one.bucket === other.bucket && one.endpoint === other.endpoint
}

type Address = Pick<BucketAddress, 'bucket' | 'endpoint'>

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
