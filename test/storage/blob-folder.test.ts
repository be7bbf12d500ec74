import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import {
  type BlobFolder,
  blobPath,
  openBlobFolder,
  putBlob,
  putBlobStream,
  removeBlobAndEmptyFolders,
  removeBlobs,
  removeUnfinished,
} from '../../src/storage/folder.ts'

test('a blob is whole under its name, and nothing unfinished is left', async () => {
  const blobs = await newBlobs()
  await putBlob(blobs, 'video/1/0.m4s', Buffer.from('segment'))
  expect(await readFile(blobPath(blobs, 'video/1/0.m4s'), 'utf8')).toBe('segment')
  expect(await readdir(blobs.tmp)).toEqual([])
})

test('only the server’s own user can look into the folders and files', async () => {
  const blobs = await newBlobs()
  await putBlob(blobs, 'video/1/0.m4s', Buffer.from('segment'))
  for (const folder of [blobs.root, blobs.tmp, join(blobs.root, 'video')]) expect((await stat(folder)).mode & 0o777).toBe(0o700)
  expect((await stat(blobPath(blobs, 'video/1/0.m4s'))).mode & 0o777).toBe(0o600)
})

test('I8: a stream that breaks leaves neither a blob nor a part of one', async () => {
  const blobs = await newBlobs()
  const broken = Readable.from(
    (async function* () {
      yield Buffer.from('half a video')
      throw new Error('the client went away')
    })(),
  )
  await expect(putBlobStream(blobs, 'video/source', [broken])).rejects.toThrow('the client went away')
  expect([await readdir(blobs.tmp), await readdir(blobs.root)]).toEqual([[], []])
})

test('F-09: a stream that is ended before its file is open leaves nothing, and no error that nobody handles', async () => {
  const blobs = await newBlobs()
  const ending = new AbortController()
  const writing = putBlobStream(blobs, 'video/mp4', [Readable.from(['a part'])], ending.signal)
  ending.abort()
  await expect(writing).rejects.toThrow('The operation was aborted')
  expect([await readdir(blobs.tmp), await readdir(blobs.root)]).toEqual([[], []])
})

test('U11: no name leads out of the folder', async () => {
  const blobs = await newBlobs()
  for (const name of [
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
  ]) {
    expect(() => blobPath(blobs, name)).toThrow('not the name of a blob')
  }
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('.', '/', 'a', '\0', '\\', '-', '%') }), (name) => {
      try {
        expect(blobPath(blobs, name).startsWith(`${blobs.root}/`)).toBe(true)
      } catch (error) {
        expect(String(error)).toContain('not the name of a blob')
      }
    }),
  )
})

test('removing what is not there is as good as removing it', async () => {
  const blobs = await newBlobs()
  await putBlob(blobs, 'video/1/0.m4s', Buffer.from('segment'))
  for (const _ of [1, 2]) await removeBlobs(blobs, 'video')
  expect(await readdir(blobs.root)).toEqual([])
})

test('a blob’s folder goes with its last blob, and stays for the others', async () => {
  const blobs = await newBlobs()
  for (const name of ['video/a', 'video/b']) await putBlob(blobs, name, Buffer.from(name))
  await removeBlobAndEmptyFolders(blobs, 'video/a')
  expect(await readdir(join(blobs.root, 'video'))).toEqual(['b'])
  await removeBlobAndEmptyFolders(blobs, 'video/b')
  expect(await readdir(blobs.root)).toEqual([])
})

test('I8: what a crash left unfinished is gone after the next start', async () => {
  const blobs = await newBlobs()
  await putBlob({ root: blobs.tmp, tmp: blobs.root }, 'half/a/video', Buffer.from('half'))
  await removeUnfinished(blobs)
  expect(await readdir(blobs.tmp)).toEqual([])
})

async function newBlobs(): Promise<BlobFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-blobs-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return openBlobFolder(join(folder, 'sources'), join(folder, 'tmp'))
}
