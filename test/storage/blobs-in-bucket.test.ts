import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { isHostFailure } from '../../src/errors.ts'
import { BlobLost, type BlobStore, type CopyCheck } from '../../src/storage/blob-store.ts'
import { openBucket } from '../../src/storage/s3/bucket.ts'
import { openLocalCache } from '../../src/storage/s3/local-cache.ts'
import { abortUpload, beginUpload, listObjects, listUploads } from '../../src/storage/s3/objects.ts'
import { mountSmallDisk } from '../faults/small-disk.ts'
import type { Fault } from '../s3/fault-proxy.ts'
import { contentsOf, newBucket, openStore, openStoreWith } from '../s3.ts'
import { sampledTests } from '../sample.ts'
import { testBlobStore } from './blob-store-promises.ts'

testBlobStore('a bucket', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  return {
    store,
    reopen: () => store,
    async takeAway() {
      await proxy.stop()
      return () => proxy.listen()
    },
  }
})

/** The smallest that stores accept. */
const PART_BYTES = 5 * 2 ** 20

async function* inPieces(bytes: Buffer, pieceBytes = 700_000) {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

test('a large blob is put in parts, and nothing else is left', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket, { partBytes: PART_BYTES })
  const bytes = randomBytes(2 * PART_BYTES + 1000)
  expect(await store.put('video/mp4', [Readable.from(inPieces(bytes))])).toEqual({ sizeBytes: bytes.length })
  expect((await store.read('video/mp4')).equals(bytes)).toBe(true)
  expect(await contentsOf(bucket)).toEqual({ objects: ['reelgate', 'sources/video/mp4'], uploads: [] })
})

test('I8: a large blob whose bytes break off leaves no upload behind', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket, { partBytes: PART_BYTES })
  async function* broken() {
    yield randomBytes(2 * PART_BYTES)
    throw new Error('the client went away')
  }
  await expect(store.put('video/mp4', [Readable.from(broken())])).rejects.toThrow('the client went away')
  expect(await contentsOf(bucket)).toEqual({ objects: ['reelgate'], uploads: [] })
})

const sizeOf = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

test('F-269: bytes on their way to a bucket are in no file that a crash leaves; a disk that is full fails the write, and the bucket is not away', async () => {
  const { bucket } = await newBucket()
  const disk = await mountSmallDisk(32)
  let fullTimes = 0
  const store = openStoreWith(
    bucket,
    openLocalCache(disk.path, 2 ** 30, () => fullTimes++),
    PART_BYTES,
  )
  const bytes = randomBytes(2 * PART_BYTES + 1_000_000)
  const files = new Set<string>()
  async function* watched() {
    for await (const piece of inPieces(bytes)) {
      yield piece
      // Until it has lost its name, it has no bytes.
      for (const name of await readdir(disk.path)) if ((await sizeOf(join(disk.path, name))) > 0) files.add(name)
    }
  }
  const writes = {
    put: () => store.put('video/mp4', [Readable.from(watched())]),
    appendPart: () => store.appendPart('video/source', 0, watched()),
  }
  await disk.leave(2_000_000)
  for (const write of Object.values(writes)) await expect(write()).rejects.toMatchObject({ code: 'ENOSPC' })
  expect([fullTimes, bucket.outage()]).toEqual([2, undefined])
  await disk.makeRoom()
  files.clear()
  for (const write of Object.values(writes)) await write()
  expect([...files]).toEqual([])
  expect((await statfs(disk.path)).bavail).toBe((await statfs(disk.path)).blocks)
  expect((await store.read('video/mp4')).equals(bytes)).toBe(true)
})

test('F-190: with an address that leads elsewhere nothing counts as lost', async () => {
  const { bucket, address } = await newBucket()
  await (await openStore(bucket)).put('video/a', Buffer.from('a'))
  for (const elsewhere of [
    { ...address, prefix: 'elsewhere/' },
    { ...address, bucket: 'tests-without-one' },
  ]) {
    const store = await openStore(openBucket(elsewhere))
    for (const read of [() => store.read('video/a'), () => store.open('video/a'), () => store.stat('video/a')]) {
      const error = await read().then(
        () => expect.fail('it was read'),
        (error: unknown) => error,
      )
      expect(isHostFailure(error)).toBe(true)
      expect(String(error)).toContain('REELGATE_STORAGE_URL')
    }
  }
})

test('F-19: a bucket that is overloaded or cuts answers is asked again', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  const bytes = randomBytes(400_000)
  for (const [name, fault] of Object.entries(PASSING_FAULTS)) {
    const faulty = new Set<string>()
    proxy.fault = (passing) => {
      const request = `${passing.method} ${passing.path} ${passing.headers.range}`
      if (faulty.has(request)) return false
      faulty.add(request)
      return fault(passing)
    }
    await store.put(`video/${name}`, bytes)
    expect((await store.read(`video/${name}`)).equals(bytes)).toBe(true)
    expect((await buffer((await store.open(`video/${name}`)).stream({ first: 0, last: bytes.length - 1 }))).equals(bytes)).toBe(
      true,
    )
    await store.remove(`video/${name}`)
  }
})

test('F-19: an error that comes with a status of 200, and an answer that is lost, of the request that puts parts together', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket, { partBytes: PART_BYTES })
  const bytes = randomBytes(PART_BYTES + 1000)
  for (const fault of [refuse(200, 'InternalError'), PASSING_FAULTS.unanswered]) {
    let isFaulty = true
    proxy.fault = (passing) => {
      if (!isFaulty || passing.method !== 'POST' || !passing.path.includes('uploadId')) return false
      isFaulty = false
      return fault?.(passing) ?? false
    }
    await store.put('video/mp4', [Readable.from(inPieces(bytes))])
    expect((await store.read('video/mp4')).equals(bytes)).toBe(true)
  }
})

const refuse = (status: number, code: string): Fault => {
  return ({ reply }) => {
    reply.writeHead(status).end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>for a test</Message></Error>`)
    return true
  }
}

/** Each is over with the next try. */
const PASSING_FAULTS: Readonly<Record<string, Fault>> = {
  unavailable: refuse(503, 'ServiceUnavailable'),
  slow: refuse(503, 'SlowDown'),
  broken: refuse(500, 'InternalError'),
  reset({ reply }) {
    reply.destroy()
    return true
  },
  /** What was asked for has happened, and the answer is lost. */
  async unanswered({ pass, reply }) {
    await pass()
    reply.destroy()
    return true
  },
  async resetInBody({ pass, reply }) {
    const answer = await pass()
    reply.writeHead(answer.status, answer.headers).write(answer.body.subarray(0, answer.body.length / 2))
    setImmediate(() => reply.destroy())
    return true
  },
}

test('F-191: what a bucket refuses is reported in a sentence of its own, and is no loss', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  await store.put('video/a', Buffer.from('a'))
  for (const [fault, sentence] of [
    [refuse(503, 'SlowDown'), 'overloaded or down (503 SlowDown)'],
    [refuse(403, 'SignatureDoesNotMatch'), 'Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY'],
    [refuse(403, 'QuotaExceeded'), 'is full'],
    [refuse(404, 'NoSuchBucket'), 'not where REELGATE_STORAGE_URL says'],
  ] as const) {
    proxy.fault = fault
    for (const use of [() => store.read('video/a'), () => store.put('video/b', Buffer.from('b')), () => store.check()]) {
      const error = await use().then(
        () => expect.fail('it succeeded'),
        (error: unknown) => error,
      )
      expect(String(error)).toContain(sentence)
      expect(isHostFailure(error)).toBe(true)
    }
  }
})

test('F-192: a clock that is off by 20 minutes is named', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  proxy.fault = (passing) => {
    passing.reply.setHeader('Date', new Date(Date.now() + 20 * 60_000).toUTCString())
    return refuse(403, 'RequestTimeTooSkewed')(passing)
  }
  await expect(store.read('video/a')).rejects.toThrow('The clock of this server differs from that of its bucket by 20 minutes')
})

test('F-192: a store refuses what a clock has signed that is off by 20 minutes, and the sentence says so', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket)
  await store.put('video/a', Buffer.from('a'))
  const trueMs = Date.now()
  onTestFinished(() => void vi.useRealTimers())
  vi.useFakeTimers({ toFake: ['Date'], now: trueMs - 20 * 60_000 })
  for (const use of [() => store.read('video/a'), () => store.put('video/b', Buffer.from('b')), () => store.check()])
    await expect(use()).rejects.toThrow(/^The clock of this server differs from that of its bucket by 20 minutes/)
  expect(bucket.outage()?.why.retryAfterS).toBeGreaterThan(0)
  vi.setSystemTime(trueMs)
  await store.check()
  expect(bucket.outage()).toBeUndefined()
})

test('F-236: a bucket that is silent is away, and answers after it', async () => {
  const { proxy, address } = await newBucket()
  const bucket = openBucket({ ...address, endpoint: proxy.endpoint }, { silenceMs: 300 })
  const store = await openStore(bucket)
  await store.put('video/a', Buffer.from('a'))
  const { promise: end, resolve } = Promise.withResolvers<boolean>()
  proxy.fault = () => end
  for (const use of [() => store.read('video/a'), () => store.put('video/b', Buffer.from('b')), () => store.check()]) {
    const error = await use().then(
      () => expect.fail('it was answered'),
      (error: unknown) => error,
    )
    expect(String(error)).toContain('does not answer (it is silent)')
    expect(isHostFailure(error)).toBe(true)
    expect(bucket.outage()).toBeDefined()
  }
  proxy.fault = undefined
  resolve(true)
  await expect.poll(() => store.check().then(() => bucket.outage(), String)).toBeUndefined()
  expect((await store.read('video/a')).toString()).toBe('a')
})

test('F-237: a bucket that is full is away for what is to be stored, whatever is read meanwhile', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  await store.put('video/a', Buffer.from('a'))
  proxy.fault = (passing) => passing.method === 'PUT' && refuse(403, 'QuotaExceeded')(passing)
  await expect(store.put('video/b', Buffer.from('b'))).rejects.toThrow('is full')
  expect((await store.read('video/a')).toString()).toBe('a')
  expect(bucket.outage()?.why.message).toContain('is full')
  proxy.fault = undefined
  await store.check()
  expect(bucket.outage()).toBeUndefined()
})

// --- blobs that grow ---

/** The row: how many bytes count. */
type Row = { countedBytes: number }

/** Appends parts, counts each, and finishes, as an upload that is resumed does. */
async function upload(store: BlobStore, row: Row, bytes: Buffer): Promise<void> {
  await store.appendPart('video/source', row.countedBytes, [])
  while (row.countedBytes < bytes.length) {
    const part = bytes.subarray(row.countedBytes, row.countedBytes + STEP_BYTES)
    const counted = await store.appendPart('video/source', row.countedBytes, inPieces(part))
    if (counted === bytes.length) break // not counted before it is finished
    row.countedBytes = counted
  }
  await store.finish('video/source', bytes.length)
  row.countedBytes = bytes.length
}

const STEP_BYTES = 7_000_000
const GROWN = randomBytes(2 * STEP_BYTES + 3_000_000)

test('a blob grows in parts, whatever part size an earlier process had', async () => {
  const { bucket } = await newBucket()
  const row = { countedBytes: 0 }
  const first = await openStore(bucket, { partBytes: PART_BYTES })
  row.countedBytes = await first.appendPart('video/source', 0, inPieces(GROWN.subarray(0, STEP_BYTES)))
  const second = await openStore(bucket, { partBytes: 6 * 2 ** 20 })
  await upload(second, row, GROWN)
  expect((await second.read('video/source')).equals(GROWN)).toBe(true)
  expect(await contentsOf(bucket)).toEqual({ objects: ['reelgate', 'sources/video/source'], uploads: [] })
})

test('a blob that grows is listed, and its removal ends its upload', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket, { partBytes: PART_BYTES })
  for (const remove of [() => store.remove('video/source'), () => store.removeAll('video')]) {
    await store.appendPart('video/source', 0, inPieces(GROWN.subarray(0, STEP_BYTES)))
    expect(await Array.fromAsync(store.list('', ''))).toEqual(['video/source'])
    expect((await store.stat('video/source'))?.sizeBytes).toBe(STEP_BYTES)
    await remove()
    expect(await contentsOf(bucket)).toEqual({ objects: ['reelgate'], uploads: [] })
  }
})

test('I8: uploads that a crash ended are found and removed, those of a blob that grows stay', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket, { partBytes: PART_BYTES })
  const counted = await store.appendPart('video/source', 0, inPieces(GROWN.subarray(0, STEP_BYTES)))
  await beginUpload(bucket, `${bucket.address.prefix}files/video/mp4`, 'an attempt')
  expect(await store.removeUnfinished((await store.nowS()) - 3600)).toBe(0)
  expect(await store.removeUnfinished((await store.nowS()) + 3600)).toBe(1)
  await upload(store, { countedBytes: counted }, GROWN)
  expect((await store.read('video/source')).equals(GROWN)).toBe(true)
})

test('F-238: while the store lists what it had before, no acknowledged byte is lost, and nothing is removed that grows', async () => {
  const { bucket, proxy, address } = await newBucket()
  const store = await openStore(bucket, { partBytes: PART_BYTES })
  let counted = await store.appendPart('video/source', 0, inPieces(GROWN.subarray(0, STEP_BYTES)))
  const stale = new Map<string, { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }>()
  let isStale = false
  proxy.fault = async ({ method, path, pass, reply }) => {
    if (method !== 'GET' || !path.includes('list-type=2')) return false
    const now = await pass()
    const { status, headers, body } = (isStale && stale.get(path)) || now
    stale.set(path, now) // the next one is late by one
    isStale = !isStale
    reply.writeHead(status, headers).end(body)
    return true
  }
  await Array.fromAsync(listObjects(bucket, `${address.prefix}sources/video/source!`))
  counted = await store.appendPart('video/source', counted, inPieces(GROWN.subarray(counted, counted + STEP_BYTES)))
  isStale = true
  expect(await store.removeUnfinished(Number.POSITIVE_INFINITY)).toBe(0)
  isStale = true
  await upload(store, { countedBytes: counted }, GROWN)
  expect((await store.read('video/source')).equals(GROWN)).toBe(true)
})

test('F-193: a blob whose upload the bucket has ended is lost', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket, { partBytes: PART_BYTES })
  const counted = await store.appendPart('video/source', 0, inPieces(GROWN.subarray(0, STEP_BYTES)))
  for await (const { key, uploadId } of listUploads(bucket, bucket.address.prefix)) await abortUpload(bucket, key, uploadId)
  await expect(store.appendPart('video/source', counted, [])).rejects.toBeInstanceOf(BlobLost)
  await expect(store.finish('video/source', counted)).rejects.toBeInstanceOf(BlobLost)
})

describe('F-194: a server that is killed at any request to its bucket loses no acknowledged byte', () => {
  const { test, draw } = sampledTests('kills at requests to the bucket', 3)
  const points = Array.from({ length: 26 }, (_, request) => [`before request ${request}`, `after request ${request}`]).flat()
  test.each(points)('%s of an upload that is resumed', async (point) => {
    const { bucket, proxy, address } = await newBucket()
    const row = { countedBytes: 0 }
    proxy.fault = cutAt(point)
    await upload(await openStore(bucket, { partBytes: PART_BYTES }), row, GROWN).catch(() => undefined)
    const store = await openStore(openBucket(address), { partBytes: PART_BYTES })
    await upload(store, row, GROWN)
    expect((await store.read('video/source')).equals(GROWN)).toBe(true)
    await store.removeUnfinished(Number.POSITIVE_INFINITY)
    expect(await contentsOf(openBucket(address))).toEqual({ objects: ['reelgate', 'sources/video/source'], uploads: [] })
  })
  draw()
})

describe('F-194: of a large blob whose put is killed at any request to the bucket there is all or nothing', () => {
  const { test, draw } = sampledTests('kills at requests of a put', 2)
  const points = Array.from({ length: 7 }, (_, request) => [`before request ${request}`, `after request ${request}`]).flat()
  test.each(points)('%s', async (point) => {
    const { bucket, proxy, address } = await newBucket()
    proxy.fault = cutAt(point)
    const put = (await openStore(bucket, { partBytes: PART_BYTES })).put('video/source', [Readable.from(inPieces(GROWN))])
    const wasPut = await put.then(
      () => true,
      () => false,
    )
    const store = await openStore(openBucket(address))
    await store.removeUnfinished(Number.POSITIVE_INFINITY)
    const { objects, uploads } = await contentsOf(openBucket(address))
    expect(uploads).toEqual([])
    if (wasPut || objects.length > 1) expect((await store.read('video/source')).equals(GROWN)).toBe(true)
    await store.remove('video/source')
    expect((await contentsOf(openBucket(address))).objects).toEqual(['reelgate'])
  })
  draw()
})

/** From one request on, or from its answer on, nothing comes through: as to a process that was killed. */
function cutAt(point: string): Fault {
  const [when = '', , at = ''] = point.split(' ')
  let requests = 0
  return async ({ pass, reply }) => {
    const number = requests++
    if (number < Number(at)) return false
    if (when === 'after' && number === Number(at)) await pass()
    reply.destroy()
    return true
  }
}

// --- copies for programs ---

test('a copy for a program is fetched once for all that use it, and has the bytes', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  const bytes = randomBytes(20_000_000)
  await store.put('video/a', bytes)
  const before = proxy.requests().length
  const copies = await Promise.all([1, 2, 3].map(() => store.withLocalCopy('video/a', (path) => readFile(path))))
  expect(copies.every((copy) => copy.equals(bytes))).toBe(true)
  const fetched = proxy.requests().length - before
  await store.withLocalCopy('video/a', (path) => readFile(path))
  expect([fetched, proxy.requests().length - before - fetched]).toEqual([3 + 3, 1]) // one each to open it
})

test('copies that were used last are kept, and one in use is never removed', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket, { cacheBytes: 25 })
  for (const name of ['video/a', 'video/b', 'video/c']) await store.put(name, Buffer.from(name.padEnd(10)))
  const pathOf = (name: string) => store.withLocalCopy(name, async (path) => path)
  await store.withLocalCopy('video/a', async (a) => {
    const [b, c] = [await pathOf('video/b'), await pathOf('video/c')]
    expect([existsSync(a), existsSync(b), existsSync(c)]).toEqual([true, false, true])
    await store.put('video/large', Buffer.alloc(100))
    await store.withLocalCopy('video/large', async (large) => expect(existsSync(large)).toBe(true))
    expect(await readFile(a, 'utf8')).toBe('video/a'.padEnd(10))
  })
})

test('a copy that could not be fetched whole is fetched again', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  const bytes = randomBytes(1_000_000)
  await store.put('video/a', bytes)
  proxy.fault = ({ headers, reply }) => {
    if (!headers['if-match']) return false
    reply.destroy()
    return true
  }
  await expect(store.withLocalCopy('video/a', async () => undefined)).rejects.toThrow('does not answer')
  proxy.fault = undefined
  expect(await store.withLocalCopy('video/a', async (path) => (await readFile(path)).equals(bytes))).toBe(true)
})

test('F-266: a new blob replaces none where the store can refuse that; a refusal of its own first try, whose answer was lost, counts as stored', async () => {
  const { bucket, proxy } = await newBucket()
  const store = await openStore(bucket)
  await bucket.check()
  expect(bucket.keepsFirst()).toBe(true)
  let lostAnswers = 0
  proxy.fault = async ({ method, pass, reply }) => {
    if (method !== 'PUT' || lostAnswers++ > 0) return false
    await pass()
    reply.destroy()
    return true
  }
  await store.put('video/a', Buffer.from('first'), { isNew: true })
  expect(lostAnswers).toBe(2)
  await expect(store.put('video/a', Buffer.from('second'), { isNew: true })).rejects.toThrow('412')
  expect((await store.read('video/a')).toString()).toBe('first')
  await store.put('video/a', Buffer.from('repaired'))
  expect((await store.read('video/a')).toString()).toBe('repaired')
})

test('F-266: a store that does not know how to refuse is written as before', async () => {
  const { bucket, proxy } = await newBucket()
  proxy.fault = ({ headers, reply }) => {
    if (headers['if-none-match'] === undefined) return false
    reply.writeHead(501).end('<Error><Code>NotImplemented</Code></Error>')
    return true
  }
  await bucket.check()
  expect(bucket.keepsFirst()).toBe(false)
  const store = await openStore(bucket)
  for (const text of ['first', 'second']) await store.put('video/a', Buffer.from(text), { isNew: true })
  expect((await store.read('video/a')).toString()).toBe('second')
})

test('F-239: a copy whose bytes were changed on the disk is never used: it is fetched again; what the bucket has changed is lost', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket)
  const bytes = randomBytes(3_000_000)
  await store.put('video/a', bytes)
  const newCheck = () => checkCopy(bytes)
  const read = () => store.withLocalCopy('video/a', async (path) => ({ path, read: await readFile(path) }), newCheck)
  const { path } = await read()
  const changed = Buffer.from(bytes)
  changed[1_500_000] = (changed[1_500_000] ?? 0) ^ 1
  await writeFile(path, changed)
  expect((await readFile(path)).equals(bytes)).toBe(false)
  expect((await read()).read.equals(bytes)).toBe(true)
  await store.put('video/a', changed)
  await expect(read()).rejects.toBeInstanceOf(BlobLost)
})

test('F-242: a disk without room for a copy counts as full, and the reason has the size', async () => {
  const { bucket } = await newBucket()
  const store = await openStore(bucket)
  await store.put('video/a', Buffer.from('a'))
  let fullTimes = 0
  const cache = openLocalCache(tmpdir(), 2 ** 30, () => fullTimes++)
  await using blob = await store.open('video/a')
  const huge = Object.assign(blob, { sizeBytes: 2 ** 60 })
  await expect(cache.use('a', huge, async () => undefined)).rejects.toThrow('no room for a copy of 1152921505 GB')
  expect(fullTimes).toBe(1)
})

function checkCopy(expected: Buffer): CopyCheck {
  const parts: Buffer[] = []
  return { add: (part) => void parts.push(Buffer.from(part)), isIntact: () => Buffer.concat(parts).equals(expected) }
}
