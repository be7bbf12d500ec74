import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn } from '../../console/person.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { sampleOf } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { lookAtPlayer } from '../player.ts'
import { complaintsOf, consoleUrl, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// What people who are no owners see of the console: what they may do, and nothing that would refuse them.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo({ size: '320x180' }), title: 'Of the owner' })
  const owner = await signIn(reelgate)
  for (const role of ['viewer', 'uploader']) await owner.get('POST', '/users', { name: `the ${role}`, role })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const TABS = [
  '',
  '?tab=captions',
  '?tab=audio',
  '?tab=chapters',
  '?tab=trim',
  '?tab=protection',
  '?tab=files',
  '?tab=statistics',
  '?tab=history',
]
const PAGES = [
  ...['/videos', '/trash', '/alerts', '/viewers', '/activity', '/develop', '/develop/defaults', '/develop/webhooks'],
  ...['/system/you', '/system/settings', '/system/queue'],
]
const OWNERS_PAGES = [
  '/develop/keys',
  '/develop/limits',
  '/system/people',
  '/system/audit-log',
  '/system/server',
  '/system/accounts',
]
const REFUSED = 'This page is not for your role'

/** The texts of alerts on the page, which are what was refused or failed. */
async function refusalsAt(page: Page, path: string): Promise<string[]> {
  await page.goto(`${consoleUrl(reelgate)}${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.waitForLoadState('networkidle')
  return page.getByRole('main').getByRole('alert').allTextContents()
}

test('D25: a viewer plays a video in the console, and meets no form that would refuse', async () => {
  const page = await openConsole(chromium, reelgate, { path: `/videos/${reelgate.videoId}`, user: 'the viewer' })
  const frame = await (await page.waitForSelector('iframe')).contentFrame()
  if (!frame) throw new Error('The page has no frame')
  const player = lookAtPlayer(page, frame)
  await player.play()
  await player.playsPast(0.5)
  await keepPicture(page, 'viewer-video')
  for (const tab of sampleOf('tabs of a video for a viewer', TABS, 2))
    expect([tab, await refusalsAt(page, `/videos/${reelgate.videoId}${tab}`)]).toEqual([tab, []])
  for (const path of sampleOf('pages for a viewer', PAGES, 3)) expect([path, await refusalsAt(page, path)]).toEqual([path, []])
  expect(complaintsOf(page)).toEqual([])
  for (const path of sampleOf('pages that are not for a viewer', ['/welcome', '/videos/import', ...OWNERS_PAGES], 2)) {
    expect([path, await refusalsAt(page, path)]).toEqual([path, []])
    await page.getByRole('heading', { name: REFUSED }).waitFor()
  }
  await keepPicture(page, 'viewer-not-allowed')
  expect(await findFaults(page)).toEqual([])
})

test('D24: on a phone an uploader edits a video that they added, and sees another one without its forms', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/videos', user: 'the uploader', viewport: PHONE })
  await page.getByRole('button', { name: 'Add videos' }).waitFor()
  const uploader = await signIn(reelgate, 'the uploader')
  const { videoId } = await uploader.get<{ videoId: string }>('PUT', '/videos?title=Theirs')
  await page.goto(`${consoleUrl(reelgate)}/videos/${videoId}`)
  await page.getByRole('textbox', { name: 'Title' }).fill('Changed by its uploader')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The details have been saved.').waitFor()
  await keepPicture(page, 'uploader-own-video')
  expect(await findFaults(page)).toEqual([])
  expect(await page.getByRole('button', { name: /^Delete/ }).count()).toBe(0)
  expect(await refusalsAt(page, `/videos/${reelgate.videoId}`)).toEqual([])
  expect(await page.getByRole('textbox', { name: 'Title' }).count()).toBe(0)
  expect(await refusalsAt(page, '/videos/import')).toEqual([])
  await page.getByRole('textbox', { name: 'Addresses or CSV' }).waitFor()
  expect(complaintsOf(page)).toEqual([])
  for (const path of sampleOf('pages that are not for an uploader', OWNERS_PAGES, 1)) {
    expect([path, await refusalsAt(page, path)]).toEqual([path, []])
    await page.getByRole('heading', { name: REFUSED }).waitFor()
  }
})
