import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { anonymousMiB } from '../memory.ts'
import { sendRaw } from '../raw-http.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { makeVideo } from '../videos.ts'
import { bytesOf, decrypt, type MediaPlaylist, readMediaPlaylist, readRenditions, type Viewer } from '../viewer.ts'

// Playlists and segments: playback-protocol.md, sections 5 and 8.

let reelgate: Reelgate & { remove(): Promise<void> }
/** Two videos of the same bytes. */
let videos: [string, string]
beforeAll(async () => {
  const file = await makeVideo({ seconds: 15, rate: 10, size: '320x240' })
  reelgate = await startSharedReelgate({ video: file, title: 'One' })
  videos = [reelgate.videoId, await reelgate.owner.readyVideo(file, 'Two')]
  await untilFinished(reelgate, videos[1])
})
afterAll(() => reelgate.remove())

async function playing(video: string): Promise<Viewer> {
  const viewer = reelgate.newViewer()
  expect((await viewer.redeem(await reelgate.owner.issueOtp(video))).playing).toBe(true)
  return viewer
}

type Rendition = MediaPlaylist & { name: string; addressOf(uri: string): string }

async function renditionsOf(viewer: Viewer): Promise<Rendition[]> {
  const main = await viewer.playlist('main')
  const names = [...readRenditions(main).map(({ uri }) => uri), ...(/TYPE=AUDIO.*URI="([^"]+)"/.exec(main)?.slice(1) ?? [])]
  const base = `${viewer.url}/play/${viewer.state.session}/playlist/`
  return Promise.all(
    names.map(async (name) => ({
      name,
      ...readMediaPlaylist(await viewer.playlist(name)),
      addressOf: (uri: string) => new URL(uri, base).href,
    })),
  )
}

async function aSegment(): Promise<{ address: string; bytes: Buffer }> {
  const [rendition] = await renditionsOf(await playing(videos[0]))
  const address = rendition?.addressOf(rendition.segments[1]?.uri ?? '') ?? ''
  return { address, bytes: await bytesOf(address) }
}

const hasBoxes = (bytes: Buffer) => ['moof', 'mdat', 'traf', 'trun', 'styp'].some((box) => bytes.includes(box))
const windowOf = (keyUri: string) => keyUri.split('/').at(-1) ?? ''
const keyOf = async (viewer: Viewer, keyUri: string) =>
  Buffer.from(await (await viewer.call('key', windowOf(keyUri))).arrayBuffer())

describe('P05: what the signed paths give', () => {
  test('is ciphertext without a box or a pattern, and opens with window key and IV to the boxes of a segment', async () => {
    const viewer = await playing(videos[0])
    for (const { segments, addressOf } of await renditionsOf(viewer)) {
      for (const { uri, keyUri, iv } of segments) {
        const sealed = await bytesOf(addressOf(uri))
        expect(hasBoxes(sealed)).toBe(false)
        expect(sealed.length % 16).toBe(0)
        const clear = decrypt(sealed, await keyOf(viewer, keyUri), iv)
        for (const box of ['moof', 'mdat']) expect(clear.includes(box)).toBe(true)
        expect(new Set(sealed).size).toBeGreaterThan(Math.min(200, sealed.length / 4))
      }
    }
  })

  test('shares no key, no IV and no ciphertext with another video of the same frames', async () => {
    const viewers = await Promise.all(videos.map(playing))
    const [one = [], two = []] = await Promise.all(viewers.map(renditionsOf))
    expect(one.map(({ name, segments }) => [name, segments.length])).toEqual(
      two.map(({ name, segments }) => [name, segments.length]),
    )
    const ivs = [...one, ...two].flatMap(({ segments }) => segments.map(({ iv }) => iv.toString('hex')))
    expect(new Set(ivs).size).toBe(ivs.length)
    const uris = one[0]?.segments.map(({ keyUri }) => keyUri) ?? []
    const keys = await Promise.all(
      viewers.map((viewer) => Promise.all(uris.map(async (uri) => (await keyOf(viewer, uri)).toString('hex')))),
    )
    expect(keys[0]?.filter((key) => keys[1]?.includes(key))).toEqual([])
    const [first, second] = await Promise.all(
      [one[0], two[0]].map((rendition) => bytesOf(rendition?.addressOf(rendition.segments[0]?.uri ?? '') ?? '')),
    )
    expect(first?.subarray(0, 64)).not.toEqual(second?.subarray(0, 64))
  })

  test('P02: one video’s keys do not open another’s segments', async () => {
    const [one, two] = [await playing(videos[0]), await playing(videos[1])]
    const [rendition] = await renditionsOf(two)
    const { uri = '', keyUri = '', iv = Buffer.alloc(16) } = rendition?.segments[0] ?? {}
    const sealed = await bytesOf(rendition?.addressOf(uri) ?? '')
    expect(decrypt(sealed, await keyOf(two, keyUri), iv).includes('moof')).toBe(true)
    const foreignKey = await keyOf(one, keyUri)
    // Wrong padding throws; by chance it may fit, and then the bytes are noise.
    const opened = (() => {
      try {
        return decrypt(sealed, foreignKey, iv)
      } catch {
        return Buffer.alloc(0)
      }
    })()
    expect(opened.includes('moof')).toBe(false)
  })
})

describe('P06: playlists', () => {
  test('of two sessions hold neither’s secret: the same text for both', async () => {
    const otps = [await reelgate.owner.issueOtp(videos[0]), await reelgate.owner.issueOtp(videos[0])]
    const viewers = await Promise.all(
      otps.map(async (otp) => {
        const viewer = reelgate.newViewer()
        await viewer.redeem(otp)
        return viewer
      }),
    )
    const texts = await Promise.all(
      viewers.map(async (viewer) => {
        const renditions = await renditionsOf(viewer)
        const playlists = await Promise.all(['main', ...renditions.map(({ name }) => name)].map((name) => viewer.playlist(name)))
        const text = playlists.join('\n')
        const keys = await Promise.all([0, 1].map(async (window) => keyOf(viewer, `../key/${window}`)))
        const secrets = [
          viewer.state.session,
          viewer.state.pageId,
          viewer.state.nonce,
          viewer.publicKeyText(),
          ...otps,
          ...keys.flatMap((key) => [key.toString('hex'), key.toString('base64')]),
        ]
        for (const secret of secrets) expect(text.includes(secret)).toBe(false)
        // Two sessions on both sides of a six-hour border have two paths.
        return text.replace(/media\/\d+\/[\w-]{22}\//g, 'media/')
      }),
    )
    expect(texts[0]).toBe(texts[1])
    expect(texts[0]).toContain('#EXT-X-ENDLIST')
  })

  test('are as RFC 8216 has them: every segment once with window and IV, and the lengths add up', async () => {
    const viewer = await playing(videos[0])
    const main = await viewer.call('playlist', 'main')
    expect(main.headers.get('content-type')).toBe('application/vnd.apple.mpegurl')
    for (const { name, segments } of await renditionsOf(viewer)) {
      const text = await viewer.playlist(name)
      expect(text.startsWith('#EXTM3U\n')).toBe(true)
      expect(text.endsWith('\n#EXT-X-ENDLIST\n')).toBe(true)
      expect(text.indexOf('#EXT-X-MAP')).toBeLessThan(text.indexOf('#EXT-X-KEY'))
      expect(segments.map(({ uri }) => uri.split('/').at(-1))).toEqual(segments.map((_, i) => `${i}.m4s`))
      const windows = segments.map(({ keyUri }) => Number(windowOf(keyUri)))
      expect(windows).toEqual(windows.toSorted((a, b) => a - b))
      expect(segments.reduce((sum, { durationS }) => sum + durationS, 0)).toBeCloseTo(15, 0)
      const targetS = Number(/#EXT-X-TARGETDURATION:(\d+)/.exec(text)?.[1])
      for (const { durationS } of segments) expect(Math.round(durationS)).toBeLessThanOrEqual(targetS)
    }
  })
})

describe('a segment', () => {
  test('may be kept by every cache and read by every site', async () => {
    const { address } = await aSegment()
    for (const url of [address, address.replace(/\d+\.m4s$/, 'init.mp4')]) {
      const { status, headers } = await fetch(url)
      expect(status).toBe(200)
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('set-cookie')).toBeNull()
    }
  })

  test('is the same for all concurrent requests, from the disk and from memory, whole and in part', async () => {
    const { address, bytes } = await aSegment()
    const answers = await Promise.all(Array.from({ length: 20 }, () => bytesOf(address)))
    for (const answer of answers) expect(answer.equals(bytes)).toBe(true)
    const half = await fetch(address, { headers: { Range: 'bytes=100-199' } })
    expect([half.status, half.headers.get('content-length')]).toEqual([206, '100'])
    expect(Buffer.from(await half.arrayBuffer()).equals(bytes.subarray(100, 200))).toBe(true)
  })

  test('P11: is sent whole, or the part that is asked for', async () => {
    const { address, bytes } = await aSegment()
    const size = bytes.length
    const part = async (range: string) => {
      const response = await fetch(address, { headers: { Range: range } })
      return {
        status: response.status,
        range: response.headers.get('content-range'),
        cache: response.headers.get('cache-control'),
        bytes: Buffer.from(await response.arrayBuffer()),
      }
    }
    const FOR_EVER = 'public, max-age=31536000, immutable'
    expect(await part('bytes=0-0')).toEqual({
      status: 206,
      range: `bytes 0-0/${size}`,
      cache: FOR_EVER,
      bytes: bytes.subarray(0, 1),
    })
    expect(await part('bytes=5-20')).toEqual({
      status: 206,
      range: `bytes 5-20/${size}`,
      cache: FOR_EVER,
      bytes: bytes.subarray(5, 21),
    })
    expect(await part('bytes=-1')).toEqual({
      status: 206,
      range: `bytes ${size - 1}-${size - 1}/${size}`,
      cache: FOR_EVER,
      bytes: bytes.subarray(-1),
    })
    expect(await part(`bytes=${size - 3}-`)).toMatchObject({ status: 206, bytes: bytes.subarray(-3) })
    expect(await part('bytes=3-999999999999')).toMatchObject({ status: 206, bytes: bytes.subarray(3) })
    for (const range of ['bytes=5-2', 'bytes=x', 'items=0-1', `bytes=${Array.from({ length: 1000 }, (_, i) => `${i}-${i}`)}`]) {
      expect(await part(range)).toEqual({ status: 200, range: null, cache: FOR_EVER, bytes })
    }
    for (const range of [`bytes=${size}-`, 'bytes=999999999999-', 'bytes=-0']) {
      expect(await part(range)).toEqual({ status: 416, range: `bytes */${size}`, cache: 'no-store', bytes: Buffer.alloc(0) })
    }
  })

  test('P11: asked for a thousand times over in one request, is sent once, and the server’s memory stays as it was', async () => {
    const { address, bytes } = await aSegment()
    const overAndOver = `bytes=${Array.from({ length: 1000 }, () => '0-').join(',')}`
    const askTwentyTimes = () =>
      Promise.all(
        Array.from({ length: 20 }, async () => {
          const response = await fetch(address, { headers: { Range: overAndOver } })
          expect([response.status, (await response.arrayBuffer()).byteLength]).toEqual([200, bytes.length])
        }),
      )
    await askTwentyTimes()
    const before = await anonymousMiB(reelgate.pid)
    const memoryMiB: number[] = []
    for (let time = 0; time < 15; time++) {
      await askTwentyTimes()
      memoryMiB.push(await anonymousMiB(reelgate.pid))
    }
    // A thousand copies for each of twenty requests would be 20 000 segments at a time.
    expect((20_000 * bytes.length) / 2 ** 20).toBeGreaterThan(400)
    expect(Math.max(...memoryMiB) - before).toBeLessThan(100)
  })

  test('P03: copied to someone without a session gives ciphertext at most, and no key', async () => {
    const { address, bytes } = await aSegment()
    const stranger = await fetch(address, { headers: { Cookie: 'session=copied', Referer: `${reelgate.url}/player/` } })
    const copied = Buffer.from(await stranger.arrayBuffer())
    expect(copied).toEqual(bytes)
    expect(hasBoxes(copied)).toBe(false)
    const viewer = await playing(videos[0])
    const [rendition] = await renditionsOf(viewer)
    const key = await keyOf(viewer, rendition?.segments[1]?.keyUri ?? '')
    const headers = Buffer.from(JSON.stringify([...stranger.headers]))
    for (const secret of [key, ...(['hex', 'base64', 'base64url'] as const).map((form) => Buffer.from(key.toString(form)))]) {
      for (const given of [copied, headers]) expect(given.includes(secret)).toBe(false)
    }
    // All that is in the clear is the init segment: codec, size, rate, and not one sample.
    const init = await bytesOf(address.replace(/\d+\.m4s$/, 'init.mp4'))
    expect(init.includes('moov') && init.includes('avcC')).toBe(true)
    expect(init.includes('mdat') || init.includes('moof')).toBe(false)
    expect(init.length).toBeLessThan(2000)
  })

  test.each([
    [
      'a signature with one letter changed',
      (parts: string[]) =>
        parts.with(
          3,
          (parts[3] ?? '').replace(/./, (first) => (first === 'A' ? 'B' : 'A')),
        ),
    ],
    ['a later end', (parts: string[]) => parts.with(2, String(Number(parts[2]) + 1))],
    ['an end long past', (parts: string[]) => parts.with(2, '1000000000')],
    ['P02: another video', (parts: string[]) => parts.with(4, videos[1])],
    ['a video that never was', (parts: string[]) => parts.with(4, '0'.repeat(32))],
    ['another generation', (parts: string[]) => parts.with(5, '2')],
  ])('P03: with %s is refused, and no cache keeps the refusal', async (_, change) => {
    const { address } = await aSegment()
    const url = new URL(address)
    for (const file of ['1.m4s', 'init.mp4']) {
      url.pathname = change(new URL(address).pathname.split('/')).with(-1, file).join('/')
      const response = await fetch(url)
      expect({ status: response.status, body: await response.json() }).toEqual({
        status: 403,
        body: { code: 'not-allowed', message: expect.any(String) },
      })
      expect(response.headers.get('cache-control')).toBe('no-store')
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
    }
  })

  test('that the video does not have is refused immediately, without a wait: 404 of a rendition that is gone, else 400', async () => {
    const { address } = await aSegment()
    for (const [tail, status] of [
      ['/99/0.m4s', 404],
      ['/1/4.m4s', 400],
      ['/1/999999999.m4s', 400],
    ]) {
      const response = await fetch(address.replace(/\/\d+\/\d+\.m4s$/, String(tail)))
      expect([tail, response.status, response.headers.get('cache-control')]).toEqual([tail, status, 'no-store'])
    }
  })
})

describe('P12: no path leads out of the videos', () => {
  const CANARY = `canary-${randomBytes(8).toString('hex')}`
  beforeAll(async () => {
    const { dataDir } = reelgate
    for (const folder of ['', 'segments', `segments/${videos[0]}`, 'tmp']) {
      await mkdir(join(dataDir, folder), { recursive: true })
      for (const name of ['canary.m4s', 'canary', '7.m4s']) await writeFile(join(dataDir, folder, name), CANARY)
    }
  })

  test.each([
    '%2e%2e/%2e%2e/canary.m4s',
    '%2e%2e%2f%2e%2e%2fcanary.m4s',
    '../canary.m4s',
    '../../canary.m4s',
    '../../../../canary',
    '..%2fcanary.m4s',
    '..%5ccanary.m4s',
    '..\\canary.m4s',
    '%252e%252e%252fcanary.m4s',
    '/canary.m4s',
    '//canary.m4s',
    './canary.m4s',
    'canary.m4s',
    '1.m4s;x',
    ';x/1.m4s',
    '1.m4s%00',
    '%00/canary.m4s',
    '1.m4s%00.m4s',
    '1.m4s/',
    '1.m4s/../canary.m4s',
    '1.m4s%2f..%2fcanary.m4s',
    '%c0%ae%c0%ae/canary.m4s',
    '%ff',
    '-1.m4s',
    '01.m4s',
    '1e1.m4s',
    '9999999999.m4s',
    'init.mp4%2f..%2fcanary.m4s',
    'segments/canary.m4s',
    'x'.repeat(5000),
  ])('%s', async (tail) => {
    const { address } = await aSegment()
    const folder = new URL(address).pathname.replace(/[^/]*$/, '')
    const { status, text, headers } = await sendRaw(reelgate.url, `GET ${folder}${tail}`)
    // A trailing slash means the same address everywhere here.
    if (tail === '1.m4s/') return expect(status).toBe(200)
    expect([400, 404]).toContain(status)
    expect(text).not.toContain(CANARY)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test.each([2, 3, 4, 5, 6])('a signed path with ".." in place of its part %i', async (part) => {
    const { address } = await aSegment()
    for (const dots of ['..', '%2e%2e', '.', '%2e', '..%2f..', '']) {
      const path = new URL(address).pathname.split('/').with(part, dots).with(-1, 'canary.m4s').join('/')
      const { status, text } = await sendRaw(reelgate.url, `GET ${path}`)
      expect([400, 404]).toContain(status)
      expect(text).not.toContain(CANARY)
    }
  })

  test('nor do the paths of posters and of the player’s files', async () => {
    for (const path of [
      '/poster/..%2f..%2fcanary.jpg',
      '/poster/%2e%2e/canary',
      '/player/assets/..%2f..%2f..%2fpackage.json',
      '/player/assets/../../../package.json',
      '/player/assets/%2e%2e%2fmanifest.json',
    ]) {
      const { status, text } = await sendRaw(reelgate.url, `GET ${path}`)
      expect([path, [400, 404].includes(status), text.includes(CANARY), text.includes('reelgate')]).toEqual([
        path,
        true,
        false,
        false,
      ])
    }
  })
})
