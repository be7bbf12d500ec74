import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addFile, listFiles } from '../assets/sample-files.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { findColour, type Rgb, type Spot } from './frame-pixels.ts'
import { readCaptions } from './in-page.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'
import { makeDarkVideo } from './videos.ts'

const { test: sampled, draw } = sampledTests('captions in a browser', 1)

// Captions as a viewer meets them.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let video: string

const ENGLISH = '1\n00:00:00,000 --> 00:02:00,000\nA hello in <i>English</i> &lt;script&gt;\n'
const GERMAN = 'WEBVTT\n\n00:00.000 --> 02:00.000\nEin Hallo auf Deutsch\n'
/** Without gaps, so that the screen shows one box: where captions are, or in the middle of the picture. */
const BOX = `WEBVTT\n\n00:00.000 --> 02:00.000\n${'█'.repeat(20)}\n`
const MIDDLE = BOX.replace('02:00.000', '02:00.000 line:45%')

const GREEN: Rgb = [0, 255, 0]
const MAGENTA: Rgb = [255, 0, 255]
const MARK = { type: 'text', text: '███', size: 20, color: '0xff00ff', alpha: 1, x: '46%', y: '37.3%' }

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeDarkVideo(), title: 'Hello' })
  chromium = await startChromium()
  video = reelgate.videoId
  await addFile(reelgate.owner, video, ENGLISH, 'en')
  await addFile(reelgate.owner, video, GERMAN, 'de')
  await addFile(reelgate.owner, video, BOX, 'fr')
  await addFile(reelgate.owner, video, MIDDLE, 'es')
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const WANDERING = { type: 'rtext', text: 'ann@example.org' }

async function watch(options = '', { videoId = video, mark = WANDERING as object, widthPx = 854 } = {}): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(videoId, { annotate: [mark] })
  const context = await chromium.newContext({ viewport: { width: widthPx, height: Math.round((widthPx * 9) / 16) } })
  return openPlayer(context, playerAddress(reelgate.url, otp, `${options}&loop=true`))
}

/** The captions that show now, as text. */
const shown = ({ frame }: Player) => frame.evaluate(readCaptions)

test('captions of the embedder’s language show by themselves', async () => {
  const player = await watch('&ccLanguage=de')
  await player.play()
  await player.playsPast(1)
  await expect.poll(() => shown(player)).toEqual(['Ein Hallo auf Deutsch'])
})

test('captions are off until they are chosen: by language in the settings, on and off by c and by their button', async () => {
  const player = await watch()
  await player.play()
  await player.playsPast(1)
  expect(await shown(player)).toEqual([])
  await player.openSettings()
  const choices = player.page.getByRole('group', { name: 'Captions' }).getByRole('menuitemradio')
  expect(await choices.allInnerTexts()).toEqual(['Off', 'Deutsch', 'English', 'Español', 'Français'])
  await choices.filter({ hasText: 'English' }).click()
  await expect.poll(() => shown(player)).toEqual(['A hello in <i>English</i> &lt;script&gt;'])
  await expect.poll(() => choices.filter({ hasText: 'English' }).getAttribute('aria-checked')).toBe('true')
  await player.page.keyboard.press('Escape')
  await player.page.keyboard.press('c')
  await expect.poll(() => shown(player)).toEqual([])
  await player.page.keyboard.press('c')
  await expect.poll(() => shown(player)).toEqual(['A hello in <i>English</i> &lt;script&gt;'])
  await player.page.locator('media-captions-button').click()
  await expect.poll(() => shown(player)).toEqual([])
  expect(player.complaints).toEqual([])
})

sampled('off and on again, however fast, shows the captions that showed before', async () => {
  const player = await watch('&ccLanguage=en')
  await player.play()
  await expect.poll(() => shown(player)).toEqual(['A hello in <i>English</i> &lt;script&gt;'])
  const fast = `for (const key of 'cccc') document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))`
  await player.frame.evaluate(fast)
  await player.page.keyboard.press('c')
  await expect.poll(() => shown(player)).toEqual([])
  await player.page.keyboard.press('c')
  await expect.poll(() => shown(player)).toEqual(['A hello in <i>English</i> &lt;script&gt;'])
})

sampled('a caption shows once, however often its video goes round and captions are turned off and on', async () => {
  const player = await watch('&ccLanguage=en')
  await player.play()
  for (let round = 0; round < 3; round++) {
    await player.playsPast(1)
    await player.chooseSetting('Captions', 'Deutsch')
    await expect.poll(() => shown(player)).toEqual(['Ein Hallo auf Deutsch'])
    await player.frame.evaluate(`document.querySelector('video').currentTime = 59`)
    await expect.poll(() => player.frame.evaluate(`document.querySelector('video').currentTime < 5`)).toBe(true)
    await expect.poll(() => shown(player)).toEqual(['Ein Hallo auf Deutsch'])
    await player.chooseSetting('Captions', 'English')
    await expect.poll(() => shown(player)).toEqual(['A hello in <i>English</i> &lt;script&gt;'])
  }
})

const whichStyle = (player: Player) =>
  player.page.getByRole('menuitemradio', { checked: true }).evaluateAll((items) => items.map(({ textContent }) => textContent))

test('how captions look is chosen by keyboard in the settings, is kept for the next visit, and can be reset', async () => {
  const player = await watch('&ccLanguage=fr')
  const { keyboard } = player.page
  await player.play()
  await player.playsPast(0.5)
  await keyboard.press('k')
  await player.until(({ paused }) => paused)
  await player.openSettings()
  await player.page.getByRole('menuitem', { name: 'Caption style' }).focus()
  await keyboard.press('Enter')
  const page = player.page.getByRole('menu', { name: 'Caption style' })
  await page.waitFor()
  expect(await whichStyle(player)).toEqual(['Normal', 'White', 'Translucent', 'None'])
  for (const key of ['ArrowDown', 'Enter', 'ArrowRight', 'Home', 'ArrowDown', 'Enter']) await keyboard.press(key)
  await expect.poll(() => whichStyle(player)).toEqual(['Large', 'Yellow', 'Translucent', 'None'])
  await player.keepPicture('caption-style')
  // Yellow on white could not be read.
  await page.getByRole('menuitemradio', { name: 'White' }).nth(1).click()
  expect(await whichStyle(player)).toEqual(['Large', 'Black', 'White', 'None'])
  await page.getByRole('menuitemradio', { name: 'Yellow' }).click()
  expect(await whichStyle(player)).toEqual(['Large', 'Yellow', 'Translucent', 'None'])
  await keyboard.press('Escape') // to the settings, then out of them
  await player.page.getByRole('menu', { name: 'Settings' }).waitFor()
  await keyboard.press('Escape')
  const yellow = () => player.screenshot('captions-yellow').then((png) => findColour(png, [255, 255, 0]))
  await expect.poll(async () => (await yellow()).pixels).toBeGreaterThan(500)

  await player.page.reload()
  await player.play()
  await player.playsPast(0.5)
  await expect.poll(async () => (await yellow()).pixels).toBeGreaterThan(500)
  await player.openSettings()
  await player.page.getByRole('menuitem', { name: 'Caption style' }).click()
  await player.page.getByRole('menuitem', { name: 'Reset' }).click()
  expect(await whichStyle(player)).toEqual(['Normal', 'White', 'Translucent', 'None'])
  await player.page.getByRole('menuitem', { name: 'Back' }).click()
  await player.page.keyboard.press('Escape')
  await expect.poll(async () => (await yellow()).pixels).toBe(0)
  expect(player.complaints).toEqual([])
})

/** Where the captions are on the screen, which are green from here on. */
async function whereCaptionsAre({ page, screenshot }: Player, name: string): Promise<Spot> {
  await page.evaluate(`{
    const sheet = new CSSStyleSheet()
    sheet.replaceSync('::cue { color: #0f0 !important }')
    document.adoptedStyleSheets = [sheet]
  }`)
  return findColour(await screenshot(name), GREEN)
}

sampled.each([1280, 390])(
  'in a player %i pixels wide, captions stay clear of the controls while they show, and come down after that',
  async (widthPx) => {
    const player = await watch('&ccLanguage=fr', { widthPx })
    await player.play()
    await player.playsPast(0.5)
    await expect.poll(() => shown(player)).toHaveLength(1)
    await player.frame.locator('media-time-display').hover() // under the pointer the bar stays
    await player.frame.waitForSelector('media-controller:not([userinactive])')
    const controls = await player.frame.locator('media-control-bar > *:visible').all()
    const tops = await Promise.all(controls.map(async (control) => (await control.boundingBox())?.y ?? 0))
    expect(new Set(tops.map(Math.round)).size).toBe(widthPx < 560 ? 2 : 1) // rows
    const top = Math.min(...tops)
    // A screenshot may come before the cue is drawn, or while the video begins again.
    await expect
      .poll(async () => {
        await player.frame.locator('media-time-display').hover() // on a busy machine the bar may have been about to hide
        return whereCaptionsAre(player, `captions-raised-${widthPx}`)
      })
      .toSatisfy(({ pixels, bottomPx }: Spot) => pixels > 500 && bottomPx <= top)
    await player.page.mouse.move(widthPx / 2, widthPx / 4)
    await player.frame.waitForSelector('media-controller[userinactive]')
    await expect
      .poll(() => whereCaptionsAre(player, `captions-lowered-${widthPx}`))
      .toSatisfy(({ bottomPx }: Spot) => bottomPx > top)
    // Paused, the bar stays and so do captions above it.
    await player.page.keyboard.press('k')
    await player.until(({ paused }) => paused)
    await expect
      .poll(() => whereCaptionsAre(player, `captions-paused-${widthPx}`))
      .toSatisfy(({ pixels, bottomPx }: Spot) => pixels > 500 && bottomPx <= top)
  },
)

test('P15: captions do not cover the viewer’s mark', async () => {
  const player = await watch('', { mark: MARK, widthPx: 1280 })
  await player.play()
  await player.playsPast(0.5)
  const bare = await findColour(await player.screenshot('mark-alone'), MAGENTA)
  expect(bare.pixels).toBeGreaterThan(200)
  await player.chooseSetting('Captions', 'Español')
  await expect.poll(() => shown(player)).toHaveLength(1)
  await player.page.keyboard.press('k') // paused, the bar stays, and so does what it raises
  await player.until(({ paused }) => paused)
  const isAround = ({ leftPx, topPx, rightPx, bottomPx }: Spot) =>
    leftPx < bare.leftPx && rightPx > bare.rightPx && topPx < bare.topPx && bottomPx > bare.bottomPx
  await expect.poll(() => whereCaptionsAre(player, 'mark-over-captions')).toSatisfy(isAround)
  // But for a pixel at its edge, which is drawn over another ground.
  const { pixels, ...box } = await findColour(await player.screenshot('mark-over-captions'), MAGENTA)
  expect(box).toMatchObject({ leftPx: bare.leftPx, topPx: bare.topPx, rightPx: bare.rightPx, bottomPx: bare.bottomPx })
  expect(pixels).toBeGreaterThan(0.95 * bare.pixels)
})

sampled('a video continues when captions are chosen that its owner has deleted since it began', async () => {
  const videoId = await reelgate.owner.readyVideo(await makeVideo({ seconds: 8, size: '320x180', dark: true }), 'Captions go')
  for (const language of ['en', 'de']) await addFile(reelgate.owner, videoId, language === 'en' ? ENGLISH : GERMAN, language)
  const player = await watch('', { videoId })
  await player.play()
  await player.playsPast(1)
  const english = (await listFiles(reelgate.owner, videoId)).find(({ lang }) => lang === 'en')
  await reelgate.owner.call('DELETE', `/api/videos/${videoId}/files/${english?.id}`)
  await player.openSettings()
  const choices = player.page.getByRole('group', { name: 'Captions' }).getByRole('menuitemradio')
  const answered = player.page.waitForResponse((response) => response.url().endsWith(`/file/caption-${english?.id}`))
  await choices.filter({ hasText: 'English' }).click()
  expect((await answered).status()).toBe(404)
  await choices.filter({ hasText: 'Deutsch' }).click()
  await expect.poll(() => shown(player)).toEqual(['Ein Hallo auf Deutsch'])
  await player.playsPast(3)
})

sampled('a video without captions offers none', async () => {
  const { owner } = reelgate
  for (const { id } of (await listFiles(owner, video)).filter(({ type }) => type === 'caption'))
    await owner.call('DELETE', `/api/videos/${video}/files/${id}`)
  const player = await watch()
  await player.play()
  await player.playsPast(0.5)
  await player.openSettings()
  expect(await player.page.getByRole('group', { name: 'Captions' }).count()).toBe(0)
  expect(await player.page.locator('media-captions-button').isVisible()).toBe(false)
})

draw()
