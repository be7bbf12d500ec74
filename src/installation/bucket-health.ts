import type { Config } from '../config/config.ts'
import { type Finding, failure, ok, warning } from '../health-check.ts'
import type { Bucket } from '../storage/s3/bucket.ts'
import {
  type BucketRules,
  measureOldVersions,
  measureUnfinishedUploads,
  readBucketRules,
  type Unneeded,
} from '../storage/s3/bucket-rules.ts'
import { directionOf, locateFiles, type ReadSetting, readMove } from './located-files.ts'

const DAY_S = 24 * 3600

/** Writes and reads an object of each bucket, and says where the files are. */
export async function examineBuckets(config: Config, readSetting: ReadSetting): Promise<Finding> {
  const { at, buckets } = await locateFiles(readSetting, config)
  for (const bucket of buckets) await bucket.check()
  const move = await readMove(readSetting)
  if (move) {
    const { fromName, toName } = directionOf(move)
    return warning(
      `Files are being moved from ${fromName} to ${toName} while the server runs. How far it is: reelgate migrate --storage with that address.`,
    )
  }
  return at.bucket
    ? ok(`Objects in ${buckets.map(({ address }) => address.bucket).join(' and ')} can be written and read.`)
    : warning(
        'The files are in the data folder, and nothing uses the bucket of REELGATE_STORAGE_URL: reelgate migrate --storage with its address moves them there. The first start of an installation without videos uses it from the beginning.',
      )
}

/** The bucket that has all files: only from that do players load segments. Undefined: none, or files are being moved. */
export async function findFilesBucket(config: Config, readSetting: ReadSetting): Promise<Bucket | undefined> {
  if (!config.bucket && !config.otherBucket) return undefined
  const { at, to } = await locateFiles(readSetting, config)
  return to ? undefined : at.bucket
}

/** Of the buckets that have files, or are to have them; the worst of them. */
export async function examineUsedBuckets(config: Config, readSetting: ReadSetting): Promise<Finding> {
  const { at, to } = await locateFiles(readSetting, config)
  const used = [at.bucket, to?.bucket].filter((bucket) => bucket !== undefined)
  const findings = await Promise.all(used.map(examineBucketRules))
  const worst = ['trouble', 'warning', 'ok'].flatMap((state) => findings.filter((finding) => finding.state === state))[0]
  return worst ?? ok('Files are in the data folder.')
}

/** What a bucket does by itself with objects and uploads, what that costs, and the rule to set. */
export async function examineBucketRules(bucket: Bucket): Promise<Finding> {
  const { address } = bucket
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
