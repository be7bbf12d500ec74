import { setTimeout as pause } from 'node:timers/promises'
import type { BrowserContext, ConsoleMessage, Frame, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { readState, readVideo, reportViolations, type ShownFrame, takeFrames, type Watched } from './in-page.ts'
import { keepPicture } from './pictures.ts'

/** Where a viewer is sent. `options` are those of the player page, such as `&autoplay=true`. */
export function playerAddress(url: string, otp: string, options = ''): string {
  return `${url}/player/?otp=${otp}${options}`
}

/** Opens an address in a new tab and looks at the player in it, until the test has finished. */
export async function openPlayer(browser: BrowserContext, address: string): Promise<Player> {
  const player = lookAtPlayer(await openTab(browser))
  await player.page.goto(address)
  return player
}

/** Opens a tab that closes with the test: videos that play on would slow the next one down. */
export async function openTab(browser: BrowserContext): Promise<Page> {
  const page = await browser.newPage()
  await page.addInitScript(reportViolations)
  onTestFinished(() => page.close())
  return page
}

/** On a slow machine the player is ahead of the encoder: it gets 503, and asks again. */
function isUnencodedSegment(message: ConsoleMessage): boolean {
  return message.location().url.includes('/media/') && message.text().includes('503')
}

export type Player = ReturnType<typeof lookAtPlayer>

/** What a viewer sees of a player, in a tab or in a frame of it, and does with it; waits for what the page reports, never for time to pass. */
export function lookAtPlayer(page: Page, frame: Frame = page.mainFrame()) {
  const complaints: string[] = []
  page.on('console', (message) => {
    if ((message.type() === 'error' || message.type() === 'warning') && !isUnencodedSegment(message))
      complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  const video = () => frame.evaluate(readVideo)
  onTestFinished(async ({ task }) => {
    if (task.result?.state !== 'fail' || page.isClosed() || frame.isDetached()) return
    const { state, code } = await frame.evaluate(readState)
    console.error(`The player says "${state} ${code}" and has played ${JSON.stringify(await video())}`, complaints)
  })

  async function until(isSo: (watched: Watched) => boolean): Promise<Watched> {
    for (;;) {
      const watched = await video()
      if (isSo(watched)) return watched
      await pause(100)
    }
  }

  async function openSettings() {
    await page.mouse.move(10, 10) // the bar hides while nothing moves
    await frame.getByRole('button', { name: 'Settings' }).click()
    await frame.locator('.settings :is(.item, .choice)').last().waitFor() // it is loaded when it is first opened
  }

  async function openChoices(setting: string) {
    const entry = frame.locator(`.settings.list [data-item="${setting}"]`)
    if (await entry.isVisible()) await entry.click()
  }

  return {
    page,
    frame,
    /** Errors and warnings of the console, breaches of the content policy among them. */
    complaints,
    video,
    until,
    /** Waits until the player says that it is in this state, such as `refused` with the code `otp-used`. */
    async shows(state: string, code?: string) {
      await frame.waitForSelector(`body[data-state="${state}"]${code === undefined ? '' : `[data-code="${code}"]`}`)
    },
    /** The sentence on the screen. */
    sentence: () => frame.locator('.panel .sentence').textContent(),
    /** The sentence over the video. */
    note: () => frame.locator('.note').textContent(),
    press: (name: string) => frame.getByRole('button', { name, exact: true }).click(),
    play: () => frame.locator('.big-play').click(),
    /** Presses play and takes the first frame that is shown. */
    async playFromFirstFrame(): Promise<ShownFrame> {
      await frame.waitForSelector('body[data-state="ready"]')
      const [[first]] = await Promise.all([frame.evaluate(takeFrames, [0]), frame.locator('.big-play').click()])
      if (!first) throw new Error('No frame was shown')
      return first
    },
    /** Waits until the video has been shown up to this time and plays on, or has ended. */
    playsPast: (timeS: number) =>
      until(({ timeS: atS, ended, paused, seeking }) => atS > timeS && (ended || (!paused && !seeking))),
    /** Frames as they are shown, each the first at or after its time. */
    takeFrames: (...timesS: number[]): Promise<ShownFrame[]> => frame.evaluate(takeFrames, timesS),
    /** Clicks on the seek bar; a click is as exact as a pixel. @returns the time that the click asked for */
    async seekNear(timeS: number): Promise<number> {
      const bar = await frame.locator('media-time-range').boundingBox()
      if (!bar) throw new Error('The player has no seek bar')
      const { durationS } = await video()
      const PADDING_PX = 8 // --media-range-padding of the player's style
      const xPx = bar.x + PADDING_PX + ((bar.width - 2 * PADDING_PX) * timeS) / durationS
      await page.mouse.move(xPx, bar.y + bar.height / 2)
      await page.mouse.down()
      await page.mouse.up()
      return (await video()).timeS
    },
    /** Taps a third down, at a share of the width; within one task, so that a busy machine cannot spread them. */
    tapPicture: (share: number, taps: number) => frame.evaluate(`(${TAP})(${share}, ${taps})`),
    openSettings,
    openChoices,
    /** @param setting such as `Speed`: its choices are a column of the settings or, in a small frame, a page of them */
    async chooseSetting(setting: string, label: string) {
      await openSettings()
      await openChoices(setting)
      // Exact: "Automatic (240p)" also holds what "240p" is called.
      await frame.getByRole('menuitemradio', { name: label, exact: true }).click()
      for (const menu = frame.locator('.settings'); await menu.isVisible(); ) await page.keyboard.press('Escape')
    },
    /** A screenshot for a test that looks at its pixels; kept, too. */
    async screenshot(name: string): Promise<Buffer> {
      const png = await page.screenshot()
      await keepPicture(name, async () => png)
      return png
    },
    keepPicture: (name: string) => keepPicture(name, () => page.screenshot()),
  }
}

const TAP = `(share, taps) => {
  const [clientX, clientY] = [share * innerWidth, innerHeight / 3]
  const target = document.elementFromPoint(clientX, clientY)
  const at = { clientX, clientY, bubbles: true, composed: true, pointerType: 'touch' }
  for (let tap = 0; tap < taps; tap++) for (const type of ['pointerdown', 'pointerup', 'click']) target.dispatchEvent(new PointerEvent(type, at))
}`
