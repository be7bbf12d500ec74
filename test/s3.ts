import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Bucket, type BucketAddress, openBucket } from '../src/storage/s3/bucket.ts'
import { openLocalCache } from '../src/storage/s3/local-cache.ts'
import { listObjects, listUploads } from '../src/storage/s3/objects.ts'
import { blobsInBucket, putMarker } from '../src/storage/s3/s3-store.ts'
import { askForShared } from './postgres.ts'
import { type FaultProxy, startFaultProxy } from './s3/fault-proxy.ts'
import type { ReachedStore } from './s3/radosgw.ts'

let shared: Promise<{ store: ReachedStore; bucket: string }> | undefined

/** The bucket of this file, in the store of the run. */
function sharedBucket() {
  shared ??= makeBucket()
  return shared
}

async function makeBucket() {
  const store = await askForShared<ReachedStore>('objectStoreSocket')
  const bucket = `tests-${randomBytes(6).toString('hex')}`
  await openBucket(addressIn(store, bucket, '')).send({ method: 'PUT' })
  return { store, bucket }
}

function addressIn({ endpoint, ...credentials }: ReachedStore, bucket: string, prefix: string): BucketAddress {
  return { endpoint, region: 'us-east-1', bucket, prefix, credentials }
}

/** A prefix of a test’s own, empty, with the marker of an installation. */
export async function newBucketAddress(): Promise<BucketAddress> {
  const { store, bucket } = await sharedBucket()
  const address = addressIn(store, bucket, `${randomBytes(6).toString('hex')}/`)
  await putMarker(openBucket(address), 'an installation')
  return address
}

export type BucketUnderTest = { bucket: Bucket; proxy: FaultProxy; address: BucketAddress }

/** The same, reached through a proxy. */
export async function newBucket(): Promise<BucketUnderTest> {
  const address = await newBucketAddress()
  const proxy = await startFaultProxy(address.endpoint)
  return { bucket: openBucket({ ...address, endpoint: proxy.endpoint }), proxy, address }
}

export async function openStore(bucket: Bucket, { partBytes = 8 * 2 ** 20, cacheBytes = 2 ** 30 } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-cache-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return blobsInBucket(bucket, { folder: 'sources', partBytes, cache: openLocalCache(folder, cacheBytes) })
}

/** All that is below the prefix: the keys without it, and the uploads that are not finished. */
export async function contentsOf(bucket: Bucket) {
  const { prefix } = bucket.address
  const objects = (await Array.fromAsync(listObjects(bucket, prefix))).map(({ key }) => key.slice(prefix.length))
  const uploads = (await Array.fromAsync(listUploads(bucket, prefix))).map(({ key }) => key.slice(prefix.length))
  return { objects, uploads }
}

/** What a server finds in its environment that keeps its files below an empty prefix. @param endpoint of a proxy */
export async function bucketEnvironment(endpoint?: string) {
  const { store, bucket } = await sharedBucket()
  const address = addressIn(store, bucket, `${randomBytes(6).toString('hex')}/`)
  const { accessKeyId, secretAccessKey } = address.credentials
  const env = {
    REELGATE_STORAGE_URL: `s3://${bucket}/${address.prefix}?endpoint=${endpoint ?? store.endpoint}`,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  }
  return { env, bucket: openBucket(address) }
}

/** Where the store of the run is. */
export async function storeEndpoint(): Promise<string> {
  return (await sharedBucket()).store.endpoint
}
