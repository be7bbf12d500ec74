import type { Page } from 'playwright-core'
import { startPersonsChromium } from '../chromium.ts'
import { asJsonFunction, type Engine, type Tab, toJson, toPagePoint, VIEWPORT } from './engine.ts'

/** Starts Debian's Chromium: a browser for each profile, because only its own profile has storage for frames of other sites. */
export async function startChromium(): Promise<Engine> {
  const first = await startPersonsChromium()
  const started = [first]
  const unused = [first]
  return {
    version: first.browser.browser()?.version() ?? '',
    async openProfile(): Promise<Tab> {
      const chromium = unused.pop() ?? (await startPersonsChromium())
      if (!started.includes(chromium)) started.push(chromium)
      const page = await chromium.browser.newPage()
      await page.setViewportSize(VIEWPORT)
      return driveTab(page)
    },
    async close() {
      await Promise.all(started.map((chromium) => chromium.remove()))
    },
  }
}

function driveTab(page: Page): Tab {
  const run: Tab['run'] = async (where, script, argument) => {
    const frame = where === 'page' ? page.mainFrame() : page.frames().at(1)
    if (!frame) throw new Error('The page has no frame')
    const result = await frame.evaluate(`(${asJsonFunction(script)})(${JSON.stringify(toJson(argument))})`)
    return JSON.parse(String(result))
  }
  return {
    async goto(address) {
      await page.goto(address)
    },
    async reload() {
      await page.reload()
    },
    run,
    async moveMouse(where, to) {
      const { xPx, yPx } = await toPagePoint(run, where, to)
      await page.mouse.move(xPx, yPx)
    },
    async click(where, at) {
      const { xPx, yPx } = await toPagePoint(run, where, at)
      await page.mouse.click(xPx, yPx)
    },
    async doubleClick(where, at) {
      const { xPx, yPx } = await toPagePoint(run, where, at)
      await page.mouse.dblclick(xPx, yPx)
    },
    press: (key) => page.keyboard.press(key),
    screenshot: () => page.screenshot(),
  }
}
