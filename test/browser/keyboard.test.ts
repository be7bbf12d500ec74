import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { addFile } from '../assets/sample-files.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { readCaptions } from './in-page.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'

// A viewer without a pointer: everything is reached with Tab, Enter, arrows and Escape, and the focus is always in sight.

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

async function watch(options = '&loop=true'): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  return openPlayer(await chromium.newContext(), playerAddress(reelgate.url, otp, options))
}

type Focus = { name: string; isInSight: boolean; hasRing: boolean }

/** Where the focus is; Chromium gets this as text. */
const READ_FOCUS = `(() => {
  const parts = []
  for (let focused = document.activeElement; focused; focused = focused.shadowRoot?.activeElement) parts.push(focused)
  const [host] = parts
  const { top, left, right, bottom } = host.getBoundingClientRect()
  const rings = parts.map((part) => getComputedStyle(part))
  return {
    name: parts.map((part) => part.getAttribute('aria-label')).find(Boolean) ?? host.textContent.trim(),
    isInSight: host !== document.body && host.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && top >= 0 && left >= 0 && right <= innerWidth && bottom <= innerHeight,
    hasRing: rings.some(({ outlineStyle, outlineWidth, boxShadow }) => (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2) || boxShadow !== 'none'),
  }
})()`

/** Presses keys one after the other; after each the focus is on something that is seen and has a ring. */
function createKeys({ page }: Player) {
  const focus = () => page.evaluate(READ_FOCUS) as Promise<Focus>
  async function press(...keys: string[]): Promise<string> {
    for (const key of keys) {
      await page.keyboard.press(key)
      await expect.poll(focus, { message: `after ${key}` }).toMatchObject({ isInSight: true, hasRing: true })
    }
    return (await focus()).name
  }
  return {
    press,
    /** Presses keys, the last of which brings the focus here. */
    async pressTo(name: string, ...keys: string[]) {
      await press(...keys)
      await expect.poll(focus, { message: `after ${keys.at(-1)}` }).toMatchObject({ name, isInSight: true, hasRing: true })
    },
    /** Presses Tab until this has the focus. @returns what had it on the way */
    async tabTo(name: string): Promise<string[]> {
      const passed: string[] = []
      for (let at = await press('Tab'); at !== name; at = await press('Tab')) {
        expect(passed, `${name} is not reached`).not.toContain(at)
        passed.push(at)
      }
      return passed
    },
  }
}

test('with keys alone a viewer plays, pauses, seeks, changes volume, captions, quality, speed and full screen, and always sees the focus', async () => {
  const player = await watch()
  const { page } = player
  const { press, pressTo, tabTo } = createKeys(player)
  const menu = (name: string) => page.getByRole('menu', { name, exact: true })
  await player.shows('ready')
  await pressTo('Play', 'Tab', 'Tab')
  await pressTo('video player', 'Enter') // the button is gone
  await player.playsPast(0.3)

  await pressTo('pause', 'Tab')
  await press('Enter')
  await player.until(({ paused }) => paused)
  await pressTo('seek', 'Tab')
  const { timeS } = await player.video()
  await press('ArrowRight')
  await player.until((now) => Math.abs(now.timeS - ((timeS + 5) % now.durationS)) < 0.1) // as everywhere, not a part of the video
  await pressTo('mute', 'Tab')
  await pressTo('unmute', 'Enter')
  expect((await player.video()).muted).toBe(true)
  await pressTo('mute', 'Enter')
  await pressTo('volume', 'Tab')
  const volume = () => page.evaluate(`document.querySelector('video').volume`)
  await press('ArrowLeft')
  await expect.poll(volume).toBeLessThan(1)
  await pressTo('closed captions', 'Tab')
  await press('Enter')
  await expect.poll(() => player.frame.evaluate(readCaptions)).toEqual(['Hello'])

  await pressTo('Settings', 'Tab')
  await page.keyboard.press('Enter') // the menu is loaded
  await menu('Settings').waitFor()
  await pressTo('720p', 'ArrowDown')
  await press('Enter')
  await page.getByRole('menuitemradio', { name: '720p', checked: true }).waitFor()
  await press('ArrowRight', 'Home', 'Enter')
  await player.until(({ rate }) => rate === 0.5)
  await pressTo('Keyboard shortcuts', 'ArrowRight', 'End')
  await pressTo('Transcript', 'ArrowUp')
  await pressTo('Caption style', 'ArrowUp')
  await page.keyboard.press('Enter')
  await menu('Caption style').waitFor()
  await press('ArrowRight', 'Enter')
  await page.getByRole('menuitemradio', { name: 'Yellow', checked: true }).waitFor()
  await pressTo('Caption style', 'Escape')
  await pressTo('Settings', 'Escape')
  await page.keyboard.press('Enter')
  await menu('Settings').waitFor()
  await press('End')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await pressTo('Settings', 'Escape')

  expect(await tabTo('enter fullscreen mode')).toEqual(['Picture in picture'])
  await press('Enter')
  await page.waitForSelector('media-controller:fullscreen')
  await pressTo('enter fullscreen mode', 'Enter')
  await page.waitForSelector('media-controller:not(:fullscreen)')
  await pressTo('Close', '?')
  await pressTo('enter fullscreen mode', 'Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  await press('k')
  await player.until(({ paused, heightPx }) => !paused && heightPx === 720)
  expect(player.complaints).toEqual([])
})

test('the bar stays while one of its controls has the focus by keyboard, and hides after Escape', async () => {
  const player = await watch()
  const { page } = player
  const { press, pressTo, tabTo } = createKeys(player)
  await page.clock.install()
  await player.shows('ready')
  await page.keyboard.press('k')
  await player.playsPast(0.3)
  await tabTo('mute')
  await page.clock.fastForward(60_000)
  const { timeS } = await player.video()
  await player.until((now) => now.timeS !== timeS)
  expect(await page.locator('media-controller').getAttribute('userinactive')).toBe(null)
  await pressTo('video player', 'Escape')
  await page.clock.fastForward(3_000)
  await page.waitForSelector('media-controller[userinactive]')
  await press('Shift')
  await page.waitForSelector('media-controller:not([userinactive])')
})

test('after "Start over" and "Watch again" the focus is on the player', async () => {
  const player = await watch('')
  await player.page.addInitScript(`localStorage.setItem('reelgate-places', '{"${reelgate.videoId}":6}')`)
  await player.page.reload()
  const { press, pressTo, tabTo } = createKeys(player)
  await player.page.getByText('Resumes at').waitFor()
  expect(await tabTo('Start over')).toEqual(['video player', 'Play'])
  await pressTo('video player', 'Enter')
  await player.playsPast(0.3)
  await press('End')
  await player.shows('playing', 'ended')
  await tabTo('Watch again')
  await pressTo('video player', 'Enter')
  await player.until(({ timeS, ended }) => timeS < 6 && !ended)
})
