import { readFile } from 'node:fs/promises'
import type { Browser, BrowserContext, Frame, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contrast } from '../../web/player/theme.ts'
import { startSharedReelgate } from '../in-process.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { lookAtPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'
import { makeSmallVideo } from './videos.ts'

// How a page sets the player's colors, corners and fonts. The same in every engine, as far as the engines differ: engines/viewers-way.ts.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let browser: BrowserContext
const site = startSite()

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  chromium = await startChromiumWithFrameStorage()
  browser = await chromium.newContext()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  site.close()
})

const newOtp = () => reelgate.owner.issueOtp(reelgate.videoId)

async function open(body: string): Promise<{ page: Page; player: Player }> {
  const page = await openTab(browser)
  await page.goto(site.put(body))
  await expect.poll(() => page.frames().length).toBe(2)
  const frame = page.frames().at(1)
  if (!frame) throw new Error('The page has no frame')
  return { page, player: lookAtPlayer(page, frame) }
}

/** Of an element in the player. */
const styleOf = (frame: Frame, selector: string, ...names: string[]) =>
  frame.evaluate(
    `${JSON.stringify(names)}.map((name) => getComputedStyle(document.querySelector(${JSON.stringify(selector)})).getPropertyValue(name))`,
  ) as Promise<string[]>

/** The code in the docs that sets these properties. */
async function readExample(): Promise<string> {
  const docs = await readFile(new URL('../../docs/embedding.md', import.meta.url), 'utf8')
  const [, example = ''] = /\n\n((?: {4}.*\n)*.*--reelgate-primary-color(?:.*\n {4})*.*)\n\n/.exec(docs) ?? []
  return example.replaceAll('https://video.example.org', reelgate.url).replace('otp="OTP"', `otp="${await newOtp()}"`)
}

test('the example in the docs: the player takes the page’s colors, corners and font, and follows it into the dark while it plays', async () => {
  const { page, player } = await open(await readExample())
  await player.play()
  await player.playsPast(0.3)
  await player.openSettings()
  const menu = () => styleOf(player.frame, '.settings', 'background-color', 'color', 'border-radius', 'font-family')
  expect(await menu()).toEqual(['rgb(255, 255, 255)', 'rgb(17, 18, 20)', '4px', 'Georgia, serif'])
  const lamp = async () => (await styleOf(player.frame, ':root', '--lamp'))[0]
  // The page's blue is too dark for the bar, so it is a lighter one.
  expect(await lamp()).not.toBe('#0b5cad')
  expect(contrast((await lamp()) ?? '', '#1c1c1c')).toBeGreaterThanOrEqual(3)
  // On the light menu it is as the page has it.
  expect(await styleOf(player.frame, '.settings', '--lamp')).toEqual(['#0b5cad'])
  await player.keepPicture('theme-light')

  await page.evaluate(`document.documentElement.classList.add('dark')`)
  await expect.poll(menu).toEqual(['rgb(31, 36, 48)', 'rgb(255, 255, 255)', '4px', 'Georgia, serif'])
  expect(await lamp()).toBe('#7cc4ff')
  await player.keepPicture('theme-dark')
  expect((await player.video()).paused).toBe(false)
  expect(player.complaints).toEqual([])
})

test('a color that cannot be used leaves the player’s own, an attribute wins, and another video in the frame keeps the theme', async () => {
  const { page, player } = await open(`<style>
      reelgate-player { --reelgate-primary-color: 12px; --reelgate-surface-color: rgb(255 0 0 / 50%); --reelgate-border-radius: 50% }
      reelgate-player.themed { --reelgate-primary-color: oklch(0.8 0.1 200); --reelgate-surface-color: color-mix(in srgb, navy, white 20%);
        --reelgate-border-radius: calc(0.5em + 2px); --reelgate-font-family: var(--page-font); --page-font: "Open Sans", url(x) }
    </style><script src="${reelgate.url}/v2/player.js"></script>
    <reelgate-player otp="${'x'.repeat(64)}" fontFamily="monospace" style="font-size:20px"></reelgate-player>`)
  await player.shows('refused', 'otp-unknown')
  const theme = () => styleOf(player.frame, ':root', '--lamp', '--surface', '--radius', '--font')
  expect(await theme()).toEqual(['#f2a93b', '#191b1f', '8px', 'monospace'])
  expect(new URL(player.frame.url()).search).not.toMatch(/Color|borderRadius/)

  await page.evaluate(`document.querySelector('reelgate-player').classList.add('themed')`)
  await expect.poll(theme).toEqual([expect.stringMatching(/^#[0-9a-f]{6}$/), '#333399', '12px', 'monospace'])
  await page.evaluate(`document.querySelector('reelgate-player').setAttribute('otp', '${await newOtp()}')`)
  await player.shows('ready')
  expect(await theme()).toEqual([expect.stringMatching(/^#[0-9a-f]{6}$/), '#333399', '12px', 'monospace'])
  await page.evaluate(`document.querySelector('reelgate-player').classList.remove('themed')`)
  await expect.poll(theme).toEqual(['#f2a93b', '#191b1f', '8px', 'monospace'])
})

test('a page with a frame and its script themes the player by its URL and by updatePlayerConfig, also one that refuses', async () => {
  const options = '&surfaceColor=fff&borderRadius=0&fontFamily=Georgia,serif'
  const { page, player } = await open(`<script src="${reelgate.url}/v2/api.js"></script>
    <iframe src="${playerAddress(reelgate.url, 'x'.repeat(64), options)}" width="640" height="360"></iframe>
    <script>const player = VdoPlayer.getInstance(document.querySelector('iframe'))</script>`)
  await player.shows('refused', 'otp-unknown')
  const theme = () => styleOf(player.frame, ':root', '--lamp', '--surface', '--radius', '--font')
  expect(await theme()).toEqual(['#f2a93b', '#ffffff', '0px', '"Georgia", serif'])
  await page.evaluate(`player.api.updatePlayerConfig({ primaryColor: 'ff8800', borderRadius: '', surfaceColor: 'url(x)' })`)
  expect(await theme()).toEqual(['#ff8800', '#ffffff', '8px', '"Georgia", serif'])
})

test('where the page’s policy allows no inline styles the element is themed all the same', async () => {
  const { page, player } = await open(`<meta http-equiv="Content-Security-Policy" content="style-src 'self'">
    <script src="${reelgate.url}/v2/player.js"></script><reelgate-player otp="${'x'.repeat(64)}"></reelgate-player>`)
  await player.shows('refused')
  await page.evaluate(`document.documentElement.style.setProperty('--reelgate-surface-color', 'white')`)
  await expect.poll(() => styleOf(player.frame, ':root', '--surface')).toEqual(['#ffffff'])
  expect(player.complaints.filter((complaint) => !complaint.includes('403'))).toEqual([]) // the OTP
})
