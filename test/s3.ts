import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Bucket, type BucketAddress, openBucket } from '../src/storage/s3/bucket.ts'
import { type LocalCache, openLocalCache } from '../src/storage/s3/local-cache.ts'
import { listObjects, listUploads, removeObjects } from '../src/storage/s3/objects.ts'
import { blobsInBucket, putMarker } from '../src/storage/s3/s3-store.ts'
import { askForShared } from './postgres.ts'
import { type FaultProxy, startFaultProxy } from './s3/fault-proxy.ts'
import type { ReachedStore } from './s3/radosgw.ts'

/** Where servers keep the files of videos, unless a test says. */
export const STORAGE = process.env.REELGATE_TEST_STORAGE === 'bucket' ? 'bucket' : 'folder'

export type StorageOptions = {
  storage?: 'folder' | 'bucket'
}

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

export async function openStore(bucket: Bucket, { partBytes = 8 * 2 ** 20, cacheBytes = 2 ** 30, kind = 'sources' } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-cache-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return openStoreWith(bucket, openLocalCache(folder, cacheBytes), partBytes, kind)
}

export function openStoreWith(bucket: Bucket, cache: LocalCache, partBytes = 8 * 2 ** 20, kind = 'sources') {
  return blobsInBucket(bucket, { folder: kind, partBytes, cache })
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
  return { env: environmentOf({ ...address, ...(endpoint !== undefined && { endpoint }) }), bucket: openBucket(address), address }
}

function environmentOf({ bucket, prefix, endpoint, credentials }: BucketAddress) {
  return {
    REELGATE_STORAGE_URL: `s3://${bucket}/${prefix}?endpoint=${endpoint}`,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  }
}

/**
 * Where a server of a test keeps its files: in its data folder, or below a prefix of its own.
 * @param copyOf the objects of another one, to begin with
 */
export async function makeStorage({ storage = STORAGE, copyOf }: StorageOptions & { copyOf?: BucketAddress | undefined }) {
  if (storage === 'folder') return { env: {}, address: undefined, remove: async () => undefined }
  const { env, bucket, address } = await bucketEnvironment()
  if (copyOf) await copyObjects(copyOf, bucket)
  return {
    env,
    address,
    async remove() {
      await removeObjects(
        bucket,
        (await Array.fromAsync(listObjects(bucket, address.prefix))).map(({ key }) => key),
      )
    },
  }
}

/** Within the store, as many as a small video has. */
async function copyObjects(from: BucketAddress, to: Bucket): Promise<void> {
  const keys = (await Array.fromAsync(listObjects(openBucket(from), from.prefix))).map(({ key }) => key)
  await Promise.all(
    keys.map((key) =>
      to.send({
        method: 'PUT',
        key: to.address.prefix + key.slice(from.prefix.length),
        headers: { 'x-amz-copy-source': `/${from.bucket}/${key}` },
      }),
    ),
  )
}

/** The bucket of an installation, reached without its proxy. */
export function newBucketOf({ bucket }: { bucket: BucketAddress | undefined }): Bucket {
  if (!bucket) throw new Error('its files are in a folder')
  return openBucket(bucket)
}

/** Where the store of the run is. */
export async function storeEndpoint(): Promise<string> {
  return (await sharedBucket()).store.endpoint
}
