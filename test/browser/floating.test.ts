import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// Picture in picture: a small window of the browser, which shows the video alone. So never a video with a watermark.

const WATERMARK = { annotate: [{ type: 'text', text: 'reader@example.org', x: '5%', y: '45%' }] }
/** Nothing listens there. */
const NOWHERE = '127.0.0.1:9'

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({
    video: await makeSmallVideo(),
    title: 'Small video',
    env: { REELGATE_OUTBOUND_ALLOW: NOWHERE },
  })
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

/** @param withoutHeader as a proxy would send the page that drops headers */
async function play(otpOptions: Record<string, unknown>, withoutHeader = false): Promise<Player> {
  const page = await openTab(await chromium.newContext())
  const player = lookAtPlayer(page)
  if (withoutHeader) {
    await page.route('**/player/?*', async (route) => {
      const response = await route.fetch()
      const { 'permissions-policy': _, ...headers } = response.headers()
      await route.fulfill({ response, headers })
    })
  }
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId, otpOptions)))
  await player.play()
  await player.playsPast(0.3)
  return player
}

const isFloating = ({ page }: Player) => page.evaluate("document.pictureInPictureElement?.localName === 'video'")

/** As a script of an extension does, right after a key was pressed. @returns its outcome */
async function floatByScript({ page }: Player): Promise<unknown> {
  await page.evaluate(`void (window.outcome = new Promise((resolve) => addEventListener('keydown', () => {
    const video = document.querySelector('video')
    video.disablePictureInPicture = false
    video.requestPictureInPicture().then(() => resolve('floats'), ({ name }) => resolve(name))
  })))`)
  await page.keyboard.press('z')
  return page.evaluate('window.outcome')
}

test('a video without a watermark floats by its button and comes back by it', async () => {
  const player = await play({})
  await player.page.mouse.move(10, 10)
  await player.press('Picture in picture')
  await expect.poll(() => isFloating(player)).toBe(true)
  await player.page.getByRole('button', { name: 'Picture in picture', pressed: true }).waitFor()
  expect((await player.video()).paused).toBe(false)
  await player.press('Picture in picture')
  await expect.poll(() => isFloating(player)).toBe(false)
  expect(player.complaints).toEqual([])
})

test('a video with a watermark has no such button, and the browser lets no script float it', async () => {
  const player = await play(WATERMARK)
  expect(await player.page.getByRole('button', { name: 'Picture in picture' }).count()).toBe(0)
  expect(await player.page.evaluate("document.querySelector('video').disablePictureInPicture")).toBe(true)
  expect(await floatByScript(player)).toBe('SecurityError')
  await player.openSettings()
  expect(await player.page.getByRole('menuitem', { name: 'Picture in picture' }).count()).toBe(0)
})

test('a video with a watermark that floats without a call to the browser returns immediately, and pauses', async () => {
  const player = await play(WATERMARK, true)
  expect(await floatByScript(player)).toBe('floats')
  await player.until(({ paused }) => paused)
  await expect.poll(() => isFloating(player)).toBe(false)
})

test('a watermark that was asked for counts, also one whose image cannot be fetched', async () => {
  const { owner, url, videoId } = reelgate
  const annotate = [{ type: 'image', url: `http://${NOWHERE}/none.png` }]
  const policyOf = async (otp: string) => (await fetch(playerAddress(url, otp))).headers.get('Permissions-Policy')
  const otp = await owner.issueOtp(videoId, { annotate })
  const plain = await owner.issueOtp(videoId)
  expect(await policyOf(otp)).toBe('picture-in-picture=()')
  expect(await policyOf(plain)).toBe('picture-in-picture=(self)')
  expect(await reelgate.newViewer().redeem(otp)).toMatchObject({ playing: true, body: { marks: [], mayFloat: false } })
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(plain)).toMatchObject({ playing: true, body: { mayFloat: true } })
  const ofSession = await fetch(`${url}/player/?session=${viewer.state.session}`)
  expect(ofSession.headers.get('Permissions-Policy')).toBe('picture-in-picture=(self)')
})
