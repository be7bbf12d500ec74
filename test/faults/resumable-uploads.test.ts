import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { getStoredSource, listFiles } from '../data-folder.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { startNginx } from '../nginx.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { newMovableClock } from './faked-clock.ts'
import { mountSmallDisk } from './small-disk.ts'

// What happens to a file that is sent in parts while its server’s disk, account, clock or proxy fails.

const MIB = 2 ** 20
const HOUR_S = 3600

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const storedHash = async (reelgate: Reelgate, videoId: string) => sha256(await getStoredSource(reelgate, videoId).clear())

test('X30: a part that fills the disk is refused in words, and gives back what it took; nothing acknowledged is lost, and the file continues when there is space', async () => {
  const disk = await mountSmallDisk(40)
  const reelgate = await startReelgate({ within: disk.path, database: 'sqlite', storage: 'folder' })
  const tus = createTusClient(reelgate.owner)
  const file = randomBytes(9 * MIB)
  const { address, videoId } = await tus.create(undefined)
  expect((await tus.patch(address, 0, file.subarray(0, MIB))).status).toBe(204)
  const [stored = ''] = (await listFiles(reelgate, 'sources')).filter((name) => name.endsWith('.sealed'))
  const sizeBytes = async () => (await stat(join(reelgate.dataDir, 'sources', stored))).size
  expect(await sizeBytes()).toBe(MIB)

  // Its size is not announced, and room is checked every 16 MiB: the disk is found to be full while it is written.
  await disk.leave(8 * MIB)
  const endless = ReadableStream.from(
    (async function* () {
      for (let n = 0; n < 60; n++) yield new Uint8Array(MIB)
    })(),
  )
  const refused = await tus.patch(address, MIB, endless).catch(() => undefined)
  if (refused) {
    expect([refused.status, await refused.json()]).toEqual([
      503,
      expect.objectContaining({ message: expect.stringMatching(/no room|is full/) }),
    ])
    expect(refused.headers.get('Retry-After')).toMatch(/^\d+$/)
  }
  const at = await tus.offsetWhenFree(address)
  expect(at).toBeGreaterThanOrEqual(MIB)
  expect(await sizeBytes()).toBe(at)
  expect(reelgate.output()).toContain('ENOSPC')
  expect(reelgate.output()).not.toContain('"stack"')
  expect((await tus.remove(address)).status).toBe(204)
  await expect.poll(async () => (await listFiles(reelgate, 'sources')).filter((name) => name.includes(videoId))).toEqual([])
  await disk.makeRoom()

  const again = await tus.create(file.length)
  expect((await tus.patch(again.address, 0, file.subarray(0, MIB))).status).toBe(204)
  await disk.leave(MIB)
  expect((await tus.patch(again.address, MIB, file.subarray(MIB))).status).toBe(503)
  expect(await tus.offset(again.address)).toBe(MIB)
  await disk.makeRoom()
  expect((await tus.patch(again.address, MIB, file.subarray(MIB))).status).toBe(204)
  expect(await storedHash(reelgate, again.videoId)).toBe(sha256(file))
})

test('X30: an account whose limit is lowered while a file is sent refuses its next part, and takes it when there is room again', async () => {
  const reelgate = await startReelgate()
  const tus = createTusClient(reelgate.owner)
  const file = randomBytes(300_000)
  const { address, videoId } = await tus.create(file.length)
  expect((await tus.patch(address, 0, file.subarray(0, 100_000))).status).toBe(204)
  changeRows(reelgate, 'update account set storage_limit_bytes = 200000')
  const refused = await tus.patch(address, 100_000, file.subarray(100_000))
  expect([refused.status, await refused.json()]).toEqual([403, expect.objectContaining({ code: 'over-quota' })])
  expect(await tus.offset(address)).toBe(100_000)
  changeRows(reelgate, 'update account set storage_limit_bytes = 300000')
  expect((await tus.patch(address, 100_000, file.subarray(100_000))).status).toBe(204)
  expect(await storedHash(reelgate, videoId)).toBe(sha256(file))
})

test('X31: a clock that jumps by a day, ahead or back, while a file is sent and while the server is down neither ends the upload nor loses a byte', async () => {
  const clock = await newMovableClock('wall clock')
  onTestFinished(clock.remove)
  const reelgate = await startReelgate({ env: clock.env, storage: 'folder' }) // a bucket refuses what such a clock has signed (F-192)
  const tus = createTusClient(reelgate.owner)
  const file = randomBytes(700_000)
  const { address, videoId } = await tus.create(file.length)
  let at = 0
  for (const aheadS of [25 * HOUR_S, -25 * HOUR_S, 0, 10_000 * HOUR_S, 0]) {
    await clock.set(aheadS)
    expect(await tus.offset(address)).toBe(at)
    const part = await tus.patch(address, at, file.subarray(at, at + 100_000))
    expect(part.status).toBe(204)
    const leftS = Date.parse(part.headers.get('Upload-Expires') ?? '') / 1000 - (Date.now() / 1000 + aheadS)
    expect(Math.abs(leftS - 24 * HOUR_S)).toBeLessThan(600)
    at += 100_000
  }
  await reelgate.stop()
  await clock.set(-25 * HOUR_S)
  await reelgate.restart()
  expect(await tus.offset(address)).toBe(at)
  expect((await tus.patch(address, at, file.subarray(at))).status).toBe(204)
  expect(await storedHash(reelgate, videoId)).toBe(sha256(file))
  expect(reelgate.output()).not.toMatch(/"level":[56]0/)
})

test('X32: an upload whose time ends while it is being sent keeps what came and continues; one that no client sends is removed', async () => {
  const clock = await newMovableClock('time')
  onTestFinished(clock.remove)
  const reelgate = await startReelgate({ env: clock.env, database: 'sqlite', storage: 'folder' })
  const tus = createTusClient(reelgate.owner)
  const file = randomBytes(300_000)
  const [sent, left] = [await tus.create(file.length), await tus.create(file.length)]
  expect((await tus.patch(left.address, 0, file.subarray(0, 1000))).status).toBe(204)
  const socket = await tus.beginPart(sent.address, 0, file.length, file.subarray(0, 100_000))
  await expect.poll(async () => (await tus.head(sent.address)).status).toBe(423)
  await clock.set(25 * HOUR_S)
  await expect.poll(() => readRows(reelgate, 'select video_id from resumable_upload')).toEqual([{ video_id: sent.videoId }])
  socket.destroy()
  if (!socket.closed) await once(socket, 'close')
  await expect.poll(async () => (await listFiles(reelgate, 'sources')).some((name) => name.includes(left.videoId))).toBe(false)
  const at = await tus.offsetWhenFree(sent.address)
  expect(at).toBe(100_000)
  expect((await tus.patch(sent.address, at, file.subarray(at))).status).toBe(204)
  expect(await storedHash(reelgate, sent.videoId)).toBe(sha256(file))
})

test('X33: through nginx that waits no longer for a server that stands still: 504, and the file continues, whole', async () => {
  const reelgate = await startReelgate()
  const nginx = await startNginx(() => ({
    http: 'proxy_read_timeout 1s; proxy_connect_timeout 1s; proxy_send_timeout 1s;',
    location: `proxy_pass ${reelgate.url};`,
  }))
  onTestFinished(() => nginx.remove())
  const tus = createTusClient({ url: nginx.url, apiKey: reelgate.owner.apiKey })
  const file = randomBytes(400_000)
  const { address, videoId } = await tus.create(file.length)
  expect((await tus.patch(address, 0, file.subarray(0, 100_000))).status).toBe(204)
  process.kill(reelgate.pid, 'SIGSTOP')
  const refused = await tus.patch(address, 100_000, file.subarray(100_000, 250_000))
  process.kill(reelgate.pid, 'SIGCONT')
  expect(refused.status).toBe(504)
  // What nginx had sent on may have arrived.
  expect([100_000, 250_000]).toContain(await tus.offsetWhenFree(address))
  // On a busy machine nginx may end what follows, too: then a client asks again.
  await expect
    .poll(async () => {
      const at = await tus.offsetWhenFree(address)
      if (at < file.length) await tus.patch(address, at, file.subarray(at))
      return at
    })
    .toBe(file.length)
  expect(await storedHash(reelgate, videoId)).toBe(sha256(file))
})
