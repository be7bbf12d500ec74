import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { judgeByAxe } from '../browser/axe.ts'
import { startChromium } from '../browser/chromium.ts'
import { keepPicture } from '../browser/pictures.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sampleOf } from '../sample.ts'

// The API reference as people read it, at /docs/api.

declare function getComputedStyle(element: unknown): { readonly maxWidth: string }
declare const document: {
  readonly documentElement: { readonly scrollWidth: number; readonly clientWidth: number }
  readonly activeElement: { readonly textContent: string }
}

const PHONE = { width: 390, height: 844 }
const DESKTOP = { width: 1300, height: 900 }

let reelgate: Reelgate & { remove(): Promise<void> }
let chromium: Browser
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  chromium = await startChromium()
})
afterAll(async () => {
  await chromium.close()
  await reelgate.remove()
})

async function openDocs(viewport: { width: number; height: number }, colorScheme: 'dark' | 'light' = 'dark') {
  const context = await chromium.newContext({ viewport, colorScheme })
  const page = await context.newPage()
  await page.goto(`${reelgate.url}/docs/api`)
  await keepPicture(`docs-${viewport.width}-${colorScheme}`, () => page.screenshot())
  return page
}

test.each(
  sampleOf(
    'screens of the API reference',
    [
      { on: 'a phone in the dark', viewport: PHONE, scheme: 'dark' },
      { on: 'a desktop in the light', viewport: DESKTOP, scheme: 'light' },
    ] as const,
    1,
  ),
)('on $on nothing is wider than the screen, and axe finds no fault', async ({ viewport, scheme }) => {
  const page = await openDocs(viewport, scheme)
  expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)).toBe(0)
  expect(await judgeByAxe(page)).toEqual([])
})

test('the keyboard reaches an operation: past the list by its first key, or through it', async () => {
  const page = await openDocs(DESKTOP)
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement.textContent)).toBe('Skip to the operations')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  expect(await page.locator('section:target h3').textContent()).toBe('List and search videos')
})

test('the page needs no script and loads nothing: its policy allows its own style alone', async () => {
  const page = await (await chromium.newContext({ javaScriptEnabled: false })).newPage()
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  const problems: string[] = []
  page.on('console', (message) => problems.push(message.text()))
  const response = await page.goto(`${reelgate.url}/docs/api`)
  expect(response?.headers()['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; img-src data:;/)
  expect(await page.locator('body').evaluate((body) => getComputedStyle(body).maxWidth)).toBe('1180px')
  expect(asked.filter((url) => !url.startsWith('data:'))).toEqual([`${reelgate.url}/docs/api`])
  expect(problems).toEqual([])
})

test('it is public, and a browser that has it revalidates', async () => {
  for (const path of ['/docs/api', '/docs/api/', '/docs/api/openapi.json']) {
    const response = await fetch(`${reelgate.url}${path}`)
    expect(response.status).toBe(200)
    const again = await fetch(`${reelgate.url}${path}`, { headers: { 'If-None-Match': response.headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
  }
})
