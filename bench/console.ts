import type { Browser, Page } from 'playwright-core'
import { dataPaths } from '../src/config/data-paths.ts'
import { sendCommand } from '../src/control/socket.ts'
import { HEADLESS_SHELL, startChromiumAt } from '../test/browser/chromium.ts'
import { createPerson } from '../test/console/person.ts'
import { copyFilledFolder, ensureFilled } from './fill.ts'
import { median, percentile, repeat } from './interleaved.ts'
import { WORDS } from './random-words.ts'
import type { Row, Scope } from './row.ts'
import { startService } from './service.ts'

const VIDEOS = 100_000
const TIMES = 5
const SEARCHES = 60
/** How long the list is scrolled, a third of a screen in each frame. */
const SCROLLED_FRAMES = 240

const prepare = () => ensureFilled(VIDEOS)

export const CONSOLE_ROWS: readonly Row[] = [
  {
    name: 'console-open',
    what: 'the console’s list of 100 000 videos, from its address to the first row, empty cache',
    unit: 'ms',
    aim: { oursAtMost: 1000 },
    prepare,
    measure: async (scope) => {
      const { open } = await startConsole(scope)
      const timesMs = await repeat(TIMES + 1, async () => {
        const page = await open()
        const readyMs = await page.evaluate<number>('performance.now()')
        await page.context().close()
        return readyMs
      })
      return { ours: median(timesMs.slice(1)) }
    },
  },
  {
    name: 'console-search',
    what: 'from a letter in the search of 100 000 videos to the rows that it finds, 95 of 100; one to six letters',
    unit: 'ms',
    aim: { oursAtMost: 50 },
    prepare,
    measure: async (scope) => {
      const page = await (await startConsole(scope)).open()
      const words = WORDS.filter((word) => /^[^a-f]/.test(word)) // not part of an id
      const texts = Array.from({ length: SEARCHES }, (_, n) => (words[(n * 7) % words.length] ?? '').slice(0, 1 + (n % 6)))
      return { ours: percentile(await page.evaluate<number[]>(`(${searchInPage})(${JSON.stringify(texts)})`), 95) }
    },
  },
  {
    name: 'console-scroll',
    what: 'longest frame while the list of 100 000 videos is scrolled by a third of a screen in each frame',
    unit: 'ms',
    aim: { oursAtMost: 50 },
    prepare,
    measure: async (scope) => {
      const page = await (await startConsole(scope)).open()
      return { ours: Math.max(...(await page.evaluate<number[]>(`(${scrollInPage})(${SCROLLED_FRAMES})`))) }
    },
  },
]

/** A service with many videos, and its owner, who is signed in. */
export async function startSignedIn(scope: Scope, videos: number) {
  const { dataDir } = await copyFilledFolder(scope, videos)
  const service = await startService(scope, dataDir)
  const { url } = (await sendCommand(dataPaths(dataDir).controlSocket, 'console link', {})) as { url: string }
  const person = createPerson(service.url)
  await person.get('POST', '/sign-in/link', { token: url.split('#')[1] })
  return { service, person }
}

/** The same, with a browser. */
async function startConsole(scope: Scope) {
  const { service, person } = await startSignedIn(scope, VIDEOS)
  const browser: Browser = await startChromiumAt(HEADLESS_SHELL)
  scope.defer(() => browser.close())

  /** Opens the list in a browser with an empty cache. @returns once its first row is there */
  async function open(): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
    const [name = '', value = ''] = person.cookie?.split('=') ?? []
    await context.addCookies([{ name, value, url: service.url, httpOnly: true, sameSite: 'Strict' }])
    const page = await context.newPage()
    await page.goto(`${service.url}/console/videos`, { waitUntil: 'commit' })
    await page.locator('[data-video]').first().waitFor()
    return page
  }

  return { open }
}

/** In the page: types each text immediately. @returns after how many milliseconds the rows were those of the text */
const searchInPage = `async (texts) => {
  const input = document.querySelector('input[type="search"], [role="searchbox"]')
  const setValue = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set
  const titles = () => Array.from(document.querySelectorAll('[data-video]'), ({ textContent }) => textContent.toLowerCase())
  const isFound = (text) => titles().length > 0 && titles().every((title) => title.includes(text))
  const timesMs = []
  for (const text of texts) {
    if (isFound(text)) continue // nothing would change
    const startMs = performance.now()
    setValue.call(input, text)
    input.dispatchEvent(new Event('input', { bubbles: true }))
    while (!isFound(text)) await new Promise(requestAnimationFrame)
    timesMs.push(performance.now() - startMs)
  }
  return timesMs
}`

/** In the page: scrolls down. @returns how long each frame took, in milliseconds */
const scrollInPage = `async (frames) => {
  const scroller = (function find(element) {
    return !element || element.scrollHeight > element.clientHeight + 1000 && getComputedStyle(element).overflowY !== 'visible'
      ? element ?? document.scrollingElement : find(element.parentElement)
  })(document.querySelector('[data-video]'))
  const timesMs = []
  let lastMs = await new Promise(requestAnimationFrame)
  for (let frame = 0; frame < frames; frame++) {
    scroller.scrollTop += scroller.clientHeight / 3
    const nowMs = await new Promise(requestAnimationFrame)
    timesMs.push(nowMs - lastMs)
    lastMs = nowMs
  }
  return timesMs
}`
