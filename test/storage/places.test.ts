import { randomBytes } from 'node:crypto'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ofMediaFolders } from '../../src/config/data-paths.ts'
import type { MovedBlobs } from '../../src/installation/moved-blob-store.ts'
import { openPlaces, type Place } from '../../src/installation/places.ts'
import type { BlobStore } from '../../src/storage/blob-store.ts'
import { checkHash } from '../../src/storage/copy.ts'
import { blobFolder, createFolders } from '../../src/storage/folder.ts'
import { newBucket, openStore } from '../s3.ts'
import { sampleOf } from '../sample.ts'
import { testBlobStore } from './blob-store-promises.ts'

// Files that move between a folder and a bucket: what a store promises holds meanwhile, in both directions.

const signal = new AbortController().signal

const DIRECTIONS = [
  ['folder', 'bucket'],
  ['bucket', 'folder'],
] as const
for (const [from, to] of sampleOf('directions of a move', DIRECTIONS, 1))
  testBlobStore(`a ${from} whose blobs move to a ${to}`, () => openMoving(from, to))

test('F-215: a blob is read where it was until it was copied whole, and the old place keeps it', async () => {
  const { places, store, from, to } = await openMoving('folder', 'folder')
  await from.put('video/a', Buffer.from('a'))
  expect((await store.read('video/a')).toString()).toBe('a')
  await to.put('video/a', Buffer.from('half of it, left by a server that was killed'))
  expect((await store.read('video/a')).toString()).toBe('a')
  expect(await places.copy('sources', 'video/a', undefined, signal)).toBe('copied')
  await from.remove('video/a')
  expect((await store.read('video/a')).toString()).toBe('a')
})

test('F-268: after a turn new blobs go to the old place, and what is there again is read there', async () => {
  const { places, store, from, to } = await openMoving('folder', 'folder')
  for (const name of ['video/a', 'video/b']) await from.put(name, Buffer.from(name))
  expect(await places.copy('sources', 'video/a', undefined, signal)).toBe('copied')
  await store.put('video/c', Buffer.from('video/c'))
  await store.put('video/a', Buffer.from('repaired'))
  places.turnRound()
  await store.put('video/d', Buffer.from('video/d'))
  expect(await to.stat('video/d')).toBeUndefined()
  for (const name of ['video/a', 'video/c']) expect(await places.copy('sources', name, undefined, signal)).toBe('copied')
  await places.untilUnused()
  places.end()
  for (const name of ['video/a', 'video/c']) await to.remove(name)
  const read = await Promise.all(['a', 'b', 'c', 'd'].map((name) => store.read(`video/${name}`)))
  expect(read.map(String)).toEqual(['repaired', 'video/b', 'video/c', 'video/d'])
})

test('F-216: a blob that is not as it was published is not copied, and one that is missing is lost', async () => {
  const { places, from, to } = await openMoving('folder', 'folder')
  await from.put('video/a', Buffer.from('other bytes'))
  expect(await places.copy('sources', 'video/a', checkHash(randomBytes(32)), signal)).toBe('lost')
  expect(await places.copy('sources', 'video/b', undefined, signal)).toBe('lost')
  expect(await to.stat('video/a')).toBeUndefined()
})

test('F-217: what is removed while it is copied does not come back, and its copy ends', async () => {
  for (const remove of [(store: BlobStore) => store.remove('video/a'), (store: BlobStore) => store.removeAll('video')]) {
    const { places, store, from, to } = await openMoving('folder', 'folder', ({ open }) => ({
      async open(name) {
        const blob = await open(name)
        return {
          ...blob,
          read: async (into, at) => {
            if (at > 0) removed ??= remove(store)
            return blob.read(into, at)
          },
        }
      },
    }))
    let removed: Promise<void> | undefined
    await from.put('video/a', randomBytes(3 * 2 ** 20))
    expect(await places.copy('sources', 'video/a', undefined, signal)).toBe('removed')
    await removed
    expect([await from.stat('video/a'), await to.stat('video/a')]).toEqual([undefined, undefined])
    expect(await Array.fromAsync(store.list('', ''))).toEqual([])
  }
})

test('an upload that began before a move continues in the old place, and a later one begins in the new one', async () => {
  const { store, from, to } = await openMoving('folder', 'folder')
  const counted = await from.appendPart('video/old', 0, [Buffer.from('one')])
  expect(await store.appendPart('video/old', counted, [Buffer.from(' two')])).toBe(7)
  await store.finish('video/old', 7)
  expect((await from.read('video/old')).toString()).toBe('one two')
  await store.finish('video/new', await store.appendPart('video/new', 0, [Buffer.from('new')]))
  expect((await to.read('video/new')).toString()).toBe('new')
  expect(await from.stat('video/new')).toBeUndefined()
})

test('a move waits for what is written to the old place, and for programs that read a file of it', async () => {
  const { store, places, target } = await openMoving('folder', 'folder', undefined, false)
  await store.put('video/a', Buffer.from('a'))
  const [reading, writing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const read = store.withLocalCopy('video/a', () => reading.promise)
  async function* slow() {
    yield Buffer.from('b')
    await writing.promise
  }
  const written = store.put('video/b', [slow()])
  places.begin(target)
  let isUnused = false
  const unused = places.untilUnused().then(() => {
    isUnused = true
  })
  reading.resolve()
  await read
  expect(isUnused).toBe(false)
  writing.resolve()
  await written
  await unused
  expect((await store.read('video/b')).toString()).toBe('b')
})

type Kind = 'folder' | 'bucket'

/** @param change of the old place @param begins false: nothing moves yet */
async function openMoving(
  fromKind: Kind,
  toKind: Kind,
  change: (store: BlobStore) => Partial<BlobStore> = () => ({}),
  begins = true,
) {
  const [old, next] = [await openEngine(fromKind), await openEngine(toKind)]
  const from: BlobStore = { ...old.store, ...change(old.store) }
  const names = new Set<string>()
  const moved: MovedBlobs = {
    find: async (wanted) => new Set(wanted.filter((name) => names.has(name))),
    add: async (name) => void names.add(name),
    remove: async (name) => void names.delete(name),
    clear: async () => names.clear(),
  }
  const placeOf = (id: string, store: BlobStore): Place => ({
    id,
    name: id,
    bucket: undefined,
    files: ofMediaFolders(() => store),
  })
  const [at, target] = [placeOf('', from), placeOf('new', next.store)]
  const places = openPlaces(at, begins ? target : undefined, moved)
  return {
    ...{ places, target, from, to: next.store, store: places.files.sources },
    reopen: () => openPlaces(at, target, moved).files.sources,
    async takeAway() {
      const bringBack = [await old.takeAway(), await next.takeAway()]
      return async () => {
        for (const each of bringBack) await each()
      }
    },
  }
}

async function openEngine(kind: Kind): Promise<{ store: BlobStore; takeAway(): Promise<() => Promise<void>> }> {
  if (kind === 'bucket') {
    const { bucket, proxy } = await newBucket()
    const takeAway = async () => {
      await proxy.stop()
      return () => proxy.listen()
    }
    return { store: await openStore(bucket), takeAway }
  }
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-places-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [root, tmp] = [join(folder, 'sources'), join(folder, 'tmp')]
  await createFolders(root, tmp)
  await writeFile(join(root, '.mounted'), '')
  const takeAway = async () => {
    await rename(root, `${root}.away`)
    return () => rename(`${root}.away`, root)
  }
  return { store: blobFolder(root, tmp), takeAway }
}
