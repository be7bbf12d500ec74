import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { crc32, deflateSync } from 'node:zlib'
import pino from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createAccount } from '../../src/accounts/account.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { createOutboundPolicy } from '../../src/outbound/policy.ts'
import { openSandbox } from '../../src/sandbox/bubblewrap.ts'
import { createWatermarkImages } from '../../src/watermark/watermark-image.ts'
import { readRowsAtRest } from '../at-rest.ts'
import { openOwnDatabase } from '../db/database.ts'
import { startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

// Image watermarks (docs/embedding.md). The owner's image host is a real server, which records its requests.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let videoId: string
let host: Server
let hostUrl: string
let samples: Record<'png' | 'jpg' | 'webp' | 'gif', Buffer>
const requests: string[] = []
const responders = new Map<string, RequestListener>()

beforeAll(async () => {
  host = createServer((request, response) => {
    requests.push(`${request.headers['user-agent']} ${request.url}`)
    const responder = responders.get(request.url ?? '')
    if (responder) responder(request, response)
    else response.writeHead(404).end('<h1>Not here</h1>')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => host.once('listening', resolve))
  const { port } = host.address() as AddressInfo
  hostUrl = `http://127.0.0.1:${port}`
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: `127.0.0.1:${port}` }, video: await makeVideo() })
  videoId = reelgate.videoId
  const [png, jpg, webp, gif] = await Promise.all(['png', 'mjpeg', 'libwebp', 'gif'].map((codec) => makeImage('48x32', codec)))
  samples = { png: png ?? empty, jpg: jpg ?? empty, webp: webp ?? empty, gif: gif ?? empty }
})
afterAll(async () => {
  await reelgate?.remove()
  host?.closeAllConnections()
  host?.close()
})

const empty = Buffer.alloc(0)
const TEXT = { type: 'text', text: 'Ada' }

test.each(['png', 'jpg', 'webp', 'gif'] as const)(
  'a %s becomes a watermark that the viewer gets from Reelgate, re-encoded as PNG',
  async (kind) => {
    const url = serve(`/logo.${kind}?signature=5ecret-${kind}`, samples[kind])
    const [, watermark] = await redeemWatermarks([TEXT, { type: 'image', url, alpha: '0.5', x: '80%', y: '10', size: 64 }])
    expect(watermark).toMatchObject({ type: 'image', alpha: 0.5, x: '80%', y: '10', widthPx: 64 })
    expect(JSON.stringify(watermark)).not.toMatch(/127\.0\.0\.1|5ecret/)
    const png = decodePng(watermark)
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([48, 32])
    expect(reelgate.output()).not.toContain('5ecret')
  },
)

test('the owner’s image host gets one request, from the server, however many viewers watch before and after a restart', async () => {
  const url = serve('/once.png', samples.png)
  for (let viewer = 0; viewer < 3; viewer++) expect(await redeemWatermarks([{ type: 'image', url }])).toHaveLength(1)
  await reelgate.kill()
  await reelgate.restart()
  expect(await redeemWatermarks([{ type: 'image', url }])).toHaveLength(1)
  expect(requests.filter((request) => request.endsWith('/once.png'))).toEqual(['Reelgate /once.png'])
})

test('each account fetches an image of its own, also from the same URL', async () => {
  const url = serve('/shared.png', samples.png)
  expect(await redeemWatermarks([{ type: 'image', url }])).toHaveLength(1)
  const other = await reelgate.newOwner('other')
  const otherVideo = await other.readyVideo(await makeVideo())
  responders.delete('/shared.png')
  const outcome = await reelgate
    .newViewer()
    .redeem(await other.issueOtp(otherVideo, { annotate: [{ type: 'image', url }, TEXT] }))
  expect(outcome.body.marks).toMatchObject([TEXT])
})

test('an image larger than a watermark needs is scaled down, and keeps its aspect ratio', async () => {
  const [watermark] = await redeemWatermarks([{ type: 'image', url: serve('/large.png', await makeImage('2400x1200', 'png')) }])
  const png = decodePng(watermark)
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([960, 480])
  expect(png.length).toBeLessThanOrEqual(512 * 1024)
})

test.each<[string, () => Promise<Buffer> | Buffer]>([
  ['a web page', () => Buffer.from('<!doctype html><title>Log in</title>')],
  ['M08: an SVG', () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1/x"/></svg>')],
  ['M01: a playlist', () => Buffer.from('#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/x.ts\n')],
  ['a video', async () => (await readFile(await makeVideo())).subarray(0, 2 ** 20)],
  ['half a PNG', () => samples.png.subarray(0, 40)],
  ['nothing', () => empty],
  ['a file of more than 1 MiB', () => Buffer.concat([samples.png, Buffer.alloc(2 ** 20)])],
  ['M12: a small file of 256 million pixels', blackSquare],
])('%s is not shown; the other watermarks are, and the log says why', async (name, bytes) => {
  const path = `/bad-${name.replace(/\W/g, '')}.png?signature=5ecret`
  const url = serve(path, await bytes())
  expect(await redeemWatermarks([{ type: 'image', url }, TEXT])).toMatchObject([TEXT])
  const hash = createHash('sha256').update(url).digest()
  const [row] = readRows<{ problem: string }>(reelgate, 'select problem from watermark_image where url_hash = ?', hash)
  expect(row?.problem).toMatch(/^The (file|image|picture) |^http:\S+ was not fetched: it is longer than 1048576 bytes/)
  await expect.poll(() => reelgate.output()).toContain(`"from":"${url.split('?')[0]}","problem":"${row?.problem}"`)
  expect(reelgate.output()).not.toContain('5ecret')
})

test('S09: an image host that redirects to this machine reaches nothing there', async () => {
  let requestCount = 0
  const canary = createServer((_request, response) => {
    requestCount++
    response.end(samples.png)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void canary.close())
  await new Promise((resolve) => canary.once('listening', resolve))
  const { port } = canary.address() as AddressInfo
  responders.set('/away.png', (_request, response) => response.writeHead(302, { Location: `http://127.0.0.1:${port}/` }).end())
  expect(await redeemWatermarks([{ type: 'image', url: `${hostUrl}/away.png` }, TEXT])).toMatchObject([TEXT])
  expect(requestCount).toBe(0)
})

test('S17: an image host that never responds keeps no viewer from playing', async () => {
  responders.set('/silent.png', () => {})
  expect(await redeemWatermarks([{ type: 'image', url: `${hostUrl}/silent.png` }, TEXT])).toMatchObject([TEXT])
  await expect.poll(() => reelgate.output()).toContain('watermark: image unavailable')
})

test('P18: images are sealed on the disk', async () => {
  await redeemWatermarks([{ type: 'image', url: serve('/sealed.png', samples.png) }])
  const [{ sealed } = { sealed: empty }] = readRows<{ sealed: Buffer }>(
    reelgate,
    'select sealed from watermark_image where sealed is not null',
  )
  expect(sealed.length).toBeGreaterThan(100)
  for (const [name, bytes] of await readRowsAtRest(reelgate)) expect(bytes.includes('IHDR'), name).toBe(false)
  expect(await readdir(join(reelgate.dataDir, 'tmp'))).toEqual([])
})

test('an image is fetched again after a day, a failed one after a minute; a failure keeps the previous image', async () => {
  const { images, clock, accountId } = await openImages()
  const url = serve('/days.png', samples.png)
  const times = () => requests.filter((request) => request.endsWith('/days.png')).length
  const first = await images.find(accountId, url)
  expect([first?.subarray(1, 4).toString(), times()]).toEqual(['PNG', 1])

  clock.nowS += 24 * 3600 - 1
  await images.find(accountId, url)
  expect(times()).toBe(1)
  responders.delete('/days.png')
  clock.nowS += 1
  expect(await images.find(accountId, url)).toEqual(first)
  await images.idle()
  expect(times()).toBe(2)
  clock.nowS += 59
  await images.find(accountId, url)
  await images.idle()
  expect(times()).toBe(2)
  clock.nowS += 1
  expect(await images.find(accountId, url)).toEqual(first)
  await images.idle()
  expect(times()).toBe(3)
})

test('the last hundred images of an account are kept', async () => {
  const { images, clock, accountId, rows } = await openImages()
  const urls = Array.from({ length: 103 }, (_, at) => `${hostUrl}/missing-${at}.png`)
  for (const url of urls) {
    clock.nowS += 1
    await images.find(accountId, url)
  }
  expect(await rows()).toBe(100)
})

test('an account whose image hosts do not respond does not delay other accounts', async () => {
  const { images, accountId, newAccount } = await openImages()
  const silent = Array.from({ length: 600 }, (_, at) => `${hostUrl}/silent-${at}.png`)
  for (const url of silent) responders.set(new URL(url).pathname, () => {})
  images.request(accountId, silent)
  const found = await images.find(await newAccount('another'), serve('/other.png', samples.png))
  expect(found?.subarray(1, 4).toString()).toBe('PNG')
})

async function redeemWatermarks(annotate: unknown[]): Promise<Record<string, unknown>[]> {
  const outcome = await reelgate.newViewer().redeem(await reelgate.owner.issueOtp(videoId, { annotate }))
  expect(outcome.status).toBe(200)
  return outcome.body.marks as Record<string, unknown>[]
}

function decodePng(watermark: Record<string, unknown> | undefined): Buffer {
  const [, text = ''] = /^data:image\/png;base64,([\w+/=]+)$/.exec(String(watermark?.image)) ?? []
  return Buffer.from(text, 'base64')
}

function serve(path: string, bytes: Buffer): string {
  responders.set(path, (_request, response) => response.end(bytes))
  return `${hostUrl}${path}`
}

/** A PNG of 16000 × 16000 pixels, one bit each, in 33 kB. */
function blackSquare(): Buffer {
  const sidePx = 16_000
  const header = Buffer.alloc(13)
  header.writeUInt32BE(sidePx, 0)
  header.writeUInt32BE(sidePx, 4)
  header.writeUInt8(1, 8)
  const part = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(named))
    return Buffer.concat([length, named, sum])
  }
  const rows = deflateSync(Buffer.alloc(sidePx * (1 + sidePx / 8)))
  const parts = [part('IHDR', header), part('IDAT', rows), part('IEND', empty)]
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...parts])
}

async function makeImage(size: string, codec: string): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-image-'))
  try {
    const input = ['-f', 'lavfi', '-i', `testsrc2=size=${size}:rate=1:duration=1`]
    const output = ['-frames:v', '1', '-c:v', codec, '-f', codec === 'gif' ? 'gif' : 'image2pipe', join(folder, 'image')]
    await promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...input, ...output])
    return await readFile(join(folder, 'image'))
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Only the feature, with a clock that the test sets. */
async function openImages() {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-images-'))
  const { db, write } = await openOwnDatabase()
  const clock = { nowS: 1_800_000_000 }
  const nowS = () => clock.nowS
  const newAccount = async (name: string) =>
    (await createAccount({ db, write, nowS }, name, { mayUpload: true, mayImport: true })).accountId
  const accountId = await newAccount('owner')
  const images = createWatermarkImages({
    db,
    write,
    nowS,
    masterKey: parseMasterKey(Buffer.alloc(32, 1)),
    sandbox: await openSandbox({ sandbox: 'weak' }),
    outbound: createOutboundPolicy([new URL(hostUrl).host]),
    tmp: folder,
    log: pino({ level: 'silent' }),
  })
  onTestFinished(async () => {
    await images.stop()
    await rm(folder, { recursive: true })
  })
  const rows = async () => (await db.selectFrom('watermarkImage').select('urlHash').execute()).length
  return { images, clock, accountId, newAccount, rows }
}
