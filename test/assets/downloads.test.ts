import { once } from 'node:events'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { createOwner, type Owner } from '../client.ts'
import { blobOf, getStoredSource } from '../data-folder.ts'
import { findFreePort } from '../free-port.ts'
import { sendRaw } from '../raw-http.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { addFile, listFiles, makeImage, SRT } from './sample-files.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
let publicUrl: string
let videoId: string
let video: Buffer
beforeAll(async () => {
  const port = await findFreePort()
  publicUrl = `http://localhost:${port}`
  const path = await makeVideo({ seconds: 20, size: '640x360' })
  reelgate = await startSharedReelgate({
    env: { PORT: String(port), REELGATE_PUBLIC_URL: publicUrl },
    video: path,
    title: 'Light & shadow',
  })
  video = await readFile(path)
  videoId = reelgate.videoId
})
afterAll(() => reelgate.remove())

/** The short-lived address of a file. */
async function addressOf(id: string, fileId: number): Promise<string> {
  const response = await reelgate.owner.call('GET', `/api/videos/${id}/files/${fileId}`)
  const { redirect } = (await response.json()) as { redirect: string }
  expect([response.status, redirect.startsWith(`${publicUrl}/download/`)]).toEqual([200, true])
  return redirect
}

async function fileOf(id: string, type: string) {
  const file = (await listFiles(reelgate.owner, id)).find((found) => found.type === type)
  if (!file) throw new Error(`no ${type}`)
  return file
}

/** Asks, and breaks the connection so many milliseconds later. */
async function hangUp({ hostname, port, pathname }: URL, afterMs: number): Promise<void> {
  const socket = connect(Number(port), hostname).on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await pause(afterMs)
  socket.resetAndDestroy()
}

const command = async <Reply>(name: CommandName, args: unknown) =>
  (await sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)) as Reply

/** What is no video has an original, too, and nothing is encoded. @returns its id */
async function uploadLetter(owner: Owner, title: string): Promise<string> {
  const credentials = await owner.credentials(title)
  expect((await owner.send(credentials, new Blob(['Dear diary, this is not a video. '.repeat(100)]))).status).toBe(201)
  await owner.until(credentials.videoId, 'Not a media file')
  return credentials.videoId
}

const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

describe('the original', () => {
  test('is downloaded byte for byte, whole and in parts', async () => {
    const address = await addressOf(videoId, (await fileOf(videoId, 'original')).id)
    const whole = await fetch(address)
    expect(whole.status).toBe(200)
    expect((await bytesOf(whole)).equals(video)).toBe(true)
    const mib = 2 ** 20
    const parts = [
      [0, 0],
      [0, 15],
      [15, 16],
      [17, 5000],
      [video.length - 1, video.length - 1],
      [video.length - 40, video.length - 1],
    ]
    if (video.length > mib + 100) parts.push([mib - 1, mib], [mib, mib + 40], [mib - 17, video.length - 1])
    for (const [first = 0, last = 0] of parts) {
      const part = await fetch(address, { headers: { Range: `bytes=${first}-${last}` } })
      expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes ${first}-${last}/${video.length}`])
      expect((await bytesOf(part)).equals(video.subarray(first, last + 1))).toBe(true)
    }
    expect((await fetch(address, { headers: { Range: `bytes=${video.length}-` } })).status).toBe(416)
    const head = await fetch(address, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(video.length)])
  })

  test('is sent whole if If-Range names another version', async () => {
    const address = await addressOf(videoId, (await fileOf(videoId, 'original')).id)
    const etag = (await fetch(address, { method: 'HEAD' })).headers.get('etag') ?? ''
    const ask = (ifRange: string) => fetch(address, { headers: { Range: 'bytes=0-9', 'If-Range': ifRange } })
    expect((await ask(etag)).status).toBe(206)
    expect((await ask('"another"')).status).toBe(200)
    expect((await ask('Sat, 21 Nov 2026 21:00:00 GMT')).status).toBe(200)
  })

  test('M19: is never a page of this server, whatever it is', async () => {
    const response = await fetch(await addressOf(videoId, (await fileOf(videoId, 'original')).id))
    await response.body?.cancel()
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'no-store',
      'content-disposition': `attachment; filename="video.mp4"; filename*=UTF-8''video.mp4`,
    })
  })

  test('P17: a playback session opens no download; the URL works by itself, and no other can be made from it', async () => {
    const { id } = await fileOf(videoId, 'original')
    const viewer = reelgate.newViewer()
    await viewer.redeem(await reelgate.owner.issueOtp(videoId))
    expect((await fetch(`${reelgate.url}/api/videos/${videoId}/files/${id}`)).status).toBe(401)
    for (const argument of [String(id), 'original', 'video.mp4'])
      expect((await viewer.call('file', argument)).status).not.toBe(200)
    const address = await addressOf(videoId, id)
    const [, exp = '', sig = '', keyId = ''] = /download\/(\d+)\/([\w-]+)\/(\w+)\//.exec(address) ?? []
    const other = await fileOf(videoId, 'poster')
    const forged = [
      `${exp}/${sig}/${keyId}/${other.id}`,
      `${Number(exp) + 1}/${sig}/${keyId}/${id}`,
      `${exp}/${sig}/${'0'.repeat(32)}/${id}`,
      `${exp}/${sig.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))}/${keyId}/${id}`,
    ]
    for (const path of forged) expect((await fetch(`${reelgate.url}/download/${path}`)).status).toBe(403)
  })

  test('K17: needs a permission of its own; its URL becomes invalid with the key that requested it; the audit log names it', async () => {
    const { id } = await fileOf(videoId, 'original')
    const poster = await fileOf(videoId, 'poster')
    type Key = { keyId: string; apiKey: string }
    const newKey = (permission: string) =>
      command<Key>('key create', { account: 'owner', name: permission, permissions: [permission] })
    const ask = ({ apiKey }: { apiKey: string }, fileId: number) =>
      createOwner(reelgate.url, apiKey).call('GET', `/api/videos/${videoId}/files/${fileId}`)
    const [reader, downloader] = [await newKey('viewer'), await newKey('downloader')]
    expect((await ask(reader, id)).status).toBe(403)
    expect((await ask(reader, poster.id)).status).toBe(200)
    expect((await ask(downloader, poster.id)).status).toBe(403)
    const { redirect } = (await (await ask(downloader, id)).json()) as { redirect: string }
    expect((await fetch(redirect)).status).toBe(200)

    const events = await command<{ kind: string; actor: string }[]>('audit', { limit: 100 })
    const actors = [reader.keyId, downloader.keyId]
    expect(events.filter(({ kind, actor }) => kind === 'file:downloaded' && actors.includes(actor))).toEqual([
      expect.objectContaining({ actor: downloader.keyId, subject: videoId, details: { fileId: id, type: 'original' } }),
    ])
    await command('key revoke', { keyId: downloader.keyId })
    expect((await fetch(redirect)).status).toBe(403)
    expect((await fetch(redirect, { method: 'HEAD' })).status).toBe(403)
  })

  test('a client that disconnects before the first byte leaves no file open, and the server continues', async () => {
    const address = new URL(await addressOf(videoId, (await fileOf(videoId, 'original')).id))
    for (let i = 0; i < rounds(60, 200); i++) await hangUp(address, i % 4)
    const openFiles = async () => {
      const fds = await readdir(`/proc/${reelgate.pid}/fd`)
      const paths = await Promise.all(fds.map((fd) => readlink(`/proc/${reelgate.pid}/fd/${fd}`).catch(() => '')))
      return paths.filter((path) => path.includes('/sources/'))
    }
    await expect.poll(openFiles).toEqual([])
    expect((await fetch(address)).status).toBe(200)
  })

  test('a changed byte on the disk is found before it is sent', async () => {
    const id = await uploadLetter(reelgate.owner, 'It rots')
    const address = await addressOf(id, (await fileOf(id, 'original')).id)
    const stored = blobOf(reelgate, 'sources', getStoredSource(reelgate, id).blob)
    const sealed = await stored.read()
    sealed[100] = (sealed[100] ?? 0) ^ 1
    await stored.write(sealed)
    expect((await fetch(address)).status).toBe(503)
  })
})

test('X12: the redirect uses the configured URL, not the request’s Host', async () => {
  const { id } = await fileOf(videoId, 'original')
  const { text } = await sendRaw(
    reelgate.url,
    `GET /api/videos/${videoId}/files/${id}`,
    [`Authorization: Apisecret ${reelgate.owner.apiKey}`, 'X-Forwarded-Host: evil.example', 'Forwarded: host=evil.example'],
    '',
    { host: 'evil.example' },
  )
  expect(text).toContain(`"redirect":"${publicUrl}/download/`)
  expect(text).not.toContain('evil')
})

test('F02: a file that is not for downloads has no address, and an unknown number is 404', async () => {
  for (const { id, isDownloadable } of await listFiles(reelgate.owner, videoId)) {
    const { status } = await reelgate.owner.call('GET', `/api/videos/${videoId}/files/${id}`)
    expect(status).toBe(isDownloadable === 1 ? 200 : 403)
  }
  const stranger = await reelgate.newOwner('A stranger')
  const { id } = await fileOf(videoId, 'original')
  const mine = (await stranger.credentials('Mine')).videoId
  for (const path of [`${videoId}/files/${id}`, `${mine}/files/${id}`, `${mine}/files/-1`, `${mine}/files/9223372036854775808`])
    expect([path, (await stranger.call('GET', `/api/videos/${path}`)).status]).toEqual([path, 404])
})

test('posters and captions are downloaded in their converted form', async () => {
  const { videoId: id } = await reelgate.owner.credentials('Made')
  await addFile(reelgate.owner, id, await makeImage('640x360'))
  await addFile(reelgate.owner, id, SRT, 'en')
  const poster = await fetch(await addressOf(id, (await fileOf(id, 'poster')).id))
  expect([poster.headers.get('content-type'), (await bytesOf(poster)).toString('hex', 0, 3)]).toEqual(['image/jpeg', 'ffd8ff'])
  const caption = await fetch(await addressOf(id, (await fileOf(id, 'caption')).id))
  expect(caption.headers.get('content-disposition')).toContain('Made [EN].vtt')
  expect(await caption.text()).toBe('WEBVTT\n\n00:00:00.500 --> 00:00:02.500\nA first <b>line</b> &amp; more\n')
})

test('K16: a download URL opens nothing while its account is disabled', async () => {
  const owner = await reelgate.newOwner('Downloads end')
  const id = await uploadLetter(owner, 'A letter')
  const original = (await listFiles(owner, id)).find(({ type }) => type === 'original')
  const { redirect } = (await (await owner.call('GET', `/api/videos/${id}/files/${original?.id}`)).json()) as { redirect: string }
  expect((await fetch(redirect)).status).toBe(200)
  await command('account disable', { account: 'Downloads end' })
  expect((await fetch(redirect)).status).toBe(404)
  await command('account enable', { account: 'Downloads end' })
  expect((await fetch(redirect)).status).toBe(200)
})

test('a download URL is invalid as soon as its file or its video is deleted', async () => {
  const { owner } = reelgate
  const { videoId: id } = await owner.credentials('Doomed')
  await addFile(owner, id, SRT, 'en')
  await addFile(owner, id, SRT, 'de')
  const [first, second] = (await listFiles(owner, id)).filter(({ type }) => type === 'caption')
  const addresses = [await addressOf(id, first?.id ?? 0), await addressOf(id, second?.id ?? 0)]
  await owner.call('DELETE', `/api/videos/${id}/files/${first?.id}`)
  const statuses = async () => Promise.all(addresses.map(async (address) => (await fetch(address)).status))
  expect(await statuses()).toEqual([404, 200])
  await owner.delete([id])
  expect(await statuses()).toEqual([404, 404])
  expect(await (await fetch(addresses[0] ?? '')).json()).toMatchObject({ code: 'file-gone', message: expect.any(String) })
})

test.each([
  ['a"b; filename=evil.exe', `a_b; filename=evil.exe.mp4`],
  ['a\r\nSet-Cookie: x=1', 'a__Set-Cookie_ x=1.mp4'],
  ['../../etc/passwd', '_.._etc_passwd.mp4'],
  ['Ein schöner Video 🎬', 'Ein schöner Video 🎬.mp4'],
  ['gpj.\u202eexe', 'gpj._exe.mp4'],
  ['x'.repeat(500), `${'x'.repeat(150)}.mp4`],
])('F03: a video called %j splits no header, and is saved by a name that is fit to be one', async (title, wanted) => {
  const { videoId: id } = await reelgate.owner.credentials(title)
  await addFile(reelgate.owner, id, SRT, 'en')
  const response = await fetch(await addressOf(id, (await fileOf(id, 'caption')).id))
  const disposition = response.headers.get('content-disposition') ?? ''
  const [, plain = '', encoded = ''] =
    /^attachment; filename="([ !#-~]*)"; filename\*=UTF-8''([\w!#$&+.^`|~%-]+)$/.exec(disposition) ?? []
  expect([decodeURIComponent(encoded).replace(/( \[EN\])?\.vtt$/, '.mp4'), plain.length > 0]).toEqual([wanted, true])
  expect(response.headers.get('set-cookie')).toBeNull()
})

describe('meta', () => {
  const meta = (id: string) => fetch(`${reelgate.url}/api/meta/${id}`)

  test('gives everyone the title, length, aspect ratio and posters of a video, and nothing that plays', async () => {
    const response = await meta(videoId)
    const body = (await response.json()) as { posters: { url: string }[] }
    expect([response.status, body]).toEqual([
      200,
      {
        title: 'Light & shadow',
        duration: expect.closeTo(20, 1),
        aspectRatio: expect.closeTo(16 / 9, 2),
        posters: [640, 426].map((width) => ({
          url: expect.stringContaining(`${publicUrl}/poster/`),
          width,
          height: expect.any(Number),
        })),
      },
    ])
    const poster = await fetch(body.posters[0]?.url ?? '')
    expect(poster.headers.get('content-type')).toBe('image/jpeg')
    expect(JSON.stringify(body)).not.toMatch(/media|play|otp|download/)
  })

  test('P18: is 404 for a video that is not public, is deleted, or never was', async () => {
    const { owner } = reelgate
    const { videoId: id } = await owner.credentials('Private')
    expect((await meta(id)).status).toBe(200)
    await owner.call('POST', `/api/videos/${id}`, { body: { public: 0 } })
    expect((await meta(id)).status).toBe(404)
    await owner.call('POST', `/api/videos/${id}`, { body: { public: 1 } })
    await owner.delete([id])
    for (const gone of [id, '0'.repeat(32), 'x', '..%2f']) expect((await meta(gone)).status).toBe(404)
  })
})
