import type { Config } from '../config/config.ts'
import { type Finding, failure, ok, warning } from '../health-check.ts'
import { type Bucket, openBucket } from '../storage/s3/bucket.ts'
import {
  type BucketRules,
  measureOldVersions,
  measureUnfinishedUploads,
  readBucketRules,
  type Unneeded,
} from '../storage/s3/bucket-rules.ts'
import { readMarker } from '../storage/s3/s3-store.ts'

const DAY_S = 24 * 3600

/** Whether an object can be written and read, and the prefix is in use. */
export async function examineBucket({ bucket: address }: Config): Promise<Finding> {
  if (!address) return ok('Files are in the data folder.')
  const bucket = openBucket(address)
  await bucket.check()
  return (await readMarker(bucket)) === undefined
    ? warning('Nothing uses this prefix of the bucket yet: the first start of an installation without videos does.')
    : ok(`Objects in ${address.bucket} can be written and read.`)
}

/** What the bucket does by itself with objects and uploads, what that costs, and the rule to set. */
export async function examineBucketRules({ bucket: address }: Config): Promise<Finding> {
  if (!address) return ok('Files are in the data folder.')
  const bucket = openBucket(address)
  const rules = await readBucketRules(bucket)
  const danger = rules.lifecycle?.find(({ removesObjects }) => removesObjects)
  if (danger)
    return failure(
      `The lifecycle rule ${danger.id} of the bucket removes objects by their age, and files of videos with them. Remove it, or restrict it to another prefix.`,
    )
  const costs = await Promise.all([costOfVersions(bucket, rules), costOfUploads(bucket, rules)])
  const sentences = costs.filter((cost) => cost !== undefined)
  if (sentences.length > 0) return warning([...sentences, `The rule to set: ${ruleToSet(address.prefix, rules)}`].join(' '))
  if (rules.keepsVersions === undefined || rules.lifecycle === undefined)
    return ok(
      'The bucket does not show its rules to this key. It should keep no versions, and end unfinished uploads after 7 days.',
    )
  return ok('Nothing that Reelgate removes stays in the bucket, and unfinished uploads end by themselves.')
}

async function costOfVersions(bucket: Bucket, { keepsVersions, lifecycle }: BucketRules): Promise<string | undefined> {
  if (!keepsVersions || lifecycle?.some(({ removesVersionsAfterDays }) => removesVersionsAfterDays !== null)) return undefined
  const old = await measureOldVersions(bucket)
  return `The bucket keeps versions: everything that Reelgate removes or writes again stays in it and is charged for, videos that were deleted as well (without their keys). So far: ${describe(old, 'old versions')}. Turn versions off, or have old ones removed.`
}

async function costOfUploads(bucket: Bucket, { lifecycle }: BucketRules): Promise<string | undefined> {
  if (!lifecycle || lifecycle.some(({ endsUploadsAfterDays }) => endsUploadsAfterDays !== null)) return undefined
  const unfinished = await measureUnfinishedUploads(bucket, Date.now() / 1000 - DAY_S)
  return `The bucket has no rule that ends unfinished uploads: while no server runs, what is left of one is charged for as long as the bucket exists. So far: ${describe(unfinished, 'uploads older than a day')}.`
}

function describe({ count, sizeBytes, isPart }: Unneeded, what: string): string {
  return `${isPart ? 'at least ' : ''}${count} ${what}, ${(sizeBytes / 1e6).toFixed(1)} MB`
}

/** As the API of S3 takes it. Longer than any upload waits, whose end would be its loss. */
function ruleToSet(prefix: string, { keepsVersions }: BucketRules): string {
  const rule = {
    ID: 'reelgate',
    Status: 'Enabled',
    Filter: { Prefix: prefix },
    AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 },
    ...(keepsVersions && { NoncurrentVersionExpiration: { NoncurrentDays: 1 } }),
  }
  return JSON.stringify({ Rules: [rule] })
}
