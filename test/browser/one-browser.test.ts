import { request as httpRequest } from 'node:http'
import type { Browser, Page, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { fetchStatus, tryStoredKeys } from './in-page.ts'
import { lookAtPlayer, openPlayer, openTab, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// A playback session belongs to the one browser that redeemed: there it survives reloads; elsewhere nothing of it plays.

const { test: sampled, draw } = sampledTests('copied requests', 1)

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let video: string

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromium()
  video = reelgate.videoId
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('O09: a link preview or a prefetch of the player page does not spend the link', async () => {
  const otp = await reelgate.owner.issueOtp(video)
  const address = playerAddress(reelgate.url, otp)
  await fetch(address, { method: 'HEAD' })
  await fetch(address, { method: 'OPTIONS' })
  expect((await fetch(address, { headers: { Purpose: 'prefetch', 'Sec-Purpose': 'prefetch' } })).status).toBe(200)
  expect((await fetch(address, { headers: { 'User-Agent': 'LinkPreviewBot/1.0' } })).status).toBe(200)
  const player = await openPlayer(await chromium.newContext(), address)
  await player.shows('ready')
})

test('a reload continues in the same session, near where the viewer was, and so does going back from another page', async () => {
  const player = await openPlayer(await chromium.newContext(), playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
  const isReported = player.page.waitForResponse(
    (response) => response.url().endsWith('/beat') && response.request().postDataJSON().positionS > 6,
  )
  await player.play()
  await player.playsPast(0.3)
  const seekedToS = await player.seekNear(6.5) // so near to its beginning the browser itself remembers no place
  await player.playsPast(seekedToS + 0.3)
  await player.page.keyboard.press('k')
  await isReported
  const address = player.page.url()

  await player.page.reload()
  expect((await player.playFromFirstFrame()).mediaTimeS).toBeGreaterThan(6)
  await player.page.goto('about:blank')
  await player.page.goBack()
  expect((await player.playFromFirstFrame()).mediaTimeS).toBeGreaterThan(6)
  expect(player.page.url()).toBe(address)
  expect(player.complaints).toEqual([])
})

test('O08: after the video has opened, the link is neither in the address bar nor in the history', async () => {
  const otp = await reelgate.owner.issueOtp(video)
  const browser = await chromium.newContext()
  const player = await openPlayer(browser, playerAddress(reelgate.url, otp, '&loop=true'))
  await player.shows('ready')
  expect(player.page.url()).toBe(`${reelgate.url}/player/?session=${sessionOf(player.page)}&loop=true`)
  await player.page.reload()
  await player.shows('ready')
  const { entries } = await (await browser.newCDPSession(player.page)).send('Page.getNavigationHistory')
  expect(entries.map(({ url }) => url).join(' ')).not.toContain(otp)
})

test('no script on the page can take the session’s key out of the browser, or derive another from it', async () => {
  const player = await openPlayer(await chromium.newContext(), playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
  await player.shows('ready')
  const keys = await player.page.evaluate(tryStoredKeys)
  expect(keys.map(({ usages }) => usages)).toEqual([['sign'], ['sign']]) // by the OTP's hash and by the session's id
  for (const { outcomes } of keys)
    for (const outcome of outcomes) expect(outcome).toMatch(/^(InvalidAccessError|NotSupportedError)$/)
})

test('of two tabs the newer plays; the older says so, and plays on where the viewer asks for it', async () => {
  const browser = await chromium.newContext()
  const older = await openPlayer(browser, playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
  await older.play()
  await older.playsPast(0.5)
  const newer = await openPlayer(browser, older.page.url())
  await newer.play()
  await newer.playsPast(0.5)

  await older.page.evaluate(`document.querySelector('video').currentTime = 50`) // for which it needs a key
  await older.shows('refused', 'page-replaced')
  expect(await older.sentence()).toBe('This video is playing in another tab or window.')
  await older.keepPicture('other-tab')
  await older.press('Play here')
  const { timeS } = await older.playsPast(0.5)
  await older.playsPast(timeS + 0.5)
  await newer.shows('refused', 'page-replaced')
})

sampled(
  'P01, P03: everything a browser sent, copied with every header and cookie, gives no key and nothing but ciphertext',
  async () => {
    const browser = await chromium.newContext()
    const page = await openTab(browser)
    const sent = recordRequests(page)
    const player = lookAtPlayer(page)
    await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
    await player.play()
    await player.playsPast(1)
    const copied = await Promise.all(sent.map(copyOf))
    const keys = await Promise.all(sent.filter(isFor('/key/')).map(bodyOf))
    expect(keys.length).toBeGreaterThan(0)
    for (const key of keys) expect(key.length).toBe(16)

    for (const copy of copied.filter(({ url }) => new URL(url).pathname.startsWith('/play/'))) {
      const answer = await replay(copy)
      expect([401, 403], `${copy.method} ${copy.url}`).toContain(answer.status)
      for (const key of keys) expect(answer.body.includes(key), copy.url).toBe(false)
    }

    const segments = copied.filter(({ url }) => url.endsWith('.m4s'))
    expect(segments.length).toBeGreaterThan(2)
    for (const copy of segments) expectCiphertext((await replay(copy)).body)

    const { timeS } = await player.video()
    await player.playsPast(timeS + 0.5) // the owner of the session is not disturbed
  },
)

sampled('P01: a playlist’s and a key’s address give nothing to another browser', async () => {
  const page = await openTab(await chromium.newContext())
  const sent = recordRequests(page)
  const player = lookAtPlayer(page)
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
  await player.play()
  await player.playsPast(0.5)
  const other = await openPlayer(await chromium.newContext(), playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
  await other.shows('ready')
  for (const request of [...sent.filter(isFor('/playlist/')), ...sent.filter(isFor('/key/'))]) {
    const proof = (await request.allHeaders())['reelgate-proof'] ?? ''
    expect(await other.page.evaluate(fetchStatus, { url: request.url() })).toBe(403)
    expect(await other.page.evaluate(fetchStatus, { url: request.url(), proof })).toBe(401) // each proof works once
  }
})

draw()

function sessionOf(page: Page): string {
  return new URL(page.url()).searchParams.get('session') ?? ''
}

function recordRequests(page: Page): Request[] {
  const sent: Request[] = []
  page.on('requestfinished', (request) => sent.push(request))
  return sent
}

const isFor = (part: string) => (request: Request) => request.url().includes(part)

async function bodyOf(request: Request): Promise<Buffer> {
  return (await request.response())?.body() ?? Buffer.alloc(0)
}

type Copy = { method: string; url: string; headers: [string, string][]; body: Buffer | null }

async function copyOf(request: Request): Promise<Copy> {
  const headers = (await request.headersArray()).map(({ name, value }): [string, string] => [name, value])
  return { method: request.method(), url: request.url(), headers, body: request.postDataBuffer() }
}

/** Sends a copied request from this process, byte for byte as far as HTTP allows. */
function replay({ method, url, headers, body }: Copy): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const sending = httpRequest(url, { method, headers: headers.flat() }, async (response) => {
      const parts: Buffer[] = await Array.fromAsync(response)
      resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts) })
    })
    sending.on('error', reject)
    sending.end(body ?? undefined)
  })
}

function expectCiphertext(bytes: Buffer) {
  expect(bytes.toString('latin1')).not.toMatch(/\0[\s\S]{3}(ftyp|styp|sidx|moof|traf|mdat)/)
  expect(bytes.length % 16).toBe(0)
  expect(entropyBits(bytes)).toBeGreaterThan(7.9)
}

/** Bits a byte, by how often each value occurs: 8 for random bytes. */
function entropyBits(bytes: Buffer): number {
  const counts = new Array<number>(256).fill(0)
  for (const byte of bytes) counts[byte] = (counts[byte] ?? 0) + 1
  return counts
    .filter((count) => count > 0)
    .reduce((bits, count) => bits - (count / bytes.length) * Math.log2(count / bytes.length), 0)
}
