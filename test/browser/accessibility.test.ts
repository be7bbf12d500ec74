import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { END_REASONS } from '../../src/playback/refusal.ts'
import { REFUSAL_CODES } from '../../web/player/refusals.ts'
import { addFile } from '../assets/sample-files.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'
import { judgeByAxe } from './axe.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'

// The player in each of its states, as axe-core judges it (WCAG 2.2 AA and its authors' best practices).

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  await addFile(reelgate.owner, reelgate.videoId, '1\n00:00:00,000 --> 00:00:30,000\nHello\n', 'en')
  const chapters = [0, 3, 6].map((startS) => ({ startS, title: `From second ${startS}` }))
  await reelgate.owner.call('PUT', `/api/videos/${reelgate.videoId}/chapters`, { body: { language: 'en', chapters } })
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const SCREENS = [
  { what: 'a laptop', viewport: { width: 854, height: 480 } },
  { what: 'a phone', viewport: { width: 320, height: 180 } },
]

/** Judges a player, state by state. @returns `faults`: what axe found in each, if anything */
function judgeStates({ page, keepPicture }: Player, name: string) {
  const faults: Record<string, string[]> = {}
  return {
    faults,
    async judge(state: string) {
      const found = await judgeByAxe(page)
      if (found.length > 0) faults[state] = found
      await keepPicture(`axe-${name}-${state}`)
    },
  }
}

async function open(browser: BrowserContext, options = ''): Promise<Player> {
  const player = lookAtPlayer(await openTab(browser))
  await player.page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId), options))
  return player
}

test.each(sampleOf('screens that axe judges', SCREENS, 1))(
  'on $what: loading, ready, playing, paused, each page of the settings, the list of keys, ended',
  async ({ what, viewport }) => {
    const browser = await chromium.newContext({ viewport })
    await browser.addInitScript(`localStorage.setItem('reelgate-places', '{"${reelgate.videoId}":6}')`)
    const mayRedeem = Promise.withResolvers<void>()
    await browser.route('**/play/redeem', async (route) => {
      await mayRedeem.promise
      await route.continue()
    })
    const player = await open(browser)
    const { page } = player
    const { judge, faults } = judgeStates(player, what)
    await player.shows('loading')
    await judge('loading')
    mayRedeem.resolve()
    await page.getByText('Resumes at').waitFor()
    await judge('ready, with the offer to start over')
    await player.press('Start over')
    await player.playsPast(0.3)
    await page.keyboard.press('c')
    await judge('playing, with captions')
    await page.keyboard.press('k')
    await player.until(({ paused }) => paused)
    await judge('paused')
    await player.openSettings()
    await judge('settings')
    for (const entry of await page.locator('.settings [aria-haspopup]').allInnerTexts()) {
      const [name = ''] = entry.split('\n')
      await page.locator(`.settings [data-item="${name}"]`).click()
      await page.getByRole('menu', { name, exact: true }).waitFor()
      await judge(`settings, ${name}`)
      await page.keyboard.press('Escape')
      await page.getByRole('menu', { name: 'Settings' }).waitFor()
    }
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await judge('list of keys')
    await page.keyboard.press('Escape')
    await page.keyboard.press('End')
    await page.keyboard.press('k')
    await player.shows('playing', 'ended')
    await judge('ended')
    expect(faults).toEqual({})
  },
)

/** What a server may say to a player, and whether the viewer can do something. */
const REFUSED = [
  ...REFUSAL_CODES.filter((code) => code !== 'session-ended' && code !== 'stream-limit').map((code) => ({
    code,
    why: '',
  })),
  ...END_REASONS.map((why) => ({ code: 'session-ended', why })),
]
const PHONE = { viewport: { width: 320, height: 180 } }
const LONG_WAIT_MS = 600_000

test.each(sampleOf('refusals that axe judges', REFUSED, 1))('refused: $code $why', async ({ code, why }) => {
  const browser = await chromium.newContext(PHONE)
  await browser.route('**/play/redeem', (route) =>
    route.fulfill({ status: 403, json: { code, why: why || undefined, message: '', requestId: '' } }),
  )
  const player = await open(browser)
  const { judge, faults } = judgeStates(player, 'refused')
  await player.shows('refused', why ? `${code}.${why}` : code)
  await judge(`${code} ${why}`)
  expect(faults).toEqual({})
})

test('a site that may not show the video has a page without a player', async () => {
  const browser = await chromium.newContext(PHONE)
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { whitelisthref: 'school.example' })
  const player = lookAtPlayer(await openTab(browser))
  await player.page.goto(playerAddress(reelgate.url, otp))
  await player.shows('refused', 'site-not-allowed')
  const { judge, faults } = judgeStates(player, 'refused')
  await judge('site-not-allowed page')
  expect(faults).toEqual({})
})

test('waiting: for the video, for a screen, and over the video for a key; no screen left', async () => {
  const browser = await chromium.newContext(PHONE)
  const player = await open(browser)
  const { page } = player
  const { judge, faults } = judgeStates(player, 'waiting')
  const answer = (requests: string, status: number, json: object) =>
    page.route(requests, (route) => route.fulfill({ status, json }))
  await player.shows('ready')
  await answer('**/key/*', 429, { code: 'key-pace', waitMs: LONG_WAIT_MS, maxRate: 1 })
  await page.keyboard.press('k')
  await player.shows('playing', 'key-pace')
  await judge('key-pace')

  await answer('**/play/*/page', 409, { code: 'video-not-ready', waitMs: LONG_WAIT_MS, progress: 0.4 })
  await page.reload()
  await player.shows('waiting', 'video-not-ready')
  await judge('video-not-ready')

  await page.unrouteAll()
  await page.clock.install()
  await answer('**/key/*', 409, { code: 'stream-limit', waitMs: 5_000 })
  await answer('**/beat', 409, { code: 'stream-limit', waitMs: 5_000 })
  await page.reload()
  await player.shows('ready')
  await page.keyboard.press('k')
  await player.shows('waiting', 'stream-limit')
  await judge('waiting for a screen')
  await page.clock.fastForward(30_000)
  await player.shows('refused', 'stream-limit')
  await judge('no screen left')
  expect(faults).toEqual({})
})
