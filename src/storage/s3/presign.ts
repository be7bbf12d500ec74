import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type BucketAddress, encodeKey, encodeStrictly } from './bucket.ts'

/** @param key of an object, or the name of a blob */
export type Presigner = (key: string, repairs?: number) => string

const LIFE_S = 2 * 3600
const ROUNDED_TO_S = 3600
/** Of eleven playlists of two hours: some 10 MB. */
const MAX_ADDRESSES = 20_000

/**
 * Makes addresses with which any client may GET objects of a bucket (AWS Signature V4 in the query). All that are made in one hour of the
 * wall clock are the same, so that caches in between help, and they live one to two hours. `repairs`: how often the object was written
 * again, since when it has another address, by a second each.
 *
 * Not by aws4fetch, whose signatures the tests compare: a playlist names thousands, and WebCrypto changes threads three times for each.
 */
export function presignerOf({ endpoint, region, bucket, credentials }: BucketAddress, wallNowS: number): Presigner {
  const atS = Math.floor(wallNowS / ROUNDED_TO_S) * ROUNDED_TO_S
  const date = new Date(atS * 1000).toISOString().replaceAll(/[:-]|\.\d{3}/g, '')
  const scope = `${date.slice(0, 8)}/${region}/s3/aws4_request`
  const { accessKeyId, secretAccessKey, sessionToken } = credentials
  // In the order that the signature demands.
  const parameters = (expiresS: number) => ({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${accessKeyId}/${scope}`,
    'X-Amz-Date': date,
    'X-Amz-Expires': String(expiresS),
    ...(sessionToken === undefined ? {} : { 'X-Amz-Security-Token': sessionToken }),
    'X-Amz-SignedHeaders': 'host',
  })
  const write = (values: Record<string, string>) =>
    Object.entries(values)
      .map(([name, value]) => `${name}=${encodeStrictly(value)}`)
      .join('&')
  const usual = write(parameters(LIFE_S))
  const signingKey = scope.split('/').reduce(deriveKey, createSecretKey(`AWS4${secretAccessKey}`, 'utf8'))
  const { host } = new URL(endpoint)
  return (key, repairs = 0) => {
    const query = repairs === 0 ? usual : write(parameters(LIFE_S - repairs))
    const path = `/${bucket}/${encodeKey(key)}`
    const request = hash('sha256', `GET\n${path}\n${query}\nhost:${host}\n\nhost\nUNSIGNED-PAYLOAD`)
    const signature = createHmac('sha256', signingKey).update(`AWS4-HMAC-SHA256\n${date}\n${scope}\n${request}`).digest('hex')
    return `${endpoint}${path}?${query}&X-Amz-Signature=${signature}`
  }
}

/**
 * The same for many viewers: addresses of the hour are kept, those that were used last.
 * @returns the presigner of the hour that an address is asked for in
 */
export function createSharedPresigner(): (address: BucketAddress, wallNowS: number) => Presigner {
  let last: { address: BucketAddress; hour: number; presign: Presigner } | undefined
  return (address, wallNowS) => {
    const hour = Math.floor(wallNowS / ROUNDED_TO_S)
    if (last?.address !== address || last.hour !== hour)
      last = { address, hour, presign: remember(presignerOf(address, wallNowS)) }
    return last.presign
  }
}

function remember(presign: Presigner): Presigner {
  const known = new LRUCache<string, string>({ max: MAX_ADDRESSES })
  return (key, repairs = 0) => {
    const name = repairs === 0 ? key : `${key} ${repairs}`
    const found = known.get(name)
    if (found !== undefined) return found
    const address = presign(key, repairs)
    known.set(name, address)
    return address
  }
}

function deriveKey(key: KeyObject, part: string): KeyObject {
  return createSecretKey(createHmac('sha256', key).update(part).digest())
}
