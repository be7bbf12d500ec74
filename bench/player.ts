import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser, CDPSession } from 'playwright-core'
import { HEADLESS_SHELL, startChromiumAt } from '../test/browser/chromium.ts'
import { createOwner, type Owner } from '../test/client.ts'
import { untilFinished } from '../test/data-folder.ts'
import { makeVideo } from '../test/videos.ts'
import { createViewer, readMediaPlaylist } from '../test/viewer.ts'
import { measureInterleaved, median, repeat } from './interleaved.ts'
import { CACHE, type Measured, type Row, type Scope } from './row.ts'
import { firstApiKey, type ListeningProcess, startPeer, startService } from './service.ts'

const PAIRS = 15

export const PLAYER_ROWS: readonly Row[] = [
  {
    name: 'player-bytes',
    what: 'page, scripts, styles, playlists, keys and poster, compressed, until the first frame; peer: a page with Video.js',
    unit: 'kB',
    aim: { ratioAtMost: 1 },
    prepare: () => getBuilt(VIDEO_JS),
    measure: (scope) => comparePages(scope, putVideoJsPage, 1, ({ bytes }) => bytes / 1000),
  },
  {
    name: 'player-bytes-10',
    what: 'the same; peer: a page with Video.js 10',
    unit: 'kB',
    aim: { ratioAtMost: 1 },
    prepare: () => getBuilt(VIDEO_JS_10),
    measure: (scope) => comparePages(scope, putVideoJs10Page, 1, ({ bytes }) => bytes / 1000),
  },
  {
    name: 'player-first-frame',
    what: 'from the request of the page to the first frame, playing by itself; peer: a page with hls.js',
    unit: 'ms',
    aim: { ratioAtMost: 1.15 },
    measure: (scope) => comparePages(scope, putHlsJsPage, PAIRS, ({ firstFrameMs }) => firstFrameMs),
  },
  {
    name: 'player-first-frame-10',
    what: 'the same; peer: a page with Video.js 10',
    unit: 'ms',
    aim: { ratioAtMost: 1 },
    prepare: () => getBuilt(VIDEO_JS_10),
    measure: (scope) => comparePages(scope, putVideoJs10Page, PAIRS, ({ firstFrameMs }) => firstFrameMs),
  },
  {
    name: 'redeem-first-frame',
    what: 'from the request that redeems the OTP to the first frame',
    unit: 'ms',
    aim: { oursAtMost: 400 },
    measure: measureRedeem,
  },
]

type Opened = { firstFrameMs: number; redeemMs: number; bytes: number }

async function comparePages(
  scope: Scope,
  putPage: (folder: string) => Promise<void>,
  pairs: number,
  value: (opened: Opened) => number,
): Promise<Measured> {
  const { service, owner, videoId } = await startPlaying(scope)
  const folder = join(scope.folder, 'peer')
  await mkdir(folder)
  await copyStream(service, owner, videoId, folder)
  await putPage(folder)
  const peer = await startPeer(scope, 'compressed-files.ts', folder)
  const browser = await openBrowser(scope)
  const measureOurs = async () => value(await openPage(browser, await newAddress(service, owner, videoId)))
  const measurePeer = async () => value(await openPage(browser, `${peer.url}/index.html`))
  await measureOurs() // the first of each also starts what the browser and the server start once
  await measurePeer()
  return measureInterleaved(pairs, measureOurs, measurePeer)
}

async function measureRedeem(scope: Scope): Promise<Measured> {
  const { service, owner, videoId } = await startPlaying(scope)
  const browser = await openBrowser(scope)
  const opened = await repeat(PAIRS + 1, async () => {
    const { firstFrameMs, redeemMs } = await openPage(browser, await newAddress(service, owner, videoId))
    return firstFrameMs - redeemMs
  })
  return { ours: median(opened.slice(1)) }
}

async function startPlaying(scope: Scope) {
  const dataDir = join(scope.folder, 'data')
  const service = await startService(scope, dataDir)
  const owner = createOwner(service.url, firstApiKey(service))
  const videoId = await owner.upload('A video', await makeVideo({ seconds: 60, size: '320x180' })) // of one rendition: both show the same
  await untilFinished({ dataDir, masterKeyFile: `${dataDir}.key` }, videoId)
  return { service, owner, videoId }
}

async function openBrowser(scope: Scope): Promise<Browser> {
  const browser = await startChromiumAt(HEADLESS_SHELL, '--autoplay-policy=no-user-gesture-required')
  scope.defer(() => browser.close())
  return browser
}

async function newAddress(service: ListeningProcess, owner: Owner, videoId: string): Promise<string> {
  return `${service.url}/player/?otp=${await owner.issueOtp(videoId)}&autoplay=true`
}

/** Opens a page with an empty cache, which plays by itself, until its first frame. */
async function openPage(browser: Browser, url: string): Promise<Opened> {
  await using viewer = await browser.newContext()
  const page = await viewer.newPage()
  await page.addInitScript({ content: NOTE_FIRST_FRAME })
  const bytes = await countBytes(await viewer.newCDPSession(page))
  await page.goto(url, { waitUntil: 'commit' })
  const { firstFrameMs, redeemMs } = await page.evaluate<Omit<Opened, 'bytes'>>('firstFrame')
  return { firstFrameMs, redeemMs, bytes: bytes() }
}

/** @returns the bytes, headers included, of all responses that have ended, but segments: those depend on the video. */
async function countBytes(session: CDPSession): Promise<() => number> {
  const urls = new Map<string, string>()
  let bytes = 0
  session.on('Network.requestWillBeSent', ({ requestId, request }) => urls.set(requestId, request.url))
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (!/\.(m4s|mp4)$/.test(urls.get(requestId) ?? '')) bytes += encodedDataLength
  })
  await session.send('Network.enable')
  return () => bytes
}

/** Runs in the page, before its own scripts. */
const NOTE_FIRST_FRAME = `globalThis.firstFrame = new Promise((resolve) => {
  const look = () => {
    const video = document.querySelector('video') ?? document.querySelector('hls-video')?.shadowRoot?.querySelector('video')
    if (!video) return requestAnimationFrame(look)
    video.requestVideoFrameCallback((firstFrameMs) => {
      const redeem = performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/play/redeem'))
      resolve({ firstFrameMs, redeemMs: redeem?.startTime ?? 0 })
    })
  }
  look()
})`

/** Copies a video as its viewers get it, encrypted, into the files of a plain site. */
async function copyStream(service: ListeningProcess, owner: Owner, videoId: string, folder: string): Promise<void> {
  const viewer = createViewer(service.url)
  await viewer.redeem(await owner.issueOtp(videoId))
  const copied = new Map<string, string>()

  async function copyPlaylist(name: string): Promise<void> {
    const lines = withIvs(await viewer.playlist(name)).split('\n')
    await writeFile(join(folder, `${name}.m3u8`), (await Promise.all(lines.map(copyLine))).join('\n'))
  }

  async function copyLine(line: string): Promise<string> {
    if (!line.startsWith('#')) return line && copy(line)
    const [named, uri] = /URI="([^"]+)"/.exec(line) ?? []
    return named && uri ? line.replace(named, `URI="${await copy(uri)}"`) : line
  }

  async function copy(address: string): Promise<string> {
    const known = copied.get(address)
    if (known !== undefined) return known
    const [kind = '', rest = ''] = address.includes('media/') ? ['media', address] : address.replace('../', '').split('/')
    const isPlaylist = rest === ''
    const name = isPlaylist ? `${kind}.m3u8` : address.split('/').slice(-2).join('-')
    copied.set(address, name)
    if (isPlaylist) await copyPlaylist(kind)
    else if (kind === 'key')
      await writeFile(join(folder, name), Buffer.from(await (await viewer.key(Number(rest))).arrayBuffer()))
    else {
      const response = await fetch(new URL(address, `${service.url}/play/${viewer.state.session}/playlist/`))
      await writeFile(join(folder, name), Buffer.from(await response.arrayBuffer()))
    }
    return name
  }

  await copyPlaylist('main')
}

/** A playlist for any reader of HLS, with the IV of each segment. */
function withIvs(text: string): string {
  const ofSegments = readMediaPlaylist(text).segments.map(
    ({ keyUri, iv }) => `#EXT-X-KEY:METHOD=AES-128,URI="${keyUri}",IV=0x${iv.toString('hex')}\n`,
  )
  return text
    .replaceAll(/^#EXT-X-(?:KEY|REELGATE-IV-KEY):.*\n/gm, '')
    .replaceAll('#EXTINF:', () => `${ofSegments.shift() ?? ''}#EXTINF:`)
}

const page = (head: string, body: string) => `<!doctype html><html lang="en"><meta charset="utf-8"><title>Video</title>
<link rel="icon" href="data:,">${head}${body}</html>`

async function putHlsJsPage(folder: string): Promise<void> {
  await copyFile(join(import.meta.dirname, '../node_modules/hls.js/dist/hls.min.js'), join(folder, 'hls.min.js'))
  const html = page(
    '<script src="hls.min.js"></script>',
    `<video muted autoplay playsinline controls></video>
<script>const hls = new Hls(); hls.loadSource('main.m3u8'); hls.attachMedia(document.querySelector('video'))</script>`,
  )
  await writeFile(join(folder, 'index.html'), html)
}

/** As npm has it, with the packages that it needs built into its files already. */
type Built = { name: string; version: string; integrity: string; folder: 'dist' | 'cdn' }

const VIDEO_JS: Built = {
  name: 'video.js',
  version: '8.24.1',
  integrity: 'sha512-Qh2WxVyiw6BEvpS95KCoZM8wt10r2iDvembOjHPftVcxY4QR53WVTDQlJEuI1J46Yo9Zw+6rRDIe62C+J+edfQ==',
  folder: 'dist',
}

/** The last version whose files for a CDN npm has. */
const VIDEO_JS_10: Built = {
  name: '@videojs/html',
  version: '10.0.0-beta.23',
  integrity: 'sha512-TthyMitUxYXKnumpqtBVAXs+HvQZG+SPKhkuV6tCUQLS4vy0J54buMXOtvjEiT09rqpQAP4r+MJeZLhV/Abh/Q==',
  folder: 'cdn',
}

async function putVideoJsPage(folder: string): Promise<void> {
  const built = await getBuilt(VIDEO_JS)
  for (const name of ['video.min.js', 'video-js.min.css']) await copyFile(join(built, name), join(folder, name))
  const html = page(
    '<link rel="stylesheet" href="video-js.min.css"><script src="video.min.js"></script>',
    `<video class="video-js" muted autoplay playsinline controls></video>
<script>videojs(document.querySelector('video'), { html5: { vhs: { overrideNative: true } } }).src({ src: 'main.m3u8', type: 'application/x-mpegURL' })</script>`,
  )
  await writeFile(join(folder, 'index.html'), html)
}

async function putVideoJs10Page(folder: string): Promise<void> {
  const isSent = (path: string) => !/\.(dev\.js|map)$/.test(path)
  await cp(await getBuilt(VIDEO_JS_10), folder, { recursive: true, filter: isSent })
  const html = page(
    '<script type="module" src="video.js"></script><script type="module" src="media/hls-video.js"></script>',
    `<video-player><video-skin><hls-video src="main.m3u8" muted autoplay playsinline></hls-video></video-skin></video-player>`,
  )
  await writeFile(join(folder, 'index.html'), html)
}

/** @returns the folder of its files */
async function getBuilt({ name, version, integrity, folder: built }: Built): Promise<string> {
  const folder = join(CACHE, `${name.replace(/\W/g, '-')}-${version}`)
  if (existsSync(folder)) return folder
  const unfinished = await mkdtemp(join(CACHE, 'unfinished-video-js-'))
  const run = promisify(execFile)
  const packed = `${name}@${version}`
  const { stdout } = await run('npm', ['pack', packed, '--silent', '--pack-destination', unfinished])
  const archive = join(unfinished, stdout.trim())
  const hash = createHash('sha512').update(await readFile(archive))
  const found = `sha512-${hash.digest('base64')}`
  if (found !== integrity) throw new Error(`${packed} is not the package that it was: ${found}`)
  await run('tar', ['-xzf', archive, '-C', unfinished, '--strip-components=2', `package/${built}`])
  await rm(archive)
  await rename(unfinished, folder)
  return folder
}
