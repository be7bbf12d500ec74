import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addFile, listFiles } from '../files/made.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../reelgate.ts'
import { startChromium } from './chromium.ts'
import { readCaptions } from './in-page.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'

// Captions as a viewer meets them.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let film: string

const ENGLISH = '1\n00:00:00,000 --> 00:00:30,000\nA hello in <i>English</i> &lt;script&gt;\n'
const GERMAN = 'WEBVTT\n\n00:00.000 --> 00:30.000\nEin Hallo auf Deutsch\n'

beforeAll(async () => {
  reelgate = await startSharedReelgate()
  chromium = await startChromium()
  film = await reelgate.owner.readyVideo(footage.movieHello, 'Hello')
  await addFile(reelgate.owner, film, ENGLISH, 'en')
  await addFile(reelgate.owner, film, GERMAN, 'de')
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

async function watch(options = '', widthPx = 1280): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(film, { annotate: [{ type: 'rtext', text: 'ann@example.org' }] })
  const context = await chromium.newContext({ viewport: { width: widthPx, height: Math.round((widthPx * 9) / 16) } })
  return openPlayer(context, playerAddress(reelgate.url, otp, `${options}&loop=true`))
}

/** The captions that show now, as text. */
const shown = ({ frame }: Player) => frame.evaluate(readCaptions)

test('captions of the embedder’s language show by themselves', async () => {
  const player = await watch('&ccLanguage=de')
  await player.play()
  await player.playsPast(1)
  await expect.poll(() => shown(player), { timeout: 10_000 }).toEqual(['Ein Hallo auf Deutsch'])
})

test('captions are off until they are chosen: by language in the settings, on and off by c and by their button', async () => {
  const player = await watch()
  await player.play()
  await player.playsPast(1)
  expect(await shown(player)).toEqual([])
  await player.openSettings()
  const choices = player.page.getByRole('group', { name: 'Captions' }).getByRole('menuitemradio')
  expect(await choices.allInnerTexts()).toEqual(['Off', 'Deutsch', 'English'])
  await choices.filter({ hasText: 'English' }).click()
  await expect.poll(() => shown(player), { timeout: 10_000 }).toEqual(['A hello in <i>English</i> &lt;script&gt;'])
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

test('a film without captions offers none', async () => {
  const { owner } = reelgate
  for (const { id } of (await listFiles(owner, film)).filter(({ type }) => type === 'caption'))
    await owner.call('DELETE', `/api/videos/${film}/files/${id}`)
  const player = await watch()
  await player.play()
  await player.playsPast(0.5)
  await player.openSettings()
  expect(await player.page.getByRole('group', { name: 'Captions' }).count()).toBe(0)
  expect(await player.page.locator('media-captions-button').isVisible()).toBe(false)
})
