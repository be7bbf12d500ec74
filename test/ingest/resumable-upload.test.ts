import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isSealIntact } from '../../src/crypto/sealed-file.ts'
import { blobOf, getStoredSource, sourceHash } from '../data-folder.ts'
import { footage } from '../footage.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { checksumOf, createTusClient, metadataOf, type TusClient } from './tus-client.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
let tus: TusClient
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  tus = createTusClient(reelgate.owner)
})
afterAll(() => reelgate.remove())

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
/** Of what is stored: its clear bytes, whose hash, size and MACs the row has. */
async function storedHash(videoId: string): Promise<string> {
  const source = getStoredSource(reelgate, videoId)
  const clear = await source.clear()
  expect([source.sizeBytes, source.sha256]).toEqual([clear.length, sourceHash(clear)])
  expect(
    await isSealIntact(Readable.from([await blobOf(reelgate, 'sources', source.blob).read()]), source.seal, source.macs),
  ).toBe(true)
  return sha256(clear)
}

test('F-150: a file that is sent in parts of any size becomes one video with exactly its bytes, its title, folder and tags', async () => {
  const file = await readFile(footage.movieHello)
  const made = await reelgate.owner.call('POST', '/api/videos/folders', { body: { name: 'Lessons' } })
  const { id: folderId } = (await made.json()) as { id: string }
  const metadata = { title: 'Lesson 12 – Light', filename: 'a/b/licht.mp4', folderId, tags: 'new,light', own: 'kept' }
  const { address, videoId, response } = await tus.create(file.length, metadata)
  expect(response.headers.get('Upload-Expires')).toMatch(/GMT$/)
  expect(await reelgate.owner.video(videoId)).toMatchObject({
    title: 'Lesson 12 – Light',
    status: 'PRE-Upload',
    tags: ['new', 'light'],
  })
  let at = 0
  for (const size of [1, 15, 17, 100_003, file.length]) {
    const part = await tus.patch(address, at, file.subarray(at, at + size))
    expect(part.status).toBe(204)
    expect(part.headers.get('Reelgate-Video-Id')).toBe(videoId)
    at = Math.min(file.length, at + size)
    expect(part.headers.get('Upload-Offset')).toBe(String(at))
    const head = await tus.head(address)
    expect(Object.fromEntries(head.headers)).toMatchObject({
      'upload-offset': String(at),
      'upload-length': String(file.length),
      'upload-metadata': metadataOf(metadata),
      'cache-control': 'no-store',
      'tus-resumable': '1.0.0',
    })
  }
  expect(await storedHash(videoId)).toBe(sha256(file))
  expect(await reelgate.owner.until(videoId, 'ready')).toMatchObject({ totalSizeBytes: expect.any(Number) })
  const [row] = await readRows(reelgate, 'select file_name, folder_id from video where id = ?', videoId)
  expect(row).toMatchObject({ file_name: 'licht.mp4', folder_id: folderId })
})

test('F-150: a file may come with the request that begins its upload, whole or its first bytes', async () => {
  const file = randomBytes(70_000)
  for (const first of [file.length, 40_000]) {
    const begun = await tus.call(
      'POST',
      tus.endpoint,
      {
        ...{ 'Upload-Length': String(file.length), 'Upload-Metadata': metadataOf({ filename: 'a.mp4' }) },
        'Content-Type': 'application/offset+octet-stream',
      },
      file.subarray(0, first),
    )
    expect([begun.status, begun.headers.get('Upload-Offset')]).toEqual([201, String(first)])
    const address = new URL(begun.headers.get('Location') ?? '', tus.endpoint).href
    if (first < file.length) expect((await tus.patch(address, first, file.subarray(first))).status).toBe(204)
    expect(await storedHash(begun.headers.get('Reelgate-Video-Id') ?? '')).toBe(sha256(file))
  }
})

test('F-150: a file whose length is not known at first is complete with the part that says it', async () => {
  const file = randomBytes(50_000)
  const { address, videoId } = await tus.create(undefined)
  expect((await tus.head(address)).headers.get('Upload-Defer-Length')).toBe('1')
  expect((await tus.patch(address, 0, file.subarray(0, 20_000))).status).toBe(204)
  expect((await tus.patch(address, 20_000, file.subarray(20_000))).status).toBe(204)
  expect((await reelgate.owner.video(videoId)).status).toBe('PRE-Upload')
  const last = await tus.patch(address, 50_000, '', { 'Upload-Length': '50000' })
  expect([last.status, last.headers.get('Upload-Offset')]).toEqual([204, '50000'])
  expect(await storedHash(videoId)).toBe(sha256(file))
})

test('the key is accepted as Bearer, too, here and nowhere else', async () => {
  const bearer = createTusClient(reelgate.owner, `Bearer ${reelgate.owner.apiKey}`)
  const { address } = await bearer.create(10)
  expect(await bearer.offset(address)).toBe(0)
  expect((await fetch(`${reelgate.url}/api/videos`, { headers: { Authorization: bearer.authorization } })).status).toBe(400)
})

test('OPTIONS says what the server can, without a key', async () => {
  const { status, headers } = await fetch(tus.endpoint, { method: 'OPTIONS' })
  expect(status).toBe(204)
  expect(headers.get('Tus-Version')).toBe('1.0.0')
  expect(headers.get('Tus-Extension')).toBe('creation,creation-with-upload,creation-defer-length,expiration,termination,checksum')
  expect(headers.get('Tus-Checksum-Algorithm')).toBe('sha1,sha256,md5')
  expect(headers.get('Tus-Max-Size')).toBe(String(30 * 2 ** 30))
})

test('an answer to a key has no CORS headers: no page of another site reads it', async () => {
  const { address } = await tus.create(10)
  for (const response of [
    await tus.call('POST', tus.endpoint, { Origin: 'https://other.example', 'Upload-Length': '1' }),
    await tus.call('HEAD', address, { Origin: 'https://other.example' }),
    await tus.call('OPTIONS', tus.endpoint, { Origin: 'https://other.example' }),
  ])
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
})

describe('F-151: a request that breaks the rules is refused in words, and changes nothing:', () => {
  test('U05: a part at another offset: 409 with the right one', async () => {
    const { address } = await tus.create(100)
    await tus.patch(address, 0, 'x'.repeat(30))
    for (const offset of [0, 29, 31, 100]) {
      const refused = await tus.patch(address, offset, 'x')
      expect([refused.status, refused.headers.get('Upload-Offset')]).toEqual([409, '30'])
      expect(await refused.json()).toMatchObject({ code: 'conflict', message: expect.stringContaining('Upload-Offset') })
    }
  })

  test('U09: a part at a finished upload: 403, and its video stays as it is', async () => {
    const { address, videoId } = await tus.create(10)
    expect((await tus.patch(address, 0, '0123456789')).status).toBe(204)
    for (const offset of [0, 10]) {
      const refused = await tus.patch(address, offset, 'x')
      expect([refused.status, await refused.json()]).toEqual([
        403,
        expect.objectContaining({ code: 'forbidden', message: expect.stringContaining('has finished') }),
      ])
    }
    expect((await tus.remove(address)).status).toBe(403)
    expect(await storedHash(videoId)).toBe(sha256(Buffer.from('0123456789')))
  })

  test('U07: more bytes than the length, with and without Content-Length: 413', async () => {
    const { address } = await tus.create(100)
    expect((await tus.patch(address, 0, 'x'.repeat(101))).status).toBe(413)
    const streamed = new Blob(['x'.repeat(101)]).stream()
    expect((await tus.patch(address, 0, streamed)).status).toBe(413)
    expect(await tus.offset(address)).toBe(0)
    const tooLong = await tus.call('POST', tus.endpoint, {
      'Upload-Length': String(31 * 2 ** 30),
      'Upload-Metadata': metadataOf({ title: 'x' }),
    })
    expect(tooLong.status).toBe(413)
  })

  test('U07: an offset or a length that is no size, and a length that was said before: 400', async () => {
    const { address } = await tus.create(100)
    for (const offset of ['-1', '1e1', '9223372036854775808', ''])
      expect((await tus.patch(address, 0, 'x', { 'Upload-Offset': offset })).status, offset).toBe(400)
    const metadata = { 'Upload-Metadata': metadataOf({ title: 'x' }) }
    for (const length of ['-1', '1e1', '9223372036854775808'])
      expect((await tus.call('POST', tus.endpoint, { ...metadata, 'Upload-Length': length })).status, length).toBe(400)
    const deferred = await tus.call('POST', tus.endpoint, { ...metadata, 'Upload-Defer-Length': '1' })
    const open = deferred.headers.get('Location') ?? ''
    expect((await tus.patch(open, 0, 'x', { 'Upload-Length': '10' })).status).toBe(204)
    expect((await tus.patch(open, 1, 'x', { 'Upload-Length': '20' })).status).toBe(400)
    expect((await tus.head(open)).headers.get('Upload-Length')).toBe('10')
  })

  test.each([
    {
      what: 'no Tus-Resumable',
      headers: { 'Tus-Resumable': undefined, 'Upload-Length': '10' },
      status: 412,
      code: 'tus-version',
    },
    { what: 'no length', headers: {}, status: 400, code: 'invalid' },
    { what: 'an empty file', headers: { 'Upload-Length': '0' }, status: 400, code: 'invalid' },
    {
      what: 'metadata that cannot be read',
      headers: { 'Upload-Length': '1', 'Upload-Metadata': 'title !' },
      status: 400,
      code: 'invalid',
    },
    {
      what: 'neither title nor filename',
      headers: { 'Upload-Length': '1', 'Upload-Metadata': metadataOf({ tags: 'a' }) },
      status: 400,
      code: 'invalid',
    },
    {
      what: 'no such folder',
      headers: { 'Upload-Length': '1', 'Upload-Metadata': metadataOf({ title: 'x', folderId: 'none' }) },
      status: 404,
      code: 'not-found',
    },
    {
      what: 'a video to replace, and a title',
      headers: { 'Upload-Length': '1', 'Upload-Metadata': metadataOf({ title: 'x', videoId: '0'.repeat(32) }) },
      status: 400,
      code: 'invalid',
    },
    {
      what: 'no such video to replace',
      headers: { 'Upload-Length': '1', 'Upload-Metadata': metadataOf({ filename: 'x', videoId: '0'.repeat(32) }) },
      status: 404,
      code: 'not-found',
    },
    { what: 'a concatenation', headers: { 'Upload-Length': '1', 'Upload-Concat': 'partial' }, status: 400, code: 'invalid' },
  ])('$what: $status', async ({ headers, status, code }) => {
    const before = await readRows(reelgate, 'select count(*) as count from video')
    const metadata = 'Upload-Metadata' in headers ? {} : { 'Upload-Metadata': metadataOf({ title: 'x' }) }
    const refused = await tus.call('POST', tus.endpoint, { ...metadata, ...headers })
    expect([refused.status, await refused.json()]).toEqual([
      status,
      { code, message: expect.any(String), requestId: expect.any(String) },
    ])
    expect(await readRows(reelgate, 'select count(*) as count from video')).toEqual(before)
  })

  test('U10: an upload of another account, or of a deleted video: 404', async () => {
    const { address, videoId } = await tus.create(10)
    const other = createTusClient(await reelgate.newOwner('another'))
    for (const refused of [await other.head(address), await other.patch(address, 0, 'x'), await other.remove(address)])
      expect(refused.status).toBe(404)
    await reelgate.owner.call('DELETE', `/api/videos?videos=${videoId}`)
    expect((await tus.patch(address, 0, 'x')).status).toBe(404)
  })
})

describe('F-152, U21: a part with a checksum counts only when its bytes match:', () => {
  test.each(['sha1', 'sha256', 'md5'])('%s', async (algorithm) => {
    const file = randomBytes(40_000)
    const { address, videoId } = await tus.create(file.length)
    const half = file.subarray(0, 20_000)
    const refused = await tus.patch(address, 0, half, { 'Upload-Checksum': checksumOf(file, algorithm) })
    expect([refused.status, await refused.json()]).toEqual([460, expect.objectContaining({ code: 'checksum-mismatch' })])
    expect(await tus.offset(address)).toBe(0)
    expect((await tus.patch(address, 0, half, { 'Upload-Checksum': checksumOf(half, algorithm) })).status).toBe(204)
    const rest = file.subarray(20_000)
    expect((await tus.patch(address, 20_000, rest, { 'Upload-Checksum': checksumOf(half, algorithm) })).status).toBe(460)
    expect((await reelgate.owner.video(videoId)).status).toBe('PRE-Upload')
    expect((await tus.patch(address, 20_000, rest, { 'Upload-Checksum': checksumOf(rest, algorithm) })).status).toBe(204)
    expect(await storedHash(videoId)).toBe(sha256(file))
  })

  test('one that is not known or not well formed: 400', async () => {
    const { address } = await tus.create(10)
    for (const checksum of ['crc32 AAAA', 'sha1', 'sha1 !!!'])
      expect((await tus.patch(address, 0, 'x', { 'Upload-Checksum': checksum })).status).toBe(400)
  })
})

test('an upload that is ended leaves no video and no bytes', async () => {
  const { address, videoId } = await tus.create(100_000)
  await tus.patch(address, 0, randomBytes(50_000))
  expect((await tus.remove(address)).status).toBe(204)
  expect((await tus.head(address)).status).toBe(404)
  expect((await reelgate.owner.call('GET', `/api/videos/${videoId}`)).status).toBe(404)
  const log = await reelgate.owner.call('GET', '/api/audit-log')
  const { rows } = (await log.json()) as { rows: unknown[] }
  expect(rows[0]).toMatchObject({ kind: 'video:deleted' })
  expect(JSON.stringify(rows[0])).toContain(videoId)
})
