import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Language } from '../../web/languages/contents.ts'
import { LANGUAGES } from '../../web/languages/languages.ts'
import { addFile } from '../assets/sample-files.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'

// The words are compared with those of the languages’ own files: what is tested is that each reaches its place, and fits.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  await addFile(reelgate.owner, reelgate.videoId, '1\n00:00:00,000 --> 00:00:30,000\nHello\n', 'en')
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

type Watched = { width: number; height: number; locale?: string; options?: string }

async function watch({ width, height, locale = 'en', options = '' }: Watched): Promise<Player> {
  const page = await openTab(await chromium.newContext({ viewport: { width, height }, locale }))
  const player = lookAtPlayer(page)
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId), `&loop=true${options}`))
  await player.play()
  await player.playsPast(0.3)
  return player
}

/** The texts that are wider than their place, in what shows. */
const findOverflow = ({ page }: Player): Promise<string[]> =>
  page.evaluate(`[...document.querySelectorAll('media-control-bar, media-control-bar *, .settings, .settings *, dialog *')]
    .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
    .filter((element) => {
      const { left, right, width } = element.getBoundingClientRect()
      const isOutside = width > 0 && (left < -1 || right > innerWidth + 1)
      return isOutside || (element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1)
    })
    .map((element) => element.localName + '.' + element.className + ': ' + element.textContent.slice(0, 60))`)

test.each(sampleOf('languages of the player', Object.keys(LANGUAGES), 1))(
  'L-13: in %s every control has its name, and nothing is wider than a frame of 320 pixels',
  async (code) => {
    const { messages, bar } = await languageOf(code)
    for (const [width, height] of [
      [320, 240],
      [390, 640],
      [1440, 810],
    ] as const) {
      const player = await watch({ width, height, locale: code })
      const { page } = player
      const button = (name: string) => page.getByRole('button', { name, exact: true })
      await page.mouse.move(10, 10)
      await page.keyboard.press('ArrowRight')
      await page.locator('.sign:not(:empty)').waitFor()
      await player.keepPicture(`language-${code}-${width}-bar`)
      for (const name of [bar.mute, bar['enter-full-screen'], messages.pause])
        await button(name).first().waitFor({ state: 'attached' })
      expect(await findOverflow(player), `${width} pixels`).toEqual([])
      await page.mouse.move(20, 20)
      await button(messages.settings).click()
      await page.getByRole('menu', { name: messages.settings, exact: true }).waitFor()
      await player.keepPicture(`language-${code}-${width}-settings`)
      expect(await findOverflow(player), `settings at ${width} pixels`).toEqual([])
      await page.getByRole('menuitem', { name: messages.keys, exact: true }).click()
      await page.getByRole('dialog', { name: messages.keys, exact: true }).waitFor()
      await player.keepPicture(`language-${code}-${width}-keys`)
      expect(await findOverflow(player), `keys at ${width} pixels`).toEqual([])
      expect(await page.locator('html').getAttribute('lang')).toBe(code)
      expect(player.complaints).toEqual([])
    }
  },
)

test('L-14: in Arabic texts and controls run from right to left, the seek bar and its keys from left to right, as the video does', async () => {
  const { messages } = await languageOf('ar')
  const player = await watch({ width: 1000, height: 600, options: '&lang=ar' })
  const { page } = player
  await page.mouse.move(10, 10)
  const place = async (selector: string) => (await page.locator(selector).boundingBox())?.x ?? Number.NaN
  expect(await place('media-play-button')).toBeGreaterThan(await place('media-fullscreen-button'))
  expect(await page.evaluate(`getComputedStyle(document.querySelector('media-time-range')).direction`)).toBe('ltr')
  await page.keyboard.press('k')
  await player.until(({ paused }) => paused)
  const { timeS: before } = await player.until(() => true)
  await page.keyboard.press('ArrowRight')
  await player.until(({ timeS }) => timeS > before + 1)
  const settings = page.getByRole('button', { name: messages.settings, exact: true })
  await settings.focus()
  await page.keyboard.press('Enter')
  const focused = () =>
    page.evaluate<number>(`document.activeElement.closest('[role="group"]')?.getBoundingClientRect().left ?? NaN`)
  const first = await focused()
  await page.keyboard.press('ArrowLeft')
  expect(await focused()).toBeLessThan(first)
  await page.keyboard.press('ArrowRight')
  expect(await focused()).toBe(first)
})

test('L-15: the player speaks the language of the page that frames it, and says in its own words what the page gives', async () => {
  const site = startSite()
  onTestFinished(() => void site.close())
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  const page = await openTab(await chromium.newContext({ locale: 'de' }))
  await page.goto(
    site.put(
      `<main lang="es"><script src="${reelgate.url}/v2/player.js"></script><reelgate-player otp="${otp}"></reelgate-player></main>`,
    ),
  )
  const frame = page.frameLocator('iframe')
  const { messages } = await languageOf('es')
  await frame.getByRole('button', { name: messages.play, exact: true }).first().waitFor()
  await page.evaluate(`document.querySelector('reelgate-player').getPlayer().then((player) =>
    player.api.updatePlayerConfig({ messages: { settings: 'A mi gusto', nothing: 'x', play: 7 } }))`)
  await frame.locator('.settings-button[aria-label="A mi gusto"]').waitFor({ state: 'attached' })
  await frame.getByRole('button', { name: messages.play, exact: true }).first().waitFor()
})

async function languageOf(code: string): Promise<Language> {
  const loaded = await LANGUAGES[code]?.()
  if (!loaded) throw new Error(`There is no language ${code}`)
  return loaded.LANGUAGE
}
