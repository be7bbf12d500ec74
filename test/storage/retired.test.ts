import { describe, expect, test } from 'vitest'
import { FILE_BLOB_NAME } from '../../src/catalogue/file-store.ts'
import { type BlobStore, RETIRED_KEPT_S } from '../../src/storage/blob-store.ts'
import { createOrphanSweep } from '../../src/storage/orphan-sweep.ts'
import { type Bucket, openBucket } from '../../src/storage/s3/bucket.ts'
import { openLocalCache } from '../../src/storage/s3/local-cache.ts'
import { blobsInBucket } from '../../src/storage/s3/s3-store.ts'
import { addFile, SRT } from '../assets/sample-files.ts'
import { newFolder } from '../pipeline/videos.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { killAt, startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, contentsOf, newBucket, openStore, storeEndpoint } from '../s3.ts'
import { sampledTests } from '../sample.ts'

// What a row no longer names stays in a bucket for a week, so that rows of that week's backups find it.

const DAY_S = 24 * 3600

test('F-225: what a row no longer names stays in a bucket for seven days and then leaves; what rows name again stays', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket)
  const named = new Set(['video/1/a', 'video/1/again', 'video/2/a'])
  for (const name of [...named, 'video/1/b', 'video/1/c', 'video/b', 'other/1/a']) await store.put(name, Buffer.from(name))
  await store.retire('video/b')
  await store.retireAll('video/1')
  await store.retire('other/1/a')
  const nowS = await store.nowS()
  const sweep = () => createOrphanSweep(store, /./, async (names) => new Set(names.filter((name) => named.has(name))))

  expect(await sweep()(nowS + RETIRED_KEPT_S - 60, 1000)).toBe(0)
  expect((await store.read('video/b')).toString()).toBe('video/b')
  await store.removeAll('other') // a deleted video
  expect(await sweep()(nowS + RETIRED_KEPT_S + 60, 1000)).toBe(3)
  expect((await contentsOf(bucket)).objects).toEqual(['reelgate', ...[...named].map((name) => `sources/${name}`)])
})

test('F-225: what a crash left without a row, or rows of an older backup do not name, leaves a bucket seven days after it was found', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket)
  await store.put('video/orphan', Buffer.from('a'))
  const sweep = createOrphanSweep(store, /./, async () => new Set())
  const nowS = await store.nowS()
  const removed = [nowS, nowS + DAY_S + 60, nowS + 2 * DAY_S, nowS + RETIRED_KEPT_S + 60]
  const counts = []
  for (const atS of removed) counts.push([await sweep(atS, 1000), (await store.stat('video/orphan')) !== undefined])
  expect(counts).toEqual([
    [0, true],
    [1, true],
    [0, true],
    [1, false],
  ])
  expect((await contentsOf(bucket)).objects).toEqual(['reelgate'])
})

test('F-226: a server that is killed between the removal of a row and that of its object leaves one that a sweep finds, and nothing else', async () => {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { env, bucket } = await bucketEnvironment(proxy.endpoint)
  const reelgate = await startReelgate({ env })
  const { owner } = reelgate
  const { videoId } = await owner.credentials('A video')
  const { id }: { id: number } = JSON.parse(await (await addFile(owner, videoId, SRT, 'en')).text())
  const killed = Promise.withResolvers<void>()
  proxy.fault = async ({ method, path }) => {
    if (method !== 'PUT' || !path.includes('/retired/')) return false
    await reelgate.kill()
    killed.resolve()
    return true
  }
  const answered = owner.call('DELETE', `/api/videos/${videoId}/files/${id}`).catch(() => undefined)
  await killed.promise
  await answered
  proxy.fault = undefined
  const store = await filesIn(bucket)
  const left = await Array.fromAsync(store.list('', ''))
  expect([left.length, readRows(reelgate, 'select blob from file where blob is not null')]).toEqual([1, []])
  const sweep = createOrphanSweep(store, FILE_BLOB_NAME, async () => new Set())
  for (const days of [2, 8]) await sweep((await store.nowS()) + days * DAY_S, 1000)
  expect((await contentsOf(bucket)).objects.filter((name) => name !== 'check')).toEqual(['reelgate'])
})

describe('F-226: a server that is killed at any request of a retirement or of a sweep keeps what rows name, and leaves nothing else', () => {
  const { test, draw } = sampledTests('kills of retirements', 2)
  const points = Array.from({ length: 16 }, (_, request) => [`before request ${request}`, `after request ${request}`]).flat()
  test.each(points)('%s', async (point) => {
    const { bucket, proxy, address } = await newBucket()
    const named = 'video/1/named'
    for (const name of [named, 'video/1/a', 'video/1/b', 'video/c']) await (await openStore(bucket)).put(name, Buffer.from(name))
    async function retireAndSweep(within: Bucket) {
      const store = await openStore(within)
      await store.retireAll('video/1')
      await store.retire('video/c')
      const sweep = createOrphanSweep(store, /./, async () => new Set([named]))
      await sweep((await store.nowS()) + RETIRED_KEPT_S + 60, 1000)
    }
    proxy.fault = killAt(point)
    await retireAndSweep(bucket).catch(() => undefined)
    const direct = openBucket(address)
    expect((await contentsOf(direct)).objects).toContain(`sources/${named}`)
    await retireAndSweep(direct)
    expect((await contentsOf(direct)).objects).toEqual(['reelgate', `sources/${named}`])
  })
  draw()
})

async function filesIn(bucket: Bucket): Promise<BlobStore> {
  return blobsInBucket(bucket, { folder: 'files', partBytes: 8 * 2 ** 20, cache: openLocalCache(await newFolder(), 0) })
}
