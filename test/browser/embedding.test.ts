import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { findColour, type Spot } from './frame-pixels.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'
import { makeSmallVideo } from './videos.ts'

// The player in a frame of the owner's own site, which is another site to the browser. That it plays on after a reload: storage.test.ts.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let browser: BrowserContext
let video: string
const school = startSite()

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromiumWithFrameStorage('--host-resolver-rules=MAP school.example 127.0.0.1')
  browser = await chromium.newContext()
  video = reelgate.videoId
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  school.close()
})

test('P15: the player in a frame fills the screen, the viewer’s mark included, where the site allows it', async () => {
  const mark = { type: 'text', text: 'Ada', color: '0xff00ff', size: '40', x: '40%', y: '40%' }
  const page = await openLesson('localhost', 'allow="encrypted-media; fullscreen"', { annotate: JSON.stringify([mark]) })
  const player = framedPlayer(page)
  await player.play()
  await player.playsPast(0.5)
  await page.mouse.move(400, 300)
  await player.press('enter fullscreen mode')
  await player.frame.waitForSelector('media-controller:fullscreen')
  const { width } = page.viewportSize() ?? { width: 0 }
  await expect.poll(async () => (await player.video()).shownWidthPx).toBe(width)
  const watermark = async () => findColour(await player.screenshot('full-screen'), [255, 0, 255])
  await expect.poll(watermark).toSatisfy(({ pixels, leftPx }: Spot) => pixels > 100 && Math.abs(leftPx - 0.4 * width) < 10)
})

const SANDBOXES_THAT_PLAY = [
  'allow-scripts allow-same-origin',
  'allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox allow-presentation',
]

test.each(sampleOf('sandboxes that play', SANDBOXES_THAT_PLAY, 1))(
  'in a frame with sandbox="%s" the video plays, fills the screen, and continues after a reload',
  async (sandbox) => {
    const page = await openLesson('localhost', `sandbox="${sandbox}" allow="fullscreen"`)
    const player = framedPlayer(page)
    await player.play()
    await player.playsPast(0.5)
    await page.mouse.move(400, 300)
    await player.press('enter fullscreen mode')
    await player.frame.waitForSelector('media-controller:fullscreen')
    await page.reload()
    const again = framedPlayer(page)
    await again.play()
    await again.playsPast(0.5)
    expect([...player.complaints, ...again.complaints]).toEqual([])
  },
)

const SANDBOXES_WITHOUT_STORAGE = ['allow-scripts', 'allow-scripts allow-forms allow-popups allow-presentation']

test.each(sampleOf('sandboxes without storage', SANDBOXES_WITHOUT_STORAGE, 1))(
  'in a frame with sandbox="%s" the sentence names the missing permission, and the link is not spent',
  async (sandbox) => {
    const otp = await reelgate.owner.issueOtp(video)
    const page = await openTab(browser)
    const address = playerAddress(reelgate.url, otp)
    await page.goto(school.put(`<iframe src="${address}" width="640" height="360" sandbox="${sandbox}"></iframe>`))
    const player = framedPlayer(page)
    await player.shows('refused', 'sandboxed-frame')
    expect(await player.sentence()).toContain('allow-same-origin')
    await page.goto(address)
    await lookAtPlayer(page).shows('ready')
  },
)

test('on a site without https the sentence says that its own page needs it', async () => {
  const player = framedPlayer(await openLesson('school.example', 'allow="encrypted-media; fullscreen"'))
  await player.shows('refused', 'insecure-page')
  expect(await player.sentence()).toMatch(/Open school\.example:\d+ with https:\/\/ in front\./)
})

async function openLesson(host: string, permissions: string, options: Record<string, unknown> = {}): Promise<Page> {
  const otp = await reelgate.owner.issueOtp(video, options)
  const frame = `<iframe src="${playerAddress(reelgate.url, otp)}" width="640" height="360" ${permissions}></iframe>`
  const page = await openTab(browser)
  await page.goto(school.put(frame, host))
  return page
}

function framedPlayer(page: Page): Player {
  const frame = page.frames().at(1)
  if (!frame) throw new Error('The page has no frame')
  return lookAtPlayer(page, frame)
}
