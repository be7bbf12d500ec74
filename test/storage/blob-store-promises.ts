import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isHostFailure } from '../../src/errors.ts'
import { BlobLost, type BlobStore, blocksOf } from '../../src/storage/blob-store.ts'
import { rounds } from '../seeded-random.ts'

export type StoreUnderTest = {
  store: BlobStore
  /** The same store, as another process opens it. */
  reopen(): BlobStore
  /** Makes the store unreachable. @returns makes it reachable again */
  takeAway(): Promise<() => Promise<void>>
}

/** What every engine promises. @param open makes an empty store that is removed after the test */
export function testBlobStore(engine: string, open: () => Promise<StoreUnderTest>): void {
  const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest()
  const names = (store: BlobStore, folder = '', after = '') => Array.fromAsync(store.list(folder, after))
  async function* pieces(...parts: readonly (Buffer | string)[]) {
    for (const part of parts) yield Buffer.from(part)
  }

  describe(engine, () => {
    test('a blob has the bytes that were put, and its size is reported', async () => {
      const { store, reopen } = await open()
      for (const bytes of [randomBytes(70_000), Buffer.alloc(0)]) {
        expect(await store.put('video/1/0.m4s', bytes)).toEqual({ sizeBytes: bytes.length })
        expect((await reopen().read('video/1/0.m4s')).equals(bytes)).toBe(true)
        expect(await store.stat('video/1/0.m4s')).toMatchObject({ sizeBytes: bytes.length })
      }
    })

    test('a stream becomes a blob once it has ended, and its size is reported', async () => {
      const { store } = await open()
      const bytes = randomBytes(3_000_000)
      const parts = Readable.from(pieces(bytes.subarray(0, 1), bytes.subarray(1, 900_000), bytes.subarray(900_000)))
      expect(await store.put('video/source', [parts])).toEqual({ sizeBytes: bytes.length })
      expect((await store.read('video/source')).equals(bytes)).toBe(true)
    })

    test('I8: a stream that breaks leaves neither a blob nor a part of one', async () => {
      const { store } = await open()
      async function* broken() {
        yield Buffer.from('half a video')
        throw new Error('the client went away')
      }
      await expect(store.put('video/source', [Readable.from(broken())])).rejects.toThrow('the client went away')
      expect(await names(store)).toEqual([])
      expect(await store.removeUnfinished(Number.POSITIVE_INFINITY)).toBe(0)
    })

    test('bytes that are refused at their end leave the blob that has their name', async () => {
      const { store } = await open()
      await store.put('video/a', Buffer.from('before'))
      async function* refused() {
        yield Buffer.from('after')
        throw new Error('other bytes than expected')
      }
      await expect(store.put('video/a', [refused()])).rejects.toThrow('other bytes than expected')
      expect((await store.read('video/a')).toString()).toBe('before')
    })

    test('a blob of another store is adopted, or is to be copied; one that is lost is neither', async () => {
      const [{ store }, { store: from }] = [await open(), await open()]
      for (const name of ['video/a', 'video/other']) await from.put(name, Buffer.from('a'))
      if (!(await store.adopt('video/a', from))) await store.put('video/a', await from.read('video/a'))
      await from.remove('video/a')
      expect((await store.read('video/a')).toString()).toBe('a')
      await expect(store.adopt('video/a', from)).rejects.toBeInstanceOf(BlobLost)
      expect((await store.read('video/a')).toString()).toBe('a')
    })

    test('F-09: a stream that is ended before its blob is open leaves nothing, and no unhandled error', async () => {
      const { store } = await open()
      const ending = new AbortController()
      const writing = store.put('video/mp4', [Readable.from(['a part'])], { signal: ending.signal })
      ending.abort()
      await expect(writing).rejects.toThrow('The operation was aborted')
      expect(await names(store)).toEqual([])
    })

    test('a blob is read in any parts, and a part ends where the blob ends', async () => {
      const { store } = await open()
      const bytes = randomBytes(300_000)
      await store.put('video/a', bytes)
      await using blob = await store.open('video/a')
      expect(blob.sizeBytes).toBe(bytes.length)
      for (const [at, length] of [
        [0, 1],
        [0, 300_000],
        [123_456, 150_000],
        [299_999, 100],
        [300_000, 10],
        [900_000, 10],
      ] as const) {
        const into = Buffer.alloc(length)
        const expected = bytes.subarray(at, at + length)
        expect(await blob.read(into, at)).toBe(expected.length)
        expect(into.subarray(0, expected.length).equals(expected)).toBe(true)
      }
      for (const blockBytes of [1000, 100_000, 2 ** 20]) {
        const hash = createHash('sha256')
        for await (const block of blocksOf(blob, blockBytes)) hash.update(block)
        expect(hash.digest()).toEqual(sha256(bytes))
      }
      const part = await buffer((await store.open('video/a')).stream({ first: 5, last: 280_000 }))
      expect(part.equals(bytes.subarray(5, 280_001))).toBe(true)
    })

    test('what is open and is removed or written again meanwhile is read as it was, or is lost', async () => {
      const { store } = await open()
      const bytes = randomBytes(500_000)
      const into = Buffer.alloc(bytes.length)
      for (const change of [() => store.removeAll('video'), () => store.put('video/a', randomBytes(bytes.length))]) {
        await store.put('video/a', bytes)
        const [whole, part] = [await store.open('video/a'), await store.open('video/a')]
        await change()
        const reads = [
          whole.read(into, 0).then(() => into),
          buffer(part.stream({ first: 0, last: bytes.length - 1 })), // closes it
        ]
        for (const read of await Promise.allSettled(reads))
          expect(read.status === 'fulfilled' ? bytes.equals(read.value) : read.reason instanceof BlobLost).toBe(true)
        await whole.close()
      }
    })

    test('a blob that is written again has another version', async () => {
      const { store } = await open()
      const versions = new Set<unknown>()
      for (const text of ['one', 'two']) {
        await store.put('video/a', Buffer.from(text))
        for (const _ of [1, 2]) {
          await using blob = await store.open('video/a')
          versions.add(blob.version)
        }
      }
      expect(versions.size).toBe(2)
    })

    test('a program gets a file with the bytes', async () => {
      const { store } = await open()
      await store.put('video/a', Buffer.from('a source'))
      expect(await store.withLocalCopy('video/a', (path) => readFile(path, 'utf8'))).toBe('a source')
    })

    test('the age of a blob is of the store’s clock', async () => {
      const { store } = await open()
      const before = await store.nowS()
      await store.put('video/a', Buffer.from('a'))
      const { changedAtS } = (await store.stat('video/a')) ?? expect.fail()
      expect(changedAtS).toBeGreaterThanOrEqual(Math.floor(before) - 1)
      expect(changedAtS).toBeLessThanOrEqual(Math.ceil(await store.nowS()))
    })

    const READS = {
      read: (store: BlobStore, name: string) => store.read(name),
      open: (store: BlobStore, name: string) => store.open(name),
      withLocalCopy: (store: BlobStore, name: string) => store.withLocalCopy(name, async () => undefined),
      finish: (store: BlobStore, name: string) => store.finish(name, 1),
      appendPart: (store: BlobStore, name: string) => store.appendPart(name, 1, pieces('more')),
    }

    test('a blob that the store does not have is lost, and its removal succeeds', async () => {
      const { store } = await open()
      await store.put('video/other', Buffer.from('a'))
      for (const name of ['video/missing', 'missing/video', 'missing']) {
        for (const read of Object.values(READS)) await expect(read(store, name)).rejects.toBeInstanceOf(BlobLost)
        expect(await store.stat(name)).toBeUndefined()
        await store.remove(name)
        await store.removeAll(name)
      }
      expect(await names(store)).toEqual(['video/other'])
    })

    test('F-70: while the store cannot be reached nothing counts as lost, and afterwards everything is there', async () => {
      const { store, takeAway } = await open()
      await store.put('video/a', Buffer.from('a'))
      const bringBack = await takeAway()
      for (const read of [...Object.values(READS), (store: BlobStore, name: string) => store.stat(name)]) {
        const error = await read(store, 'video/a').then(
          () => expect.fail('it was read'),
          (error: unknown) => error,
        )
        expect([isHostFailure(error), error instanceof BlobLost]).toEqual([true, false])
      }
      await bringBack()
      expect((await store.read('video/a')).toString()).toBe('a')
      await store.check()
    })

    test('a removal leaves the other blobs', async () => {
      const { store } = await open()
      for (const name of ['video/1/a', 'video/1/b', 'video/10/a', 'video2/a']) await store.put(name, Buffer.from(name))
      await store.remove('video/1/a')
      expect(await names(store)).toEqual(['video/1/b', 'video/10/a', 'video2/a'])
      await store.removeAll('video/1')
      expect(await names(store)).toEqual(['video/10/a', 'video2/a'])
      await store.removeAll('video')
      expect(await names(store)).toEqual(['video2/a'])
    })

    test('a blob that is put while the last other one of its folder is removed is there', async () => {
      const { store } = await open()
      for (let round = 0; round < rounds(20, 500); round++) {
        await store.put('video/old', Buffer.from('old'))
        await Promise.all([store.remove('video/old'), store.put('video/new', Buffer.from('new'))])
        expect((await store.read('video/new')).toString()).toBe('new')
        await store.remove('video/new')
      }
    })

    test('names are listed in their order, of one folder or of all, from any of them on', async () => {
      const part = fc.string({ unit: fc.constantFrom('a', 'b', '-', '_', '0', 'Z'), minLength: 1, maxLength: 3 })
      const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => `${parts.join('/')}.sealed`)
      await fc.assert(
        fc.asyncProperty(fc.uniqueArray(path, { maxLength: 12 }), async (paths) => {
          const { store } = await open()
          for (const name of paths) await store.put(name, Buffer.from('x'))
          const all = paths.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
          for (const folder of [
            '',
            ...new Set(all.flatMap((name) => (name.includes('/') ? [name.slice(0, name.indexOf('/'))] : []))),
          ]) {
            const below = all.filter((name) => folder === '' || name.startsWith(`${folder}/`))
            expect(await names(store, folder)).toEqual(below)
            for (const [index, after] of below.entries())
              expect(await names(store, folder, after)).toEqual(below.slice(index + 1))
          }
        }),
        { numRuns: rounds(8, 200) },
      )
      const { store } = await open()
      expect(await names(store, 'nothing')).toEqual([])
    })

    test('a blob grows over processes: only the bytes that count remain', async () => {
      const { store, reopen } = await open()
      const name = 'video/import'
      let countedBytes = await store.appendPart(name, 0, pieces('not ', 'this'))
      countedBytes = await store.appendPart(name, 0, pieces('one,', ' two,'))
      expect(countedBytes).toBe(9)
      async function* broken() {
        yield Buffer.from(' and what a broken connection left')
        throw new Error('the connection broke')
      }
      await expect(reopen().appendPart(name, countedBytes, broken())).rejects.toThrow('the connection broke')
      countedBytes = await reopen().appendPart(name, countedBytes, pieces(' three'))
      await expect(reopen().appendPart(name, countedBytes, broken())).rejects.toThrow('the connection broke')
      await reopen().finish(name, countedBytes)
      expect((await store.read(name)).toString()).toBe('one, two, three')
      expect(await names(store)).toEqual([name])
      await store.remove(name)
      expect(await names(store)).toEqual([])
    })

    test('a grown blob that has fewer bytes than count is lost', async () => {
      const { store } = await open()
      const countedBytes = await store.appendPart('video/import', 0, pieces('some'))
      await expect(store.appendPart('video/import', countedBytes + 1, pieces('more'))).rejects.toBeInstanceOf(BlobLost)
      await expect(store.finish('video/import', countedBytes + 1)).rejects.toBeInstanceOf(BlobLost)
    })

    test('U11: no name leads out of the store', async () => {
      const { store } = await open()
      const hostile = [
        '../x',
        '..',
        '.',
        '/etc/passwd',
        'a/../../x',
        'a//b',
        'a/',
        '',
        'a\0b',
        '.hidden',
        'a/.b',
        'a\\b',
        'a\nb',
        'ä',
      ]
      const odd = fc
        .string({ unit: fc.constantFrom('.', '/', 'a', '\0', '\\', '-', '%') })
        .filter((name) => !/^[\w-][\w.-]*(\/[\w-][\w.-]*)*$/.test(name))
      for (const name of [...hostile, ...fc.sample(odd, 30)]) {
        const uses = {
          ...READS,
          put: () => store.put(name, Buffer.from('x')),
          putStream: () => store.put(name, [Readable.from(['x'])]),
          adopt: () => store.adopt(name, store),
          stat: () => store.stat(name),
          remove: () => store.remove(name),
          removeAll: () => store.removeAll(name),
          retire: () => store.retire(name),
          retireAll: () => store.retireAll(name),
          ...(name !== '' && { list: () => names(store, name) }),
        }
        for (const use of Object.values(uses))
          await expect((async () => use(store, name))()).rejects.toThrow('not the name of a blob')
      }
    })
  })
}
