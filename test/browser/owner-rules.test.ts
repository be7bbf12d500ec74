import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// What an owner's rules look like to a viewer. The sites are names of this machine, which a browser holds secure without TLS; each is
// an origin of its own.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let browser: BrowserContext
let sites: Server
let video: string
/** What each path of a site shows. */
const pages = new Map<string, string>()

beforeAll(async () => {
  reelgate = await startSharedReelgate({
    env: { REELGATE_TRUSTED_PROXIES: '127.0.0.1' },
    video: await makeSmallVideo(),
    title: 'Small video',
  })
  chromium = await startChromiumWithFrameStorage()
  browser = await chromium.newContext()
  video = reelgate.videoId
  sites = createServer((request, response) => {
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>A site</title><link rel="icon" href="data:,">${pages.get(request.url ?? '') ?? ''}`)
  }).listen(0, '127.0.0.1')
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  sites?.close()
})

const addressOf = (host: string, path = '/') => `http://${host}:${(sites.address() as AddressInfo).port}${path}`
const frameOf = (src: string, more = '') =>
  `<iframe src="${src}" width="640" height="360" allow="encrypted-media; fullscreen" ${more}></iframe>`
const unspent = () => readRows(reelgate, 'select hash from otp where spent_at_s is null').length

/** A page of a site with the player in a frame. */
async function openSite(host: string, whitelisthref: string, more = ''): Promise<Page> {
  const otp = await reelgate.owner.issueOtp(video, { whitelisthref })
  pages.set('/', frameOf(playerAddress(reelgate.url, otp), more))
  const page = await openTab(browser)
  await page.goto(addressOf(host))
  return page
}

function playerIn(page: Page, depth = 1): Player {
  const frame = page.frames().at(depth)
  if (!frame) throw new Error('The page has no frame')
  return lookAtPlayer(page, frame)
}

describe('P13: on a site of the whitelist the video plays, and continues after a reload of its frame', () => {
  const ALLOWED = [
    ['the host itself', 'school.localhost', 'school.localhost'],
    ['a subdomain of the host', 'www.school.localhost', 'school.localhost'],
    ['a host that an expression matches', 'school.localhost', '^(www\\.)?school\\.'],
  ] as const

  test.each(sampleOf('sites of the whitelist', ALLOWED, 1))('%s', async (_what, host, whitelisthref) => {
    const player = playerIn(await openSite(host, whitelisthref))
    await player.play()
    await player.playsPast(0.5)
    await player.frame.evaluate('location.reload()')
    await player.shows('ready')
    await player.play()
    await player.playsPast(0.5)
  })
})

describe('P13: on another site there is no player', () => {
  const ANOTHER = ['evil.localhost', 'evil-school.localhost', 'school.localhost.evil.localhost']

  test.each(sampleOf('other sites', ANOTHER, 1))('%s shows one sentence', async (host) => {
    for (const whitelisthref of ['school.localhost', '^school\\.localhost$']) {
      const before = unspent()
      const player = playerIn(await openSite(host, whitelisthref))
      await player.shows('refused', 'site-not-allowed')
      expect(await player.sentence()).toBe('This video may not be shown on this site. Watch it on the site it belongs to.')
      expect(await player.frame.locator('video').count()).toBe(0)
      expect(unspent()).toBe(before + 1)
    }
  })

  test('one that hides which site it is: the browser itself refuses the frame', async () => {
    const before = unspent()
    const page = await openSite('evil.localhost', 'school.localhost', 'referrerpolicy="no-referrer"')
    await expect.poll(() => page.frames().at(1)?.url()).toMatch(/^chrome-error:/)
    expect(unspent()).toBe(before + 1)
  })

  test('one around a page of an allowed site: the browser refuses the inner frame', async () => {
    const before = unspent()
    const otp = await reelgate.owner.issueOtp(video, { whitelisthref: 'school.localhost' })
    pages.set('/lesson', frameOf(playerAddress(reelgate.url, otp)))
    pages.set('/around', frameOf(addressOf('school.localhost', '/lesson')))
    const page = await openTab(browser)
    await page.goto(addressOf('evil.localhost', '/around'))
    await expect.poll(() => page.frames().at(2)?.url()).toMatch(/^chrome-error:/)
    expect(unspent()).toBe(before + 1)
  })

  const SCREENS: readonly [string, BrowserContextOptions][] = [
    ['desktop', { viewport: { width: 1280, height: 720 } }],
    ['phone', { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2 }],
  ]

  test.each(sampleOf('screens of a forbidden site', SCREENS, 1))('opened by itself it says so, on a %s', async (name, screen) => {
    const otp = await reelgate.owner.issueOtp(video, { whitelisthref: 'school.localhost' })
    const player = lookAtPlayer(await openTab(await chromium.newContext(screen)))
    await player.page.goto(playerAddress(reelgate.url, otp))
    await player.shows('refused', 'site-not-allowed')
    await player.keepPicture(`site-not-allowed-${name}`)
    const box = await player.frame.locator('.panel .sentence').boundingBox()
    const { width, height } = player.page.viewportSize() ?? { width: 0, height: 0 }
    expect(box && box.x >= 0 && box.x + box.width <= width && box.y > height / 4 && box.y < (3 * height) / 4).toBe(true)
    expect(player.complaints.filter((text) => !text.includes('403'))).toEqual([])
  })
})

test('a viewer who leaves the place where the video may be watched sees why it stops, and can continue when back', async () => {
  const otp = await reelgate.owner.issueOtp(video, { ipGeo: { allow: ['192.0.2.0/24'] } })
  const player = lookAtPlayer(await openTab(browser))
  const isAt = (address: string) => player.page.setExtraHTTPHeaders({ 'X-Forwarded-For': address })
  await isAt('198.51.100.1')
  await player.page.goto(playerAddress(reelgate.url, otp))
  await player.shows('refused', 'place-not-allowed')
  expect(await player.sentence()).toBe(
    'This video may not be watched from where you are. If you use a VPN, switch it off, then try again.',
  )
  await player.keepPicture('place-not-allowed')

  await isAt('192.0.2.1')
  await player.press('Try again')
  await player.shows('ready')
  await player.play()
  await player.playsPast(0.5)
  await isAt('198.51.100.1')
  await player.shows('refused', 'place-not-allowed')
  const { timeS } = await player.video()
  await isAt('192.0.2.1')
  await player.press('Try again')
  await player.playsPast(timeS + 0.5)
})
