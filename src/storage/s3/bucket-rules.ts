import type { Bucket } from './bucket.ts'
import { BucketError } from './bucket.ts'
import { askXml, listUploads } from './objects.ts'

// What a bucket does with objects by itself, as far as it says so, and what it keeps that Reelgate does not need.

export type BucketRules = {
  /** Whether what is removed or written again is kept as a version. Undefined: the bucket does not say. */
  keepsVersions: boolean | undefined
  /** Those that concern this prefix. Undefined: the bucket does not say. */
  lifecycle: LifecycleRule[] | undefined
}

/** `null`: the rule does nothing of the kind. */
type LifecycleRule = {
  id: string
  endsUploadsAfterDays: number | null
  removesVersionsAfterDays: number | null
  removesObjects: boolean
}

export async function readBucketRules(bucket: Bucket): Promise<BucketRules> {
  const versioning = await askForRules(bucket, 'versioning')
  const lifecycle = await askForRules(bucket, 'lifecycle')
  return {
    keepsVersions: versioning && versioning !== 'none' ? versioning.first('Status') === 'Enabled' : undefined,
    lifecycle: lifecycle === 'none' ? [] : lifecycle?.each('Rule').flatMap((rule) => readRule(rule, bucket.address.prefix)),
  }
}

type Answer = Awaited<ReturnType<typeof askXml>>

/** Undefined: the bucket has no such question, or its answer is not for this key; none: it has no rules. */
async function askForRules(bucket: Bucket, about: 'versioning' | 'lifecycle'): Promise<Answer | 'none' | undefined> {
  try {
    return await askXml(bucket, { method: 'GET', query: { [about]: '' } })
  } catch (error) {
    const cause = error instanceof BucketError ? error : error instanceof Error ? error.cause : undefined
    if (!(cause instanceof BucketError)) throw error
    if (cause.code === 'NoSuchLifecycleConfiguration') return 'none'
    if (cause.status === 403 || cause.status === 501 || error === cause) return undefined
    throw error
  }
}

function readRule(rule: Answer, ownPrefix: string): LifecycleRule[] {
  const prefix = rule.first('Prefix') ?? ''
  const concerns = ownPrefix.startsWith(prefix) || prefix.startsWith(ownPrefix)
  // Reelgate gives no object a tag.
  if (rule.first('Status') !== 'Enabled' || !concerns || rule.first('Tag') !== undefined) return []
  const coversAll = ownPrefix.startsWith(prefix)
  const days = (element: string, name: string) => {
    const found = rule.each(element)[0]?.first(name)
    return found === undefined || !coversAll ? null : Number(found)
  }
  return [
    {
      id: rule.first('ID') ?? '',
      endsUploadsAfterDays: days('AbortIncompleteMultipartUpload', 'DaysAfterInitiation'),
      removesVersionsAfterDays: days('NoncurrentVersionExpiration', 'NoncurrentDays'),
      removesObjects: rule
        .each('Expiration')
        .some((found) => found.first('Days') !== undefined || found.first('Date') !== undefined),
    },
  ]
}

export type Unneeded = {
  count: number
  sizeBytes: number
  /** Whether there may be more: not all was looked at. */
  isPart: boolean
}

/** So many lists of a thousand are asked for: enough to know what it costs. */
const MAX_LISTS = 10

/** The versions below the prefix that are not the newest. */
export async function measureOldVersions(bucket: Bucket): Promise<Unneeded> {
  const { prefix } = bucket.address
  const total = { count: 0, sizeBytes: 0 }
  let marker: Record<string, string> = {}
  for (let lists = 0; lists < MAX_LISTS; lists++) {
    const page = await askXml(bucket, { method: 'GET', query: { versions: '', prefix, ...marker } })
    for (const version of page.each('Version')) {
      if (version.first('IsLatest') === 'true') continue
      total.count += 1
      total.sizeBytes += Number(version.first('Size'))
    }
    const [key, id] = [page.first('NextKeyMarker'), page.first('NextVersionIdMarker')]
    if (page.first('IsTruncated') !== 'true' || key === undefined) return { ...total, isPart: false }
    marker = { 'key-marker': key, 'version-id-marker': id ?? '' }
  }
  return { ...total, isPart: true }
}

const MAX_UPLOADS = 100

/** The unfinished uploads below the prefix that began before. */
export async function measureUnfinishedUploads(bucket: Bucket, beforeS: number): Promise<Unneeded> {
  const total = { count: 0, sizeBytes: 0 }
  for await (const { key, uploadId, begunAtS } of listUploads(bucket, bucket.address.prefix)) {
    if (begunAtS >= beforeS) continue
    if (total.count === MAX_UPLOADS) return { ...total, isPart: true }
    const parts = await askXml(bucket, { method: 'GET', key, query: { uploadId } })
    total.count += 1
    for (const part of parts.each('Part')) total.sizeBytes += Number(part.first('Size'))
  }
  return { ...total, isPart: false }
}
