import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { addFile } from '../../assets/sample-files.ts'
import { signIn } from '../../console/person.ts'
import type { Reelgate } from '../../in-process.ts'
import { judgeByAxe } from '../axe.ts'
import { keepPicture as keep } from '../pictures.ts'

// The console as its owner uses it: found by role and name, by mouse or by keyboard.

export const DESKTOP = { width: 1440, height: 900 }
export const PHONE = { width: 390, height: 844 }

export type OpenOptions = BrowserContextOptions & {
  /** Where it begins, such as `/videos?state=failed`. */
  path?: string
  /** Who has it open; without a name the account's first owner. */
  user?: string
}

/** By name: on this machine a passkey belongs to it, and the address that a start prints has it. */
export function consoleUrl({ url }: Pick<Reelgate, 'url'>): string {
  return `${url.replace('127.0.0.1', 'localhost')}/console`
}

/** A browser in which a person is signed in already. */
export async function openConsole(
  chromium: Browser,
  reelgate: Reelgate,
  { path = '/', user, ...options }: OpenOptions = {},
): Promise<Page> {
  const context = await newContext(chromium, options)
  const person = await signIn(reelgate, user)
  const [name = '', value = ''] = person.cookie?.split('=') ?? []
  await context.addCookies([{ name, value, url: consoleUrl(reelgate), httpOnly: true, sameSite: 'Strict' }])
  const page = await openTab(context)
  await page.goto(`${consoleUrl(reelgate)}${path}`)
  return page
}

/** A browser that has never been here. It closes with the test. */
export async function newContext(chromium: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await chromium.newContext({
    viewport: DESKTOP,
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    ...options,
  })
  onTestFinished(() => context.close())
  return context
}

const complaints = new WeakMap<Page, string[]>()

/** A tab that keeps what the browser complains of: errors of scripts, and breaches of the content security policy. */
export async function openTab(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  const found: string[] = []
  complaints.set(page, found)
  onTestFinished(async ({ task }) => {
    if (task.result?.state !== 'fail' || page.isClosed()) return
    console.error(`${page.url()} shows:\n${await page.locator('body').ariaSnapshot()}`, found)
  })
  page.on('pageerror', (error) => found.push(String(error)))
  page.on('console', (message) => {
    // A refusal of the server is written by the browser, too; what the page makes of it, the tests look at.
    const isRefusal = message.text().startsWith('Failed to load resource')
    if ((message.type() === 'error' || message.type() === 'warning') && !isRefusal) found.push(message.text())
  })
  return page
}

export function complaintsOf(page: Page): string[] {
  return complaints.get(page) ?? []
}

declare const document: {
  readonly documentElement: { readonly scrollWidth: number; readonly clientWidth: number }
  getAnimations(): { readonly finished: Promise<unknown> }[]
  querySelectorAll(selector: string): Iterable<PageElement>
}
type PageElement = {
  readonly textContent: string
  closest(selector: 'nav'): PageElement
  getBoundingClientRect(): { left: number; right: number }
}
declare function requestAnimationFrame(draw: () => void): void

/** What axe finds on the page, and what is wider than its screen. @param rules of axe; without them all */
export async function findFaults(page: Page, rules?: readonly string[]): Promise<string[]> {
  // Colours that are changing are not those that will be read.
  await page.evaluate(async () => {
    await new Promise<void>((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))
    await Promise.allSettled(document.getAnimations().map(({ finished }) => finished))
  })
  const faults = await judgeByAxe(page, rules)
  const overflowPx = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  const hidden = await page.evaluate(findHiddenParts)
  return [
    ...faults,
    ...(overflowPx > 0 ? [`the page is ${overflowPx} px wider than the screen`] : []),
    ...hidden.map((text) => `the link to the open part “${text}” is out of sight`),
  ]
}

/** Of rows of links that are wider than the screen. Runs in the page. */
function findHiddenParts(): string[] {
  return [...document.querySelectorAll('nav [aria-current]')].flatMap((link) => {
    const [row, { left, right }] = [link.closest('nav').getBoundingClientRect(), link.getBoundingClientRect()]
    return left < row.left - 1 || right > row.right + 1 ? [link.textContent] : []
  })
}

/** Keeps a screenshot of the whole page for a person to look at. */
export function keepPicture(page: Page, name: string): Promise<void> {
  return keep(`console-${name}`, () => page.screenshot({ fullPage: true }))
}

/** Presses Tab until what is wanted has the focus. */
export async function tabTo(page: Page, selector: string): Promise<void> {
  await page.locator(selector).first().waitFor({ state: 'attached' })
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab')
    if ((await page.locator(`${selector}:focus`).count()) > 0) return
  }
  throw new Error(`Tab does not reach ${selector}`)
}

/** Captions of the video that the server began with. */
export async function addCaptions(
  { owner, videoId }: Pick<Reelgate, 'owner' | 'videoId'>,
  language: string,
  cues: readonly (readonly [from: string, to: string, text: string])[],
): Promise<void> {
  const text = ['WEBVTT', ...cues.map(([from, to, line]) => `${from} --> ${to}\n${line}`)].join('\n\n')
  const response = await addFile(owner, videoId, text, language)
  if (!response.ok) throw new Error(`The captions were not added: ${response.status} ${await response.text()}`)
}
