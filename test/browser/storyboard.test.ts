import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilStoryboard } from '../data-folder.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { readSeekPreview } from './in-page.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'

// Pictures over the seek bar, as a viewer sees them. The video has 8.3 seconds: four pictures on one sheet.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  const chapters = [
    { startS: 0, title: 'Hello' },
    { startS: 4, title: 'The end of it' },
  ]
  await reelgate.owner.call('PUT', `/api/videos/${reelgate.videoId}/chapters`, { body: { chapters } })
  await untilStoryboard(reelgate, reelgate.videoId)
  chromium = await startChromiumWithFrameStorage()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

async function watch(viewport = { width: 854, height: 480 }, hasTouch = false): Promise<Player & { requests: string[] }> {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  const player = await openPlayer(
    await chromium.newContext({ viewport, hasTouch, isMobile: hasTouch }),
    playerAddress(reelgate.url, otp),
  )
  const requests: string[] = []
  player.page.on('request', (request) => requests.push(request.url()))
  await player.shows('ready')
  await player.play()
  await player.playsPast(0.2)
  await player.page.keyboard.press('k')
  return Object.assign(player, { requests })
}

const readPreview = ({ frame }: Player) => frame.evaluate(readSeekPreview)

async function pointAt({ page, frame }: Player, share: number) {
  const bar = await frame.locator('media-time-range').boundingBox()
  if (!bar) throw new Error('The player has no seek bar')
  await page.mouse.move(bar.x + 12 + (bar.width - 24) * share, bar.y + bar.height / 2, { steps: 3 })
}

test('B-06: under a moving pointer the seek bar shows the picture of that time, with chapter and time, and loads it only then', async () => {
  const player = await watch()
  const ofStoryboard = () => player.requests.filter((url) => /storyboard/.test(url)).map((url) => url.split('/').at(-1))
  expect(ofStoryboard()).toEqual([])
  for (const [share, place, chapter] of [
    [0.02, '0 0 160 90', 'chapter: Hello'],
    [0.35, '160 0 160 90', 'chapter: Hello'],
    [0.6, '320 0 160 90', 'chapter: The end of it'],
    [0.97, '480 0 160 90', 'chapter: The end of it'],
  ] as const) {
    await pointAt(player, share)
    await expect
      .poll(() => readPreview(player))
      .toEqual({ isShown: true, isWithin: true, hasPicture: true, place, chapter, widerByPx: 0 })
    await player.keepPicture(`storyboard-${share}`)
  }
  expect(ofStoryboard().slice(-2)).toEqual(['storyboard', 'storyboard-0'])
  expect(player.complaints).toEqual([])
})

async function focusSeekBar({ frame }: Player) {
  await frame.evaluate(`(${notePreviews})(${readSeekPreview})`)
  await frame.locator('media-time-range').evaluate((range) => range.shadowRoot?.querySelector('input')?.focus())
}

test('B-06: keys on the seek bar show it, too, until a moment after the last', async () => {
  const player = await watch()
  await focusSeekBar(player)
  const shown = () => player.frame.evaluate(() => window.previews)
  await player.page.keyboard.press('ArrowRight')
  const right = { isShown: true, isWithin: true, hasPicture: true, place: '320 0 160 90' }
  await expect.poll(shown).toContainEqual(expect.objectContaining(right))
  await player.keepPicture('storyboard-keys')
  await player.page.keyboard.press('ArrowLeft')
  await expect.poll(shown).toContainEqual(expect.objectContaining({ isShown: true, place: '0 0 160 90' }))
  await expect.poll(() => readPreview(player)).toMatchObject({ isShown: false })
})

test('B-06: a preview that a key shows stays until its picture was to be seen, however long that loads', async () => {
  const player = await watch()
  const loaded = Promise.withResolvers<void>()
  await player.page.route(/storyboard-0$/, async (route) => {
    await loaded.promise
    await route.continue()
  })
  await focusSeekBar(player)
  await player.page.keyboard.press('ArrowRight')
  await expect.poll(() => readPreview(player)).toMatchObject({ isShown: true, hasPicture: false })
  const shownMs = await player.frame.evaluate(() => performance.now())
  await player.frame.waitForFunction((fromMs) => performance.now() > fromMs + 1_500, shownMs)
  expect(await readPreview(player)).toMatchObject({ isShown: true, hasPicture: false })
  loaded.resolve()
  const pictures = expect.objectContaining({ isShown: true, hasPicture: true, place: '320 0 160 90' })
  await expect.poll(() => player.frame.evaluate(() => window.previews)).toContainEqual(pictures)
  await expect.poll(() => readPreview(player)).toMatchObject({ isShown: false })
})

test.each([
  { width: 320, height: 180 },
  { width: 390, height: 219 },
  { width: 1440, height: 810 },
])('B-06: the picture fits a frame of $width pixels', async (viewport) => {
  const player = await watch(viewport)
  for (const share of [0.02, 0.5, 0.98]) {
    await pointAt(player, share)
    await expect.poll(() => readPreview(player)).toMatchObject({ isShown: true, isWithin: true, hasPicture: true })
    await player.keepPicture(`storyboard-${viewport.width}-${share}`)
  }
})

test('B-12: a finger that is dragged along the seek bar of a phone shows the picture of each place, and seeks where it is lifted', async () => {
  const player = await watch({ width: 390, height: 219 }, true)
  await player.page.mouse.move(0, 0) // a phone has none
  const bar = await player.frame.locator('media-time-range').boundingBox()
  if (!bar) throw new Error('The player has no seek bar')
  const devtools = await player.page.context().newCDPSession(player.page)
  const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', share?: number) => {
    const at = (share: number) => ({ x: bar.x + 8 + (bar.width - 16) * share, y: bar.y + bar.height / 2 })
    return devtools.send('Input.dispatchTouchEvent', { type, touchPoints: share === undefined ? [] : [at(share)] })
  }
  await touch('touchStart', 0.1)
  for (const [share, place] of [
    [0.35, '160 0 160 90'],
    [0.6, '320 0 160 90'],
    [0.95, '480 0 160 90'],
    [0.6, '320 0 160 90'],
  ] as const) {
    await touch('touchMove', share)
    await expect.poll(() => readPreview(player)).toMatchObject({ isShown: true, isWithin: true, hasPicture: true, place })
    await player.keepPicture(`storyboard-finger-${share}`)
  }
  await touch('touchEnd')
  await expect.poll(() => readPreview(player)).toMatchObject({ isShown: false })
  await player.until(({ timeS, seeking }) => !seeking && Math.abs(timeS - 0.6 * 8.34) < 0.4)
  expect(player.complaints).toEqual([])
})

// What follows runs in the page, so it uses nothing of this module.

/** Notes each preview that a viewer sees: on a busy machine one may be gone before a test has asked. */
function notePreviews(read: () => unknown) {
  const previews: unknown[] = []
  window.previews = previews
  const note = () => {
    const preview = read()
    if (JSON.stringify(preview) !== JSON.stringify(previews.at(-1))) previews.push(preview)
    requestAnimationFrame(note)
  }
  note()
}

declare const window: { previews: unknown[] }
declare function requestAnimationFrame(run: () => void): void
