import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { addFile } from '../assets/sample-files.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openPlayer, openTab, type Player, playerAddress } from './player.ts'

const { test, draw } = sampledTests('menus', 4)

// The settings and the list of keys where there is little room, by touch and by the phone's back button.

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

const PHONE = { viewport: { width: 320, height: 180 }, hasTouch: true, isMobile: true }

/** `requests`: the player's files that were loaded. */
async function watch(context: NonNullable<Parameters<Browser['newContext']>[0]>): Promise<Player & { requests: string[] }> {
  const page = await openTab(await chromium.newContext(context))
  const player = lookAtPlayer(page)
  const requests: string[] = []
  page.on('request', (request) => {
    const [, file] = /\/player\/assets\/([\w-]+)-.{8}\.js$/.exec(request.url()) ?? []
    if (file) requests.push(file)
  })
  // What the phone's back button does.
  await page.addInitScript(`window.CloseWatcher = class extends CloseWatcher {
    constructor() { super(); window.pressBack = () => this.requestClose() }
  }`)
  await page.goto(playerAddress(reelgate.url, await reelgate.owner.issueOtp(reelgate.videoId), '&loop=true'))
  await player.play()
  await player.playsPast(0.3)
  return { ...player, requests }
}

const menu = ({ page }: Pick<Player, 'page'>, name: string) => page.getByRole('menu', { name, exact: true })
const tap = ({ page }: Player, name: RegExp) => page.getByRole('menuitem', { name }).tap()

async function openByTouch(player: Player) {
  await player.page.touchscreen.tap(160, 30) // shows the bar
  await player.page.getByRole('button', { name: 'Settings' }).tap()
  await menu(player, 'Settings').waitFor()
}

test('on a phone every setting is reached by touch, with targets of 44 pixels', async () => {
  const player = await watch(PHONE)
  await openByTouch(player)
  for (const setting of ['Quality', 'Speed', 'Captions']) {
    await tap(player, new RegExp(`^${setting}(?! style)`))
    await menu(player, setting).waitFor()
    await player.keepPicture(`phone-${setting.toLowerCase()}`)
    const boxes = await player.page.locator('.settings [role^="menuitem"]').evaluateAll((items) =>
      items.map((item) => {
        const { width, height } = item.getBoundingClientRect()
        return Math.min(width, height)
      }),
    )
    expect(boxes.length).toBeGreaterThan(3)
    expect(Math.min(...boxes)).toBeGreaterThanOrEqual(44)
    await tap(player, /^Back$/)
    await menu(player, 'Settings').waitFor()
  }
  await tap(player, /^Speed/)
  await player.page.getByRole('menuitemradio', { name: '1.5 ×', exact: true }).tap()
  await player.until(({ rate }) => rate === 1.5)
  await tap(player, /^Close$/)
  await menu(player, 'Speed').waitFor({ state: 'hidden' })
  expect(player.complaints).toEqual([])
})

test('how captions look is chosen by touch, each part on a page of its own, with a sample in sight', async () => {
  const player = await watch(PHONE)
  await openByTouch(player)
  for (const item of [/^Caption style/, /^Color/]) await tap(player, item)
  await player.page.getByRole('menuitemradio', { name: 'Yellow' }).tap()
  const sample = player.page.locator('.caption-sample span')
  await expect.poll(() => sample.getAttribute('style')).toContain('color: rgb(255, 255, 0)')
  await tap(player, /^Back$/)
  await player.page.getByRole('menuitem', { name: /^Color\s*Yellow/ }).waitFor()
})

test('the back button leaves a page of the settings, then the settings; Escape does the same', async () => {
  const player = await watch(PHONE)
  for (const goBack of [() => player.page.evaluate('pressBack()'), () => player.page.keyboard.press('Escape')]) {
    await openByTouch(player)
    await tap(player, /^Speed/)
    await menu(player, 'Speed').waitFor()
    await goBack()
    await menu(player, 'Settings').waitFor()
    await goBack()
    await menu(player, 'Settings').waitFor({ state: 'hidden' })
  }
})

test('a tap next to the settings closes them and does nothing else', async () => {
  const player = await watch({ viewport: { width: 854, height: 480 } })
  await player.openSettings()
  await player.page.mouse.click(200, 200)
  await menu(player, 'Settings').waitFor({ state: 'hidden' })
  const { framesDecoded } = await player.video()
  await player.until((video) => video.framesDecoded > framesDecoded + 10 && !video.paused)
  await player.page.mouse.click(200, 200)
  await player.until(({ paused }) => paused)
})

test('the list of keys is opened by ? and from the settings, fits a small frame, and is closed by a tap next to it', async () => {
  const player = await watch({ ...PHONE, viewport: { width: 300, height: 150 } })
  const list = player.page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await player.page.keyboard.press('?')
  await list.waitFor()
  await player.keepPicture('phone-keys')
  const { x, y, width, height } = (await list.boundingBox()) ?? { x: -1, y: -1, width: 999, height: 999 }
  expect([x >= 0, y >= 0, x + width <= 300, y + height <= 150]).toEqual([true, true, true, true])
  expect(await list.locator('.keys').evaluate((keys) => keys.scrollHeight > keys.clientHeight)).toBe(true)
  await player.page.touchscreen.tap(2, 75)
  await list.waitFor({ state: 'hidden' })

  await openByTouch(player)
  await tap(player, /^Keyboard shortcuts$/)
  await list.getByRole('button', { name: 'Close' }).tap()
  await list.waitFor({ state: 'hidden' })
  await player.page.keyboard.press('k')
  await player.until(({ paused }) => paused)
})

test('what is used later is loaded when it is used', async () => {
  const player = await watch({})
  expect(player.requests[0]).toBe('main')
  await player.openSettings()
  expect(player.requests).toContain('settings-menu')
  expect(player.requests).not.toContain('caption-style-settings')
  await player.page.getByRole('menuitem', { name: 'Caption style' }).click()
  await menu(player, 'Caption style').waitFor()
  expect(player.requests).toContain('caption-style-settings')
  expect(player.requests).not.toContain('transcript')
})

test('settings that cannot be loaded say so, and open when they can', async () => {
  const context = await chromium.newContext()
  let isBroken = true
  await context.route('**/settings-menu-*', (route) => (isBroken ? route.abort() : route.continue()))
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  const player = await openPlayer(context, playerAddress(reelgate.url, otp, '&loop=true'))
  await player.play()
  await player.playsPast(0.3)
  const open = async () => {
    await player.page.mouse.move(10, 10)
    await player.page.getByRole('button', { name: 'Settings' }).click()
  }
  await open()
  await player.page.getByText('The settings could not be loaded.').waitFor()
  await player.page.keyboard.press('Shift')
  await player.page.getByText('The settings could not be loaded.').waitFor({ state: 'hidden' })
  isBroken = false
  await open()
  await menu(player, 'Settings').waitFor()
})

draw()
