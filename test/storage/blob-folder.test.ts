import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rename, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { isHostFailure } from '../../src/errors.ts'
import { BlobLost } from '../../src/storage/blob-store.ts'
import { blobFolder, bulkFolder, createFolders, emptyFolder } from '../../src/storage/folder.ts'
import { testBlobStore } from './blob-store-promises.ts'

testBlobStore('a folder', async () => {
  const { store, root, tmp } = await newFolder()
  return {
    store,
    reopen: () => blobFolder(root, tmp),
    async takeAway() {
      await rename(root, `${root}.away`)
      await mkdir(root) // where its disk is mounted
      return async () => {
        await rmdir(root)
        await rename(`${root}.away`, root)
      }
    },
  }
})

test('nothing unfinished is left of a blob that was put', async () => {
  const { store, tmp } = await newFolder()
  await store.put('video/1/0.m4s', Buffer.from('segment'))
  expect(await readdir(tmp)).toEqual([])
})

test('what is open is read to its end, even when the blob is removed meanwhile', async () => {
  const { store } = await newFolder()
  const bytes = randomBytes(500_000)
  await store.put('video/a', bytes)
  const [whole, part] = [await store.open('video/a'), await store.open('video/a')]
  await store.removeAll('video')
  const into = Buffer.alloc(bytes.length)
  expect(await whole.read(into, 0)).toBe(bytes.length)
  await whole.close()
  expect(into.equals(bytes)).toBe(true)
  expect((await buffer(part.stream({ first: 0, last: bytes.length - 1 }))).equals(bytes)).toBe(true)
})

test('only the server’s own user can look into the folders and files', async () => {
  const { store, root, tmp } = await newFolder()
  await store.put('video/1/0.m4s', Buffer.from('segment'))
  await store.appendPart('video/import', 0, (async function* () {})())
  for (const folder of [root, tmp, join(root, 'video')]) expect((await stat(folder)).mode & 0o777).toBe(0o700)
  for (const file of ['video/1/0.m4s', 'video/import']) expect((await stat(join(root, file))).mode & 0o777).toBe(0o600)
})

test('F-70: a folder that is missing, and one in whose place there is a file, are unreachable: nothing counts as lost', async () => {
  const { store, root } = await newFolder()
  await store.put('video/a', Buffer.from('a'))
  await rename(root, `${root}.away`)
  const error = () => store.read('video/a').catch((error: unknown) => error)
  expect(isHostFailure(await error())).toBe(true)
  await writeFile(root, 'a file')
  expect(isHostFailure(await error())).toBe(true)
  await rm(root)
  await rename(`${root}.away`, root)
  await rm(join(root, 'video/a'))
  await store.put('video/b', Buffer.from('b'))
  expect(await error()).toBeInstanceOf(BlobLost)
})

test('a blob on the same disk is adopted without a copy, its older namesake goes, and again it stays as it is', async () => {
  const [{ store: from, root: source }, { store, root, tmp }] = [await newFolder(), await newFolder()]
  await from.put('video/a', Buffer.from('a'))
  await store.put('video/a', Buffer.from('before'))
  for (const _ of ['first', 'again']) {
    expect(await store.adopt('video/a', from)).toBe(true)
    expect((await store.read('video/a')).toString()).toBe('a')
    expect((await stat(join(root, 'video/a'))).ino).toBe((await stat(join(source, 'video/a'))).ino)
    expect(await readdir(tmp)).toEqual([])
  }
})

test('in an empty folder of a backup, whose disk was read already, a blob is lost', async () => {
  const { root, tmp } = await newFolder()
  await expect(bulkFolder(root, tmp).read('video/a')).rejects.toBeInstanceOf(BlobLost)
})

test('files that are no blobs are neither listed nor in the way', async () => {
  const { store, root } = await newFolder()
  await store.put('video/a', Buffer.from('a'))
  for (const name of ['.hidden', 'lost+found', 'ä']) await writeFile(join(root, name), 'x')
  expect(await Array.fromAsync(store.list('', ''))).toEqual(['video/a'])
})

test('a blob’s folder goes with its last blob, and stays for the others', async () => {
  const { store, root } = await newFolder()
  for (const name of ['video/a', 'video/b']) await store.put(name, Buffer.from(name))
  await store.remove('video/a')
  expect(await readdir(join(root, 'video'))).toEqual(['b'])
  await store.remove('video/b')
  expect(await readdir(root)).toEqual([])
})

test('I8: what a crash left unfinished is gone after the next start', async () => {
  const { tmp } = await newFolder()
  const left = join(tmp, 'half/a/video')
  await mkdir(dirname(left), { recursive: true })
  await writeFile(left, 'half')
  await emptyFolder(tmp)
  expect(await readdir(tmp)).toEqual([])
})

test('I8: what was left unfinished while the server runs is gone after a day, what is being written stays', async () => {
  const { store, tmp } = await newFolder()
  const [old = '', young = '', other = ''] = ['0'.repeat(32), '1'.repeat(32), 'a video.part']
  const nowS = Date.now() / 1000
  for (const name of [old, young, other]) await writeFile(join(tmp, name), 'x')
  for (const name of [old, other]) await utimes(join(tmp, name), nowS - 60, nowS - 60)
  expect(await store.removeUnfinished(nowS - 30)).toBe(1)
  expect((await readdir(tmp)).sort()).toEqual([young, other].sort())
})

async function newFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-blobs-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [root, tmp] = [join(folder, 'sources'), join(folder, 'tmp')]
  await createFolders(root, tmp)
  return { store: blobFolder(root, tmp), root, tmp }
}
