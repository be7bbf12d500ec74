import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { estimateBytes } from '../../src/playback/media/delivery.ts'
import { bunnyDirectoryToken, mediaSignature, originMediaUrl, signedMediaPath } from '../../src/playback/media/media-path.ts'
import { mediaPlaylist } from '../../src/playback/media/playlist.ts'
import { buildPlaylist, recordBeat } from '../../src/playback/serve.ts'
import { listSegments, untilFinished } from '../data-folder.ts'
import { readSteps } from '../docs/steps.ts'
import { findFreePort } from '../free-port.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { startNginx } from '../nginx.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { newChance } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { bytesOf, readMediaPlaylist, type Viewer } from '../viewer.ts'
import { openBarePlayback, videoOf } from './playback-deps.ts'

// Segments from a cache in front of this server: nginx with the lines of docs/operations.md.

let reelgate: Reelgate & { remove(): Promise<void> }
let nginx: { remove(): Promise<void> }
let origin: string
let cache: string
let secret: string
let otherId: string
beforeAll(async () => {
  const file = await makeVideo({ seconds: 9, dark: true })
  const port = await findFreePort()
  origin = `http://127.0.0.1:${port}`
  reelgate = await startSharedReelgate({
    video: file,
    env: { REELGATE_MEDIA_URL: origin, REELGATE_TRUSTED_PROXIES: '127.0.0.1' },
  })
  secret = JSON.parse((await reelgate.cli('key', 'media-secret', '--json')).stdout).secret
  const lines = (await readSteps('Segments from another nginx or a CDN')).find((step) =>
    step.lines?.file.endsWith('segments.conf'),
  )
  const text = lines?.lines?.text ?? expect.fail()
  nginx = await startNginx((folder) => {
    cache = join(folder, 'cache')
    return {
      http: text
        .replaceAll(/^.*ssl_(?:certificate|certificate_key|server_name|verify|trusted_certificate) .*\n/gm, '')
        .replace('443 ssl', `127.0.0.1:${port}`)
        .replace('/var/cache/nginx/segments', cache)
        .replace('https://video.example.org', reelgate.url)
        .replace('SECRET', secret),
      location: `proxy_pass ${reelgate.url};`,
    }
  })
  otherId = await reelgate.owner.readyVideo(file, 'Another')
  await untilFinished(reelgate, otherId)
})
afterAll(async () => {
  await nginx?.remove()
  await reelgate?.remove()
})

async function newViewer(of: Reelgate = reelgate): Promise<Viewer> {
  const viewer = of.newViewer()
  await viewer.redeem(await of.owner.issueOtp(of.videoId))
  return viewer
}

/** The addresses of the first rendition's segments, in order. */
async function addressesOf(viewer: Viewer): Promise<string[]> {
  const { segments } = readMediaPlaylist(await viewer.playlist('1'))
  return segments.map(({ uri }) => new URL(uri, `${viewer.url}/play/x/playlist/`).href)
}

test('F-202: the playlists of a finished video name the origin with one end and one tag, and all of it plays from there', async () => {
  const viewer = await newViewer()
  const playlist = await viewer.playlist('1')
  const prefixes = new Set(Array.from(playlist.matchAll(/http.*?(?=\/1\/(?:init\.mp4|\d+\.m4s))/g), ([prefix]) => prefix))
  expect([...prefixes]).toEqual([expect.stringMatching(new RegExp(`^${origin}/media/\\d+/[\\w-]{22}/${reelgate.videoId}/1$`))])
  expect(playlist).not.toContain('../media')
  const { segments } = await viewer.download('1')
  for (const segment of segments) expect(segment.includes('moof')).toBe(true)
  const [first = ''] = await addressesOf(viewer)
  const response = await fetch(first)
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  expect(response.headers.get('cross-origin-resource-policy')).toBe('cross-origin')
  const kept = await readdir(cache, { recursive: true, withFileTypes: true })
  const files = await Promise.all(
    kept.filter((entry) => entry.isFile()).map((entry) => readFile(join(entry.parentPath, entry.name))),
  )
  const keys = files.map((file) => /\nKEY: (.*)\n/.exec(file.toString('latin1'))?.[1])
  expect(keys).toContain(`${reelgate.videoId}/1/1/0.m4s`)
})

test('F-202: while a video is being encoded its playlists name this server, and afterwards the origin; a damaged segment is named here', async () => {
  const mediaOrigin = { url: 'https://media.example.org', bunnyKey: undefined }
  const { deps, write, videoId, newPlayingViewer, ask } = await openBarePlayback({ mediaOrigin })
  const session = await ask(await newPlayingViewer(), 'playlist')
  const linesOf = async () => (await buildPlaylist(deps, session, '1')).match(/^.*\.m4s$/gm) ?? []
  const isHere = (line: string) => line.startsWith('../../../media/')
  expect((await linesOf()).every(isHere)).toBe(true)
  await write((tx) => tx.updateTable('generation').set({ finishedAtS: 1 }).where('videoId', '=', videoId).execute())
  expect((await linesOf()).every((line) => line.startsWith(`${mediaOrigin.url}/media/`))).toBe(true)
  const row = {
    videoId,
    generation: 1,
    renditionId: 1,
    number: 3,
    file: 'a/1/1-3',
    sizeBytes: 1,
    sha256: Buffer.alloc(32),
    damaged: 1,
  }
  await write((tx) => tx.insertInto('segment').values(row).execute())
  expect((await linesOf()).flatMap((line, number) => (isHere(line) ? [number] : []))).toEqual([3])
})

test('F-204: a session is counted in the rendition that its last beat named', async () => {
  const { deps, newPlayingViewer, ask } = await openBarePlayback()
  const viewer = await newPlayingViewer()
  const beat = async (rendition?: number) => {
    const session = await ask(viewer, 'beat')
    await recordBeat(deps, session, { state: 'playing', positionS: 1, rate: 1, rendition })
    return session.renditionId
  }
  expect([await beat(), await beat(5), await beat(), await beat(1)]).toEqual([undefined, 5, 5, 1])
})

test('F-202: the playlist of two hours, with one tag for its folder, is at most 10 kB as it is sent', () => {
  const video = videoOf('0123456789abcdef'.repeat(2), 7200)
  const base = originMediaUrl(
    { url: 'https://media.example.org', bunnyKey: undefined },
    signedMediaPath([secret], video, Date.now() / 1000),
  )
  const playlist = mediaPlaylist(video, { renditionId: 1, forcedBitrateKbps: null }, (fileName) => `${base}/1/${fileName}`) ?? ''
  expect(playlist.match(/\.m4s$/gm)).toHaveLength(1800)
  expect(gzipSync(playlist, { level: 3 }).length).toBeLessThanOrEqual(10_000)
})

test('F-202: the page of the player may load from the origin, and from nowhere else', async () => {
  const policy = (await fetch(`${reelgate.url}/player/`)).headers.get('content-security-policy')
  expect(policy).toContain(`connect-src 'self' ${origin};`)
})

test('F-202: all viewers of an hour have one address, which ends within two hours', async () => {
  const [[one = ''], [two]] = await Promise.all([addressesOf(await newViewer()), addressesOf(await newViewer())])
  const [, exp] = /\/media\/(\d+)\//.exec(one) ?? []
  const leftS = Number(exp) - Date.now() / 1000
  expect([Number(exp) % 3600, leftS > 3600 - 60, leftS <= 7200 + 60]).toEqual([0, true, true])
  expect(two?.replace(/\/media\/\d+\/[\w-]+/, '')).toBe(one.replace(/\/media\/\d+\/[\w-]+/, ''))
})

test('REELGATE_MEDIA_DELIVERY=server names no origin and asks no proxy', () => {
  const env = { REELGATE_MEDIA_URL: origin, REELGATE_MEDIA_ACCEL: '/segments/', REELGATE_TRUSTED_PROXIES: '127.0.0.1' }
  expect(readConfig(env)).toMatchObject({ mediaOrigin: { url: origin }, mediaAccel: '/segments/' })
  const server = readConfig({ ...env, REELGATE_MEDIA_DELIVERY: 'server' })
  expect([server.mediaOrigin, server.mediaAccel]).toEqual([undefined, undefined])
})

/** A request of exactly this path: `fetch` would resolve its dots. */
async function askUnchanged(base: string, path: string): Promise<{ status: number | undefined; bytes: Buffer }> {
  const { hostname, port } = new URL(base)
  const [response] = await once(get({ hostname, port, path }), 'response')
  return { status: response.statusCode, bytes: Buffer.concat(await response.toArray()) }
}

test('X54: neither the cache nor the server gives a byte for an address that is changed, has ended or is of another video', async () => {
  const viewer = await newViewer()
  const valid = (await addressesOf(viewer)).map((address) => new URL(address).pathname)
  const stored = new Map<string, Buffer>()
  for (const path of valid) stored.set(path, await bytesOf(origin + path)) // in the cache from now on
  const chance = newChance('addresses of segments')
  const tries = Array.from({ length: 5000 }, () => changedAddress(pick(valid), chance))
  const given: string[] = []
  for (const path of sampleOf('addresses of segments', tries, 300)) {
    for (const base of [origin, reelgate.url]) {
      const { status, bytes } = await askUnchanged(base, path)
      if (
        status === 200 ||
        bytes.includes('moof') ||
        [...stored.values()].some((sealed) => bytes.includes(sealed.subarray(0, 16)))
      )
        given.push(base + path)
    }
  }
  expect(given).toEqual([])

  function pick<T>(from: readonly T[]): T {
    return from[Math.floor(chance.next() * from.length)] ?? expect.fail()
  }

  function changedAddress(path: string, { next }: ReturnType<typeof newChance>): string {
    const [, exp = '', sig = '', vid = '', gen = '', file = ''] =
      /^\/media\/(\d+)\/([\w-]+)\/(\w+)\/(\d+)\/(.*)$/.exec(path) ?? []
    const join = (parts: { exp?: string; sig?: string; vid?: string; gen?: string; file?: string }) => {
      const { exp: e, sig: s, vid: v, gen: g, file: f } = { exp, sig, vid, gen, file, ...parts }
      return `/media/${e}/${s}/${v}/${g}/${f}`
    }
    const endedS = Math.floor(Date.now() / 1000) - 1 - Math.floor(next() * 10_000)
    const signature = (at: number, videoId: string, generation = 1) => mediaSignature(secret, at, { videoId, generation })
    // The last of 22 characters has bits that stand for no byte of a tag, which nginx does not compare.
    const at = Math.floor(next() * 21)
    const changes = [
      () => join({ sig: sig.slice(0, at) + (sig[at] === 'A' ? 'B' : 'A') + sig.slice(at + 1) }),
      () => join({ sig: sig.slice(0, at) }),
      () => join({ sig: sig + pick(['A', '%00', '=']) }),
      () => join({ exp: String(Number(exp) + 1 + Math.floor(next() * 100_000)) }),
      () => join({ exp: pick(['9999999999', '0', '00', `0${exp}`, `${exp}0`]) }),
      () => join({ exp: String(endedS), sig: signature(endedS, vid) }),
      () => join({ vid: otherId }),
      () => join({ sig: signature(Number(exp), otherId) }),
      () => join({ gen: '2' }),
      () => join({ gen: '01' }),
      () => join({ vid: vid.toUpperCase() }),
      () => join({ file: `../../${otherId}/1/${file}` }),
      () => join({ file: `%2e%2e/%2e%2e/${otherId}/1/${file}` }),
      () => join({ file: `..%2f..%2f${otherId}%2f1%2f${file}` }),
      () => `/media/${vid}/${gen}/${file}`,
      () => `/media/${exp}/${vid}/${gen}/${file}`,
    ]
    return pick(changes)()
  }
})

test('F-203: a damaged segment is loaded from this server while it is repaired, and then from the origin under another address', async () => {
  const viewer = await newViewer()
  const { file, bytes } = await readStored(2)
  await writeFile(file, Buffer.alloc(bytes.length, 7))
  const report = () => viewer.call('damage', undefined, JSON.stringify({ rendition: 1, segment: 2 }))
  expect((await report()).status).toBe(200)
  let address = (await addressesOf(viewer))[2] ?? ''
  while (!address.startsWith(origin)) {
    expect(address).toContain(`${reelgate.url}/media/`)
    const { status } = await fetch(address)
    expect([200, 503]).toContain(status)
    address = (await addressesOf(viewer))[2] ?? ''
  }
  expect(address).toMatch(/\/2\.1\.m4s$/)
  expect(await bytesOf(address)).toEqual(bytes)

  // Within the hour a report costs nothing more, whatever the file has.
  await writeFile(file, Buffer.alloc(bytes.length, 7))
  expect((await report()).status).toBe(200)
  expect(readRows(reelgate, 'select number from segment where damaged = 1')).toEqual([])
  await writeFile(file, bytes)
})

async function readStored(number: number) {
  const segment = listSegments(reelgate, reelgate.videoId).find((row) => row.rendition_id === 1 && row.number === number)
  const file = join(reelgate.dataDir, 'segments', segment?.file ?? expect.fail())
  return { file, bytes: await readFile(file) }
}

test('F-203: a report names a segment of the session’s own video, or changes nothing', async () => {
  const viewer = await newViewer()
  for (const body of [
    '{}',
    '{"rendition":1}',
    '{"rendition":0,"segment":0}',
    '{"rendition":1,"segment":-1}',
    '{"rendition":1,"segment":4294967296}',
  ])
    expect((await viewer.call('damage', undefined, body)).status).toBe(400)
  for (const body of ['{"rendition":99,"segment":0}', '{"rendition":1,"segment":99999}', '{"rendition":1,"segment":0}'])
    expect((await viewer.call('damage', undefined, body)).status).toBe(200)
  expect(readRows(reelgate, 'select number from segment where damaged = 1')).toEqual([])
})

test('F-204: what the origin sends is counted by the keys of sessions: in the largest rendition before a beat, once for a window; what it fetches is not', async () => {
  const counting = await startReelgate({
    video: await makeVideo({ seconds: 9, dark: true }),
    env: { REELGATE_MEDIA_URL: 'http://127.0.0.1:9' },
  })
  const viewer = await newViewer(counting)
  const [address = ''] = await addressesOf(viewer)
  await bytesOf(counting.url + new URL(address).pathname)
  for (let time = 0; time < 2; time++) expect((await viewer.key(0)).status).toBe(200)
  const segments = listSegments(counting, counting.videoId)
  const sizeOf = (id: number) => segments.reduce((sum, row) => sum + (row.rendition_id === id ? row.size_bytes : 0), 0)
  const ids = [...new Set(segments.map((row) => row.rendition_id))]
  const kinds = readRows<{ id: number; kind: string }>(counting, 'select id, kind from rendition')
  const of = (kind: string) => ids.filter((id) => kinds.some((row) => row.id === id && row.kind === kind)).map(sizeOf)
  const readSent = () => readRows<{ sent: number }>(counting, 'select sum(sent_bytes) as sent from video_usage')[0]?.sent
  // All of nine seconds is in the first window.
  await expect.poll(readSent).toBe(Math.max(...of('video')) + of('audio').reduce((sum, size) => sum + size, 0))
})

test('F-204: what is sent is estimated by the rendition that beats name, with the sound, and by the largest where they name none or another', () => {
  const { plan } = videoOf('a', 100)
  const [rendition] = plan.videoTrack?.renditions ?? []
  if (!plan.videoTrack || !rendition) throw new Error('it has no picture')
  const video = { plan: { ...plan, videoTrack: { ...plan.videoTrack, renditions: [rendition, { ...rendition, id: 5 }] } } }
  const sizes = new Map([
    [1, 9_000],
    [5, 4_000],
    [2, 1_000],
  ])
  const estimate = (renditionId: number | undefined) => estimateBytes(video, sizes, { renditionId, partS: 10 })
  expect([estimate(undefined), estimate(5), estimate(1), estimate(2)]).toEqual([1_000, 500, 1_000, 1_000])
})

test('a directory token is that of Bunny’s examples, and precedes the path', () => {
  const token = 'bcdn_token=HS256-uVZvT3SbEoVKYJyDJgbcsDmSFf73cv-uNUVaJiKWpbQ&token_path=%2Fabc&expires=1598024587'
  expect(bunnyDirectoryToken('SecurityKey', '/abc', 1_598_024_587)).toBe(token)
  const url = originMediaUrl({ url: 'https://zone.b-cdn.net/below', bunnyKey: 'SecurityKey' }, 'media/1598024587/tag/video/1')
  const folder = '/below/media/1598024587/tag/video/1'
  expect(url).toBe(`https://zone.b-cdn.net/${bunnyDirectoryToken('SecurityKey', `${folder}/`, 1_598_024_587)}${folder}`)
  expect(() => readConfig({ REELGATE_MEDIA_TOKEN_KEY: 'key' })).toThrow(/REELGATE_MEDIA_URL/)
})
