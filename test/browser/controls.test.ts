import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'

const { test, draw } = sampledTests('controls of the player', 3)

// The player's controls, by pointer and by single keys. With keys alone: keyboard.test.ts. Their names: accessibility.test.ts.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let video: string

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  chromium = await startChromium()
  video = reelgate.videoId
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('an OTP with a forced bitrate holds the rendition nearest to it and offers no other', async () => {
  const player = await watch({ forcedBitrate: 1300 })
  await player.play()
  await player.playsPast(4.5) // past the first segment, where an automatic choice would have looked for better
  expect(await player.video()).toMatchObject({ widthPx: 854, heightPx: 480 })
  await player.openSettings()
  expect(await player.page.getByRole('menuitemradio').allInnerTexts()).toEqual(expect.arrayContaining(['Normal', '2 ×']))
  expect(await player.page.getByRole('menuitemradio', { name: /\d+p|Automatic/ }).count()).toBe(0)
})

test('the bar hides after a click on the large play button, even if the pointer stays where it is', async () => {
  const player = await watch()
  await player.play()
  await player.frame.waitForSelector('media-controller:not([userinactive])')
  await player.playsPast(0)
  await player.frame.waitForSelector('media-controller[userinactive]')
  expect((await player.video()).paused).toBe(false)
})

test('while the bar is hidden, a playing video draws nothing else on the page; the spinner is there when it has to wait', async () => {
  const player = await watch()
  const spinner = player.page.locator('media-loading-indicator')
  await player.play()
  await player.frame.waitForSelector('media-controller[userinactive]')
  expect(await spinner.isVisible()).toBe(false)
  const pagesDrawnInTwoSeconds = async () => {
    await chromium.startTracing(player.page, { categories: ['cc'] })
    const { framesDecoded } = await player.video()
    await player.until((video) => video.framesDecoded > framesDecoded + 50)
    const { traceEvents } = JSON.parse((await chromium.stopTracing()).toString()) as { traceEvents: { name: string }[] }
    return traceEvents.filter(({ name }) => name === 'ProxyMain::BeginMainFrame').length
  }
  // With each of its four time updates a second, at most. An animation draws it sixty times.
  await expect.poll(pagesDrawnInTwoSeconds).toBeLessThan(40)

  const isSent = Promise.withResolvers<void>()
  await player.page.route('**/*.m4s', async (route) => {
    await isSent.promise
    await route.continue()
  })
  await player.chooseSetting('Quality', '720p')
  await player.seekNear(1)
  await spinner.waitFor({ state: 'visible' })
  isSent.resolve()
  await spinner.waitFor({ state: 'hidden' })
})

test('space, arrows, m and f do what viewers know them for', async () => {
  const player = await watch()
  const { keyboard } = player.page
  await player.shows('ready')
  await keyboard.press('Space')
  await player.playsPast(0.5)
  await keyboard.press('Space')
  const { timeS } = await player.until(({ paused }) => paused)

  await keyboard.press('ArrowRight')
  await player.until((video) => Math.abs(video.timeS - Math.min(timeS + 5, video.durationS)) < 0.5)
  await keyboard.press('ArrowLeft')
  await player.until((video) => Math.abs(video.timeS - timeS) < 0.5)

  await keyboard.press('m')
  await player.until(({ muted }) => muted)
  await keyboard.press('m')
  await player.until(({ muted }) => !muted)

  await keyboard.press('f')
  await player.page.waitForSelector('media-controller:fullscreen')
  await keyboard.press('f')
  await player.page.waitForSelector('media-controller:not(:fullscreen)')
})

test('the title shows in the player unless `title=off`, and on lock screens always; keys of headsets seek', async () => {
  const watchTitle = async (options: string) => {
    const context = await chromium.newContext({ viewport: { width: 640, height: 360 } })
    await context.addInitScript(`{
      window.asked = {}
      const set = MediaSession.prototype.setActionHandler
      MediaSession.prototype.setActionHandler = function (name, handler) { window.asked[name] = handler; set.call(this, name, handler) }
    }`)
    return openPlayer(context, playerAddress(reelgate.url, await reelgate.owner.issueOtp(video, {}), options))
  }
  const shown = await watchTitle('')
  await shown.shows('ready')
  expect(await shown.page.locator('.title').textContent()).toBe('Hello')
  const hidden = await watchTitle('&title=off')
  await hidden.play()
  await hidden.playsPast(0.3)
  expect(await hidden.page.locator('.title').textContent()).toBe('')
  expect(await hidden.page.evaluate('navigator.mediaSession.metadata.title')).toBe('Hello')
  await hidden.page.keyboard.press('k')
  await hidden.page.evaluate("window.asked.seekto({ action: 'seekto', seekTime: 4 })")
  await hidden.until(({ timeS }) => timeS === 4)
})

test('P-18: while a video plays the screen stays on, and lock screens show its poster, state, place and speed', async () => {
  const context = await chromium.newContext({ permissions: ['screen-wake-lock'] }) // which Chromium with windows grants by itself
  await context.addInitScript(`{
    window.locks = []
    const request = WakeLock.prototype.request
    WakeLock.prototype.request = async function (type) {
      const lock = await request.call(this, type)
      locks.push(lock)
      return lock
    }
    const setPositionState = MediaSession.prototype.setPositionState
    MediaSession.prototype.setPositionState = function (position) { window.position = position; setPositionState.call(this, position) }
  }`)
  const player = await openPlayer(context, playerAddress(reelgate.url, await reelgate.owner.issueOtp(video), '&loop=true'))
  const state = () => player.page.evaluate<unknown>('navigator.mediaSession.playbackState')
  const isScreenHeld = () => player.page.evaluate('locks.some(({ released }) => !released)')
  await player.play()
  await player.playsPast(0.5)
  await expect.poll(isScreenHeld).toBe(true)
  expect(await state()).toBe('playing')
  const [artwork] = await player.page.evaluate<{ src: string }[]>('navigator.mediaSession.metadata.artwork')
  expect((await fetch(artwork?.src ?? '')).headers.get('Content-Type')).toBe('image/jpeg')

  await player.page.keyboard.press('k')
  await expect.poll(isScreenHeld).toBe(false)
  expect(await state()).toBe('paused')
  const { timeS, durationS } = await player.video()
  expect(await player.page.evaluate('window.position')).toEqual({ duration: durationS, position: timeS, playbackRate: 1 })
  await player.chooseSetting('Speed', '2 ×')
  expect(await player.page.evaluate('window.position')).toMatchObject({ playbackRate: 2 })

  await player.page.keyboard.press('k')
  await expect.poll(isScreenHeld).toBe(true)
  expect((await reelgate.owner.call('DELETE', `/api/sessions?video=${video}`)).status).toBe(200)
  await player.shows('refused', 'session-ended.stopped')
  await expect.poll(isScreenHeld).toBe(false)
  expect(await state()).toBe('none')
})

async function watch(options: Record<string, unknown> = {}): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(video, options)
  return openPlayer(await chromium.newContext(), playerAddress(reelgate.url, otp, '&loop=true'))
}

draw()
