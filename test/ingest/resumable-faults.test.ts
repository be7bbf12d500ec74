import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { filesOf, getStoredSource, listFiles } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { STORAGE } from '../s3.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { checksumOf, createTusClient, type TusClient } from './tus-client.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
let tus: TusClient
const chance = newChance('resumable uploads')
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  tus = createTusClient(reelgate.owner)
})
afterAll(() => reelgate.remove())

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const storedHash = async (videoId: string) => sha256(await getStoredSource(reelgate, videoId).clear())
const receivedBytes = (videoId: string) =>
  readRows<{ bytes: number }>(reelgate, 'select received_bytes as bytes from resumable_upload where video_id = ?', videoId)[0]
    ?.bytes

async function storedBytes(videoId: string): Promise<number> {
  const files = (await listFiles(reelgate, 'sources')).filter(
    (name) => name.startsWith(`${videoId}/`) && name.endsWith('.sealed'),
  )
  const sizes = await Promise.all(files.map(async (name) => (await filesOf(reelgate).sources.stat(name))?.sizeBytes ?? 0))
  return sizes.reduce((sum, size) => sum + size, 0)
}

test('F-153, U08: a file whose connection is cut at random places is, after each resumption from the offset, whole, and nothing that was acknowledged is sent twice', async () => {
  const file = randomBytes(3_000_000)
  const { address, videoId } = await tus.create(file.length)
  let acknowledged = 0
  for (let cut = 0; cut < rounds(8, 60); cut++) {
    const at = await tus.offsetWhenFree(address)
    expect(at).toBeGreaterThanOrEqual(acknowledged)
    const left = file.length - at
    const bytes = file.subarray(at, at + Math.floor(chance.between(0, Math.min(left, 100_000))))
    const withChecksum = chance.between(0, 1) < 0.3
    const socket = await tus.beginPart(address, at, left, bytes, withChecksum ? [`Upload-Checksum: ${checksumOf(bytes)}`] : [])
    if (chance.between(0, 1) < 0.5) socket.end()
    else socket.resetAndDestroy()
    await once(socket, 'close')
    acknowledged = await tus.offsetWhenFree(address)
    expect(acknowledged).toBeLessThanOrEqual(at + bytes.length)
    if (withChecksum) expect(acknowledged).toBe(at)
  }
  const last = await tus.offsetWhenFree(address)
  expect((await tus.patch(address, last, file.subarray(last))).status).toBe(204)
  expect(await storedHash(videoId)).toBe(sha256(file))
  const files = (await listFiles(reelgate, 'sources')).filter((name) => name.endsWith('.sealed'))
  expect(files).toHaveLength(readRows(reelgate, 'select 1 from source').length)
})

test('F-153: what came of a part that breaks off is kept to the last byte', async () => {
  const { address } = await tus.create(100_000)
  const socket = await tus.beginPart(address, 0, 100_000, randomBytes(50_001))
  const hasBegun = ({ status, headers }: Response) => status === 423 || headers.get('Upload-Offset') === '50001'
  await expect.poll(async () => hasBegun(await tus.head(address))).toBe(true)
  socket.end()
  await once(socket, 'close')
  expect(await tus.offsetWhenFree(address)).toBe(50_001)
})

test('F-154: a connection that brings bytes keeps the upload, and others get 423; one that brings none for a second loses it, with what it brought', async () => {
  const file = randomBytes(200_000)
  const { address, videoId } = await tus.create(file.length)
  let sent = 70_000
  const holder = await tus.beginPart(address, 0, file.length, file.subarray(0, sent))
  for (let isHeld = false; !isHeld; sent += 100) {
    holder.write(file.subarray(sent, sent + 100))
    const { status, headers } = await tus.head(address)
    isHeld = status === 423
    if (isHeld) expect(headers.get('Retry-After')).toBe('1')
    else expect(headers.get('Upload-Offset'), 'before the part has begun').toBe('0')
  }
  expect(await tus.offsetWhenFree(address)).toBe(sent)
  // The one that lost it can write nothing more.
  holder.write(randomBytes(1000))
  expect((await tus.patch(address, sent, file.subarray(sent))).status).toBe(204)
  holder.destroy()
  expect(await storedHash(videoId)).toBe(sha256(file))
})

test('F-154, U06: two tabs that send one upload at the same time make one whole file', async () => {
  const file = randomBytes(400_000)
  const { address, videoId } = await tus.create(file.length)
  async function sendAll(): Promise<void> {
    for (;;) {
      const { status, headers } = await tus.head(address)
      const at = Number(headers.get('Upload-Offset'))
      if (status === 200 && at === file.length) return
      if (status === 200) await tus.patch(address, at, file.subarray(at, at + 30_000))
    }
  }
  await Promise.all([sendAll(), sendAll()])
  expect(await storedHash(videoId)).toBe(sha256(file))
})

test('F-155: an account that is full is refused before the first byte, and unfinished uploads count with all they announced until they are ended', async () => {
  const owner = await reelgate.newOwner('nearly full')
  const own = createTusClient(owner)
  const { id } = (await (await owner.call('GET', '/api/account')).json()) as { id: string }
  changeRows(reelgate, 'update account set storage_limit_bytes = 1000 where id = ?', id)
  const first = await own.create(700)
  await expect(own.create(400)).rejects.toThrow(/403.*over-quota/)
  expect((await own.patch(first.address, 0, randomBytes(700))).status).toBe(204)
  const second = await own.create(300)
  expect((await own.remove(second.address)).status).toBe(204)
  const unknown = await own.create(undefined)
  const refused = await own.patch(unknown.address, 0, randomBytes(301))
  expect([refused.status, await refused.json()]).toEqual([403, expect.objectContaining({ code: 'over-quota' })])
  expect((await own.patch(unknown.address, 0, randomBytes(300), { 'Upload-Length': '300' })).status).toBe(204)
})

test('F-173: a part whose size is not announced is held to the account’s limit, with and without a checksum, and nothing of what is refused stays on the disk', async () => {
  const owner = await reelgate.newOwner('full before the end')
  const own = createTusClient(owner)
  const { id } = (await (await owner.call('GET', '/api/account')).json()) as { id: string }
  const unannounced = (bytes: Buffer<ArrayBuffer>) => new Blob([bytes]).stream()
  for (const { limitBytes, sentBytes, headers } of [
    { limitBytes: 1000, sentBytes: 5000, headers: {} },
    { limitBytes: 17 * 2 ** 20, sentBytes: 40 * 2 ** 20, headers: { 'Upload-Checksum': checksumOf(Buffer.alloc(1)) } },
  ]) {
    changeRows(reelgate, 'update account set storage_limit_bytes = ? where id = ?', limitBytes, id)
    const { address, videoId } = await own.create(undefined)
    const refused = await own.patch(address, 0, unannounced(Buffer.alloc(sentBytes)), headers)
    expect([refused.status, await refused.json()]).toEqual([403, expect.objectContaining({ code: 'over-quota' })])
    expect([await own.offsetWhenFree(address), await storedBytes(videoId)]).toEqual([0, 0])

    const wrong = await own.patch(address, 0, Buffer.alloc(800), { 'Upload-Checksum': checksumOf(Buffer.alloc(1)) })
    expect([wrong.status, await storedBytes(videoId)]).toEqual([460, 0])
    expect((await own.patch(address, 0, Buffer.alloc(800), { 'Upload-Length': '800' })).status).toBe(204)
    await owner.delete([videoId])
  }
})

test('F-156: an upload that has expired is gone, with its video and its bytes; one that got further in time is not', async () => {
  const [kept, expired] = [await tus.create(1000), await tus.create(1000)]
  for (const { address } of [kept, expired]) await tus.patch(address, 0, randomBytes(500))
  changeRows(reelgate, 'update resumable_upload set expires_at_s = 1 where video_id = ?', expired.videoId)
  const refused = await tus.patch(expired.address, 500, randomBytes(10))
  expect([refused.status, await refused.json()]).toEqual([410, expect.objectContaining({ code: 'gone' })])
  await reelgate.stop()
  await reelgate.restart() // which sweeps
  await expect.poll(async () => (await reelgate.owner.call('GET', `/api/videos/${expired.videoId}`)).status).toBe(404)
  expect((await tus.head(expired.address)).status).toBe(404)
  await expect.poll(async () => (await listFiles(reelgate, 'sources')).some((name) => name.includes(expired.videoId))).toBe(false)
  expect(await tus.offset(kept.address)).toBe(500)
  expect(receivedBytes(expired.videoId)).toBeUndefined()
})

test('F-157: bytes that are lost, as after a restored backup, are asked for again from the start, by HEAD and by 409', async () => {
  const file = randomBytes(300_000)
  const begin = async () => {
    const { address, videoId } = await tus.create(file.length)
    await tus.patch(address, 0, file.subarray(0, 200_000))
    changeRows(reelgate, `update resumable_upload set file = video_id || '/${'0'.repeat(32)}.sealed' where video_id = ?`, videoId)
    return { address, videoId }
  }
  const [asking, sending] = [await begin(), await begin()]
  expect(await tus.offset(asking.address)).toBe(0)
  const refused = await tus.patch(sending.address, 200_000, file.subarray(200_000))
  expect([refused.status, refused.headers.get('Upload-Offset')]).toEqual([409, '0'])
  expect(await tus.offset(sending.address)).toBe(0)
  for (const { address, videoId } of [asking, sending]) {
    expect((await tus.patch(address, 0, file)).status).toBe(204)
    expect(await storedHash(videoId)).toBe(sha256(file))
  }
})

test.runIf(STORAGE === 'folder')(
  'F-175: an upload whose video is deleted while a long part of it arrives is gone, and nothing of it stays',
  async () => {
    const { address, videoId } = await tus.create(36 * 2 ** 20)
    const { open } = fs
    let isDeleted = false
    // Between two of the times at which what came is saved.
    const opening = vi.spyOn(fs, 'open').mockImplementation(async (path, ...how) => {
      if (!isDeleted && String(path).includes(videoId) && (receivedBytes(videoId) ?? 0) > 0) {
        isDeleted = true
        await reelgate.owner.delete([videoId])
        await expect.poll(() => storedBytes(videoId)).toBe(0)
      }
      return open(path, ...how)
    })
    syncBuiltinESMExports()
    onTestFinished(() => {
      opening.mockRestore()
      syncBuiltinESMExports()
    })
    const answer = await tus.patch(address, 0, Buffer.alloc(36 * 2 ** 20))
    expect([answer.status, await answer.json()]).toEqual([404, expect.objectContaining({ code: 'not-found' })])
    expect([isDeleted, await storedBytes(videoId)]).toEqual([true, 0])
  },
)

test('F-176: the last part of a file that may not replace another now leaves none of its bytes, and succeeds later', async () => {
  const videoId = await reelgate.owner.readyVideo(await makeVideo())
  const file = randomBytes(5000)
  const { address } = await tus.create(file.length, { videoId, filename: 'a.mp4' })
  expect((await tus.patch(address, 0, file.subarray(0, 1000))).status).toBe(204)
  const storedBefore = await storedBytes(videoId)
  changeRows(reelgate, "update video set status = 'Encoding error' where id = ?", videoId)
  expect((await tus.patch(address, 1000, file.subarray(1000))).status).toBe(409)
  if (STORAGE === 'folder') expect(await storedBytes(videoId)).toBe(storedBefore) // a bucket cuts nothing off an object before it is continued
  expect(await tus.offset(address)).toBe(1000)
  changeRows(reelgate, "update video set status = 'ready' where id = ?", videoId)
  expect((await tus.patch(address, 1000, file.subarray(1000))).status).toBe(204)
})
