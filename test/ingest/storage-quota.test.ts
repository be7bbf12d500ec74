import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { Owner } from '../client.ts'
import { listFiles, untilFinished } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { audioOf } from '../pipeline/dubs.ts'
import { readRows } from '../rows.ts'
import { STORAGE } from '../s3.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { untilDecided } from './import-host.ts'
import { formBody, post, uploadParts } from './raw-form.ts'

// What an account may store: uploads and imports that do not fit are refused, and leave nothing behind.

const MB = 1_000_000

let site: { address: string; answer: RequestListener; requests: number; close(): void }
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  const server = createServer((request, response) => {
    site.requests += 1
    site.answer(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  site = { address, requests: 0, answer: (_request, response) => response.end(), close: () => server.close() }
  reelgate = await startSharedReelgate({
    video: await makeVideo(),
    env: { REELGATE_OUTBOUND_ALLOW: address, REELGATE_LIMITS: 'off' },
  })
})
afterAll(async () => {
  await reelgate?.remove()
  site?.close()
})

/** An account of the test's own. */
async function newAccount(storageLimitBytes: number) {
  const name = `Account ${randomBytes(4).toString('hex')}`
  const owner = await reelgate.newOwner(name)
  const limitTo = (bytes: number | null) =>
    sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'account set', { account: name, storageLimitBytes: bytes })
  await limitTo(storageLimitBytes)
  return { owner, name, limitTo }
}

/** No media file: it is stored, and encoding adds nothing to it. */
const bytes = (count: number) => new Blob([randomBytes(count)])

async function upload(owner: Owner, sizeBytes: number): Promise<string> {
  const credentials = await owner.credentials('A video')
  expect((await owner.send(credentials, bytes(sizeBytes))).status).toBe(201)
  return credentials.videoId
}

/** In the earlier interface. */
const askV2 = (owner: Owner, path: string, fields: Record<string, string> = {}) =>
  fetch(`${owner.url}/v2/${path}`, {
    method: 'POST',
    body: new URLSearchParams({ clientSecretKey: owner.apiKey, ...fields }),
  })

const importFrom = (owner: Owner, path = '/a.mp4') =>
  owner.call('PUT', '/api/videos/importUrl', { body: { url: `http://${site.address}${path}` } })

async function idOf(response: Response): Promise<string> {
  expect(response.status).toBe(200)
  return ((await response.json()) as { id: string }).id
}

const storedOf = (videoId: string) => listFiles(reelgate, `sources/${videoId}`).catch(() => [])

test('a file that fits exactly is stored; one with a byte more is refused, leaves nothing behind, and its form can be used again', async () => {
  const { owner } = await newAccount(2 * MB)
  await upload(owner, MB)
  const credentials = await owner.credentials('Too large')
  const refused = await owner.send(credentials, bytes(MB + 1))
  expect([refused.status, await refused.text()]).toEqual([
    403,
    expect.stringContaining(
      '<Code>QuotaExceeded</Code><Message>This file does not fit: of the 2.0 MB that this account may store, 1.0 MB are used. Delete videos, also from the trash,',
    ),
  ])
  expect(await storedOf(credentials.videoId)).toEqual([])
  expect(await owner.video(credentials.videoId)).toMatchObject({ status: 'PRE-Upload', totalSizeBytes: 0 })
  expect((await owner.send(credentials, bytes(MB))).status).toBe(201)
})

test('a full account gets no form and no import in either interface, until a video is deleted from the trash, too', async () => {
  const { owner } = await newAccount(MB)
  const videoId = await upload(owner, MB)
  const message = expect.stringMatching(
    /^Nothing more fits: of the 1\.0 MB that this account may store, 1\.0 MB are used\. Delete/,
  )
  for (const response of [await owner.call('PUT', '/api/videos?title=x'), await importFrom(owner)])
    expect([response.status, await response.json()]).toEqual([
      403,
      { message, code: 'over-quota', requestId: expect.any(String) },
    ])
  const importUrl = `importUrl?url=${encodeURIComponent(`http://${site.address}/a.mp4`)}`
  for (const response of [await askV2(owner, 'uploadPolicy', { title: 'x' }), await askV2(owner, importUrl)])
    expect([response.status, await response.json()]).toEqual([403, { error: message }])
  const xml = await askV2(owner, 'uploadPolicy?type=xml', { title: 'x' })
  expect([xml.status, await xml.text()]).toEqual([403, expect.stringContaining('<error>Nothing more fits')])
  expect((await owner.list()).count).toBe(1)

  await owner.call('DELETE', `/api/videos?videos=${videoId}&trash=1`)
  expect((await owner.call('PUT', '/api/videos?title=x')).status).toBe(403)
  await owner.call('DELETE', '/api/trash', { body: { videos: [videoId] } })
  await owner.credentials('After it was deleted')
})

test('an account without a limit, and another one than the full one, store as before', async () => {
  const { owner, limitTo } = await newAccount(1)
  const { owner: other } = await newAccount(MB)
  await limitTo(null)
  expect(await (await owner.call('GET', '/api/account')).json()).toMatchObject({ storageLimitBytes: null })
  await upload(owner, 2 * MB)
  await limitTo(MB)
  expect((await owner.call('PUT', '/api/videos?title=x')).status).toBe(403)
  await upload(other, MB)
})

test('T-27: an added audio track that does not fit is refused, and one that fits counts', async () => {
  const { owner, limitTo } = await newAccount(10 * MB)
  const videoId = await owner.readyVideo(await makeVideo({ seconds: 2 }), 'A video')
  await untilFinished(reelgate, videoId)
  const account = (await (await owner.call('GET', '/api/account')).json()) as { usage: { storedBytes: number } }
  await limitTo(account.usage.storedBytes + MB)
  const audio = audioOf({ owner, videoId })
  const add = async (sizeBytes: number) => {
    const { status } = await audio.send(bytes(sizeBytes), 'language=fr')
    return [status, (await audio.list()).length]
  }
  expect(await add(2 * MB)).toEqual([403, 1])
  expect(await add(0.6 * MB)).toEqual([200, 2])
  expect(await add(0.6 * MB)).toEqual([403, 2])
})

test('the command line sets and removes the limit, and says which sizes it takes', async () => {
  const { owner, name } = await newAccount(1)
  const set = (size: string) => reelgate.cli('account', 'set', name, '--storage-limit', size)
  const limit = async () =>
    ((await (await owner.call('GET', '/api/account')).json()) as { storageLimitBytes: unknown }).storageLimitBytes
  expect([(await set('1.5 GB')).code, await limit()]).toEqual([0, 1_500_000_000])
  const refused = await set('60XB')
  expect([refused.code, await limit()]).toEqual([2, 1_500_000_000])
  expect(refused.stderr).toContain('Expected a size such as 500MB, 50GB or 1.5TB, or none.')
  expect(await set('none')).toMatchObject({ code: 0, stderr: '' })
  expect(await limit()).toBe(null)
})

test.runIf(STORAGE === 'folder')(
  'what is being received counts: of two files that fit only one by one, the second is refused until the first breaks off',
  async () => {
    const { owner } = await newAccount(4 * MB)
    const [slow, quick] = [await owner.credentials('Slow'), await owner.credentials('Quick')]
    const body = formBody(uploadParts(slow, randomBytes(4 * MB), { success_action_status: '201' }))
    const { hostname, port } = new URL(owner.url)
    const socket = connect(Number(port), hostname)
    onTestFinished(() => void socket.destroy())
    const type = 'multipart/form-data; boundary=ReelgateTestBoundary7MA4YWxkTrZu0gW'
    socket.write(`POST /upload HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`)
    socket.write(body.subarray(0, 100_000))
    // Its first bytes are written once it counts.
    await expect.poll(async () => (await listFiles(reelgate, 'tmp')).length).toBeGreaterThan(0)
    const send = async () => (await owner.send(quick, bytes(1.5 * MB))).status
    expect(await send()).toBe(403)
    socket.destroy()
    await expect.poll(send).toBe(201)
  },
)

test('concurrent uploads never exceed the limit together, whether they say how large they are or not', async () => {
  const { owner } = await newAccount(3 * MB)
  const forms = await Promise.all(Array.from({ length: 12 }, (_, n) => owner.credentials(`Video ${n}`)))
  const answers = await Promise.all(
    forms.map((form, n) => {
      const body = formBody(uploadParts(form, randomBytes(MB), { success_action_status: '201' }))
      return post(form.clientPayload.uploadLink, body, n % 2 === 0 ? {} : { chunkBytes: 100_000 })
    }),
  )
  expect(answers.filter((answer) => answer?.status === 201)).toHaveLength(3)
  expect(answers.filter((answer) => answer?.status === 403)).toHaveLength(9)
  const { usage } = (await (await owner.call('GET', '/api/account')).json()) as { usage: { storedBytes: number } }
  expect(usage.storedBytes).toBe(3 * MB)
  const stored = await Promise.all(forms.map(({ videoId }) => storedOf(videoId)))
  expect(stored.filter((files) => files.length > 0)).toHaveLength(3)
})

const HOSTS = [
  ['says its size before', (file: Buffer) => ({ 'Content-Length': file.length })],
  ['says no size', () => ({})],
] as const

test.each(sampleOf('hosts of imports that do not fit', HOSTS, 1))(
  'an import that does not fit and whose host %s fails with the reason, and is fetched when it is tried again',
  async (_, headers) => {
    const { owner, limitTo } = await newAccount(MB)
    const file = randomBytes(2 * MB)
    site.answer = (_request, response) => response.writeHead(200, headers(file)).end(file)
    const id = await idOf(await importFrom(owner))
    const failed = await untilDecided(owner, id)
    expect([failed.status, failed.statusReason]).toEqual([
      'Encoding error',
      expect.stringMatching(/^This file does not fit: of the 1\.0 MB that this account may store, 0 bytes are used\. Delete/),
    ])
    await expect.poll(() => storedOf(id)).toEqual([]) // files are removed after the commit that fails the video
    expect(await (await owner.call('GET', '/api/queue')).json()).toEqual({ rows: [] })

    const requests = site.requests
    await limitTo(2 * MB)
    const retried = await owner.call('POST', `/api/videos/${id}/retry`)
    expect([retried.status, await retried.json()]).toEqual([200, { message: 'Queued' }])
    expect(await untilDecided(owner, id)).toMatchObject({ status: 'Not a media file', totalSizeBytes: 2 * MB })
    expect(site.requests).toBe(requests + 1)
    expect(readRows(reelgate, 'select * from import where video_id = ?', id)).toEqual([]) // its URL is forgotten
  },
)

test('an import that failed for lack of space waits for its owner, also after a restart; while the account is full it is refused again', async () => {
  const { owner, limitTo } = await newAccount(MB)
  const file = randomBytes(2 * MB)
  site.answer = (_request, response) => response.writeHead(200, { 'Content-Length': file.length }).end(file)
  const id = await idOf(await importFrom(owner))
  await untilDecided(owner, id)
  await limitTo(MB / 2)
  await upload(owner, MB / 2)
  const requests = site.requests
  await reelgate.stop()
  await reelgate.restart()
  const refused = await owner.call('POST', `/api/videos/${id}/retry`)
  expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'over-quota' }])
  const other = await reelgate.newOwner('Not its owner')
  expect((await other.call('POST', `/api/videos/${id}/retry`)).status).toBe(404)
  expect(await owner.video(id)).toMatchObject({ status: 'Encoding error' })
  expect(site.requests).toBe(requests)
  await owner.delete([id])
  expect(readRows(reelgate, 'select * from import where video_id = ?', id)).toEqual([])
})

test('a full account gets no new MP4, and keeps what it has: its videos play, and posters are still added', async () => {
  const { owner, videoId } = reelgate
  const limitTo = (storageLimitBytes: number | null) =>
    sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'account set', { account: 'owner', storageLimitBytes })
  await limitTo(1)
  onTestFinished(() => limitTo(null).then(() => undefined))
  const askForMp4 = () => owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'mp4' } })
  const refused = await askForMp4()
  expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'over-quota' }])
  expect((await owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'poster', time: 0 } })).status).toBe(200)
  expect(await reelgate.newViewer().redeem(await owner.issueOtp(videoId))).toMatchObject({ playing: true })
  await limitTo(null)
  const made = (await (await askForMp4()).json()) as { id: number }
  await limitTo(1)
  expect(await (await askForMp4()).json()).toMatchObject({ id: made.id })
})
