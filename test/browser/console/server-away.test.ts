import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { startReelgate, startSharedReelgate } from '../../in-process.ts'
import { startNginx } from '../../nginx.ts'
import { sampledTests } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { findFaults, keepPicture, openConsole, PHONE } from './console.ts'

const { test, draw } = sampledTests('servers that are away', 3)

// A server that is away for a while, and one that comes back with another build.

let shared: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  shared = await startSharedReelgate({ video: await makeVideo(), title: 'Lesson 12' })
})
afterAll(async () => {
  await chromium?.close()
  await shared?.remove()
})

const notice = (page: Page) => page.getByRole('alert').filter({ hasText: 'Reelgate does not answer.' })
const titles = (page: Page) => page.getByRole('list', { name: 'Videos' }).getByRole('link').allTextContents()

test('U31: a server that stops is named on the open page without a click; what is asked of it fails in words; and the page comes back by itself', async () => {
  const reelgate = await startReelgate()
  const { videoId } = await reelgate.owner.credentials('First')
  const page = await openConsole(chromium, reelgate, { path: `/videos/${videoId}` })
  await page.getByRole('textbox', { name: 'Title' }).fill('Renamed')
  let loads = 0
  page.on('domcontentloaded', () => {
    loads += 1
  })
  await reelgate.stop()
  await notice(page).waitFor()
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The server cannot be reached.').waitFor()
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await keepPicture(page, `server-away-1440-${colorScheme}`)
    expect(await findFaults(page)).toEqual([])
  }
  await page.setViewportSize(PHONE)
  await keepPicture(page, 'server-away-390-dark')
  expect(await findFaults(page)).toEqual([])

  await reelgate.restart()
  await notice(page).waitFor({ state: 'detached' })
  expect(await page.getByRole('textbox', { name: 'Title' }).inputValue()).toBe('Renamed') // what was typed is kept
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expect.poll(async () => (await reelgate.owner.video(videoId)).title).toBe('Renamed')
  expect(loads).toBe(0)
})

test('U31: a list that is opened while the server is away behind its proxy is there as soon as it is back', async () => {
  const reelgate = await startReelgate()
  await reelgate.owner.credentials('First')
  const nginx = await startNginx(() => ({
    location: `proxy_pass ${reelgate.url}; proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_buffering off;`,
  }))
  onTestFinished(() => nginx.remove())
  const page = await openConsole(chromium, { ...reelgate, url: nginx.url }, { path: '/activity' })
  await page.getByRole('application', { name: 'Bandwidth.' }).waitFor()
  await reelgate.stop()
  await notice(page).waitFor()
  await page.getByRole('link', { name: 'Videos', exact: true }).click()
  await reelgate.restart()
  await expect.poll(() => titles(page)).toEqual(['First'])
  await notice(page).waitFor({ state: 'detached' })
  await reelgate.owner.credentials('Second') // the stream of events is open again, too
  await expect.poll(() => titles(page)).toEqual(['Second', 'First'])
})

test('U31: a server that stays away is asked more and more rarely, up to every 30 seconds, and immediately by a click', async () => {
  const page = await openConsole(chromium, shared, { path: '/videos' })
  await expect.poll(() => titles(page)).toHaveLength(1)
  await page.clock.install()
  let asked = 0
  const isApi = (url: URL) => /\/(healthz|console\/api\/.*)$/.test(url.pathname)
  await page.route(isApi, async (route) => {
    if (route.request().url().endsWith('/healthz')) asked += 1
    await route.abort()
  })
  await page.getByRole('searchbox').fill('les')
  const next = page.getByText(/^Next try in /)
  async function untilNextTryIn(seconds: number) {
    while (!(await next.textContent())?.endsWith(` ${seconds} s`)) await page.clock.runFor(500)
  }
  for (const seconds of [2, 4, 8, 16, 30]) await untilNextTryIn(seconds)
  expect(asked).toBe(6)
  await page.unroute(isApi)
  await page.getByRole('button', { name: 'Try now' }).click()
  await notice(page).waitFor({ state: 'detached' })
})

test('U32: after an upgrade, a script that is gone loads the page again once, at the same place; what stays missing is said', async () => {
  const page = await openConsole(chromium, shared, { path: `/videos/${shared.videoId}` })
  await page.getByRole('textbox', { name: 'Title' }).waitFor()
  let loads = 0
  page.on('domcontentloaded', () => {
    loads += 1
  })
  const script = /\/protection-tab-[^/]+\.js$/
  await page.route(script, (route) => (loads === 0 ? route.fulfill({ status: 404 }) : route.continue()))
  await page.getByRole('link', { name: 'Protection' }).click()
  await page.getByRole('textbox', { name: 'Site' }).waitFor()
  expect(loads).toBe(1)
  expect(page.url()).toMatch(/tab=protection$/)

  await page.route(/\/history-tab-[^/]+\.js$/, (route) => route.fulfill({ status: 404 }))
  await page.getByRole('link', { name: 'History' }).click()
  await page.getByRole('heading', { name: 'A part of this page is missing' }).waitFor()
  await page.getByRole('link', { name: 'Develop' }).click() // the rest is there
  await page.getByRole('heading', { name: 'Develop' }).waitFor()
  expect(loads).toBe(1)
})

test('U32: the script of a page that is opened while the server is away is not taken for gone: the page is there with the server', async () => {
  const reelgate = await startReelgate()
  const { videoId } = await reelgate.owner.credentials('First')
  const page = await openConsole(chromium, reelgate, { path: `/videos/${videoId}` })
  await page.getByRole('textbox', { name: 'Title' }).waitFor()
  await reelgate.stop()
  await notice(page).waitFor()
  await page.getByRole('link', { name: 'History' }).click()
  await page.getByRole('heading', { name: 'Loading a newer version of this page' }).waitFor()
  expect(await notice(page).isVisible()).toBe(true)
  await reelgate.restart()
  await page.getByRole('heading', { name: 'History' }).waitFor()
})

draw()
