import { createHash, randomBytes } from 'node:crypto'
import { errorCode, StorageUnavailable } from '../../errors.ts'
import { type Bucket, type BucketAddress, encodeKey, ONLY_NEW } from './bucket.ts'
import { FOR_CACHES } from './s3-store.ts'

// A PUT of one new object that another program may send, and only so: its length, its bytes and that it replaces nothing are signed.

/** `headers` are signed, and so is the length of the body. */
export type PresignedPut = { url: string; headers: Record<string, string> }

/** What an object is to have. `sha256` in hexadecimal digits. */
export type PutBytes = { sizeBytes: number; sha256: string }

const TRIAL_BYTES = 64
const TRIAL_LIFE_S = 60
const TIMEOUT_MS = 10_000

/** @param key with the prefix */
export async function presignPut(
  { endpoint, region, bucket, credentials }: BucketAddress,
  key: string,
  { sizeBytes, sha256 }: PutBytes,
  lifeS: number,
): Promise<PresignedPut> {
  const { AwsV4Signer } = await import('aws4fetch')
  const url = new URL(`${endpoint}/${bucket}/${encodeKey(key)}`)
  url.searchParams.set('X-Amz-Expires', String(lifeS))
  const headers = { ...FOR_CACHES, ...ONLY_NEW, 'x-amz-content-sha256': sha256 }
  const signer = new AwsV4Signer({
    ...{ method: 'PUT', url: url.href, headers: { ...headers, 'content-length': String(sizeBytes) } },
    ...{ ...credentials, service: 's3', region, signQuery: true, allHeaders: true },
  })
  const signed = await signer.sign()
  return { url: signed.url.href, headers }
}

/**
 * Whether a bucket refuses all that a presigned PUT does not sign: other bytes, another length, a replacement.
 * @throws StorageUnavailable when it does not answer, so that nothing is known
 */
export async function honorsPresignedPuts(bucket: Bucket): Promise<boolean> {
  const key = `${bucket.address.prefix}check-put-${randomBytes(6).toString('hex')}`
  const bytes = randomBytes(TRIAL_BYTES)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const { url, headers } = await presignPut(bucket.address, key, { sizeBytes: TRIAL_BYTES, sha256 }, TRIAL_LIFE_S)
  const { 'if-none-match': _, ...replacing } = headers
  try {
    const refused = [
      await send(url, headers, randomBytes(TRIAL_BYTES)),
      await send(url, headers, Buffer.concat([bytes, bytes])),
      await send(url, replacing, bytes),
    ]
    const [first, second] = [await send(url, headers, bytes), await send(url, headers, bytes)]
    return refused.every((status) => status >= 400) && first < 300 && second === 412
  } finally {
    await bucket.send({ method: 'DELETE', key })
  }
}

/** @returns the status of the answer */
async function send(url: string, headers: Record<string, string>, body: Buffer): Promise<number> {
  const { request } = await import('undici')
  const answer = await request(url, {
    ...{ method: 'PUT', headers, body, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS },
  }).catch((error: unknown) => {
    throw new StorageUnavailable(`The bucket does not answer (${errorCode(error)}).`, { cause: error })
  })
  await answer.body.dump().catch(() => undefined) // its status says enough
  if (answer.statusCode >= 500 && answer.statusCode !== 501)
    throw new StorageUnavailable(`The bucket answers with status ${answer.statusCode}.`)
  return answer.statusCode
}
