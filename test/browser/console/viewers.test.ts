import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { makeVideo } from '../../videos.ts'
import { haveWatched } from '../../viewers/watched.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, keepPicture, openConsole, PHONE, tabTo } from './console.ts'

// An owner looks at who watches, and stops them.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: 'Lesson 12 – Light' })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

async function watch(userId: string) {
  const viewer = reelgate.newViewer()
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId })
  await viewer.redeem(otp)
  expect((await viewer.key(0)).status).toBe(200)
  return Object.assign(viewer, { otp })
}

const open = (path: string, options = {}) => openConsole(chromium, reelgate, { path, ...options })

test('who watches is listed; one session is stopped, then all of a viewer, and their players get no further key', async () => {
  const [first, second, other] = [await watch('ann'), await watch('ann'), await watch('ben')]
  const page = await open('/viewers')
  const table = page.getByRole('table', { name: 'Who watches now' })
  await table.getByRole('link', { name: 'ann' }).nth(1).waitFor()
  await table.getByRole('link', { name: 'ben' }).waitFor()
  expect(await table.getByRole('link', { name: 'Lesson 12 – Light' }).count()).toBe(3)

  await table.getByRole('button', { name: 'Stop ann, Lesson 12 – Light' }).first().click()
  await page.getByRole('dialog', { name: 'Stop ann?' }).getByRole('button', { name: 'Stop' }).click()
  await page.getByText('Stopped. The player says so within 8 seconds.').waitFor()
  await expect.poll(() => table.getByRole('link', { name: 'ann' }).count()).toBe(1)
  expect([(await first.key(0)).status, (await second.key(0)).status].toSorted()).toEqual([200, 403])

  await table.getByRole('button', { name: 'Stop ann, Lesson 12 – Light' }).click()
  await page.getByRole('radio', { name: 'All sessions of ann' }).check()
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
  await table.getByRole('link', { name: 'ann' }).waitFor({ state: 'detached' })
  expect([(await first.key(0)).status, (await second.key(0)).status, (await other.key(0)).status]).toEqual([403, 403, 200])
  expect(complaintsOf(page)).toEqual([])
})

test('U38: viewers whose links bring a name are listed and found by it', async () => {
  const viewer = reelgate.newViewer()
  const named = { userId: 'reader-12', viewer: { name: 'Lena Okafor', email: 'lena@example.org' } }
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId, named))
  expect((await viewer.key(0)).status).toBe(200)
  haveWatched(reelgate, 'reader-12', 2)
  const page = await open('/viewers')
  const row = page.getByRole('row').filter({ hasText: 'lena@example.org · reader-12' })
  await row.getByRole('link', { name: 'Lena Okafor' }).waitFor()
  await keepPicture(page, 'viewers-named')
  await page.getByRole('link', { name: 'Who watched' }).click()
  await page.getByRole('searchbox').fill('okafor')
  await page.getByRole('link', { name: 'Lena Okafor' }).click()
  await page.getByRole('heading', { name: 'Lena Okafor', level: 1 }).waitFor()
  await page.getByText('lena@example.org · reader-12').waitFor()
  const download = page.waitForEvent('download')
  await page.getByRole('link', { name: /^Download as CSV ?: Watched videos$/ }).click()
  expect((await download).suggestedFilename()).toBe('viewers.csv')
  await keepPicture(page, 'viewer-named')
  expect(complaintsOf(page)).toEqual([])
})

test('by keyboard alone: from the list to a viewer, who is stopped and erased', async () => {
  const viewer = await watch('kim')
  haveWatched(reelgate, 'kim', 2)
  const page = await open('/viewers/watched')
  await page.getByRole('link', { name: 'kim' }).waitFor()
  await tabTo(page, 'a[href$="/viewers/kim"]')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'kim', level: 1 }).waitFor()
  await page.getByRole('img', { name: '0:00 to 0:02' }).waitFor()
  await tabTo(page, 'button[aria-label^="Stop kim"]')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Stop kim?' }).waitFor()
  await page.keyboard.press('Tab') // from Cancel, where it begins
  await page.keyboard.press('Enter')
  await page.getByText('kim is not watching right now.').waitFor()
  expect((await viewer.key(0)).status).toBe(403)

  await tabTo(page, 'button:has-text("Erase the viewer")')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Erase kim?' }).waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('kim has been erased.').waitFor()
  expect(await (await reelgate.owner.call('GET', '/api/viewers/kim')).json()).toEqual({ rows: [] })
})

test('an alert is on every page until it is marked as seen, on a phone, too', async () => {
  const viewer = await watch('dora')
  await reelgate.newViewer().redeem(viewer.otp) // refused
  const page = await open('/videos', { viewport: PHONE, hasTouch: true })
  const notice = page.getByRole('region', { name: 'New alerts' })
  await notice.getByText('A second browser tried a link of dora.').waitFor()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Viewers' }).tap()
  await page.getByRole('heading', { name: 'Viewers' }).waitFor()
  await notice.getByRole('link', { name: 'Show' }).tap()
  await page.getByText('A second browser tried a link of dora').waitFor()
  await page.getByRole('button', { name: 'Mark all as seen' }).tap()
  await page.getByText('New', { exact: true }).waitFor({ state: 'detached' })
  const answered = page.waitForResponse('**/api/alerts?*')
  await page.goto(page.url().replace('/alerts', '/videos'))
  await answered
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  expect(await notice.count()).toBe(0)
})

test('what happens is shown while it happens, to a page that does not ask from time to time', async () => {
  const page = await open('/videos')
  await page.addInitScript('globalThis.setInterval = () => 0')
  const streamed = page.waitForResponse('**/console/api/events')
  await page.goto(page.url().replace('/videos', '/viewers'))
  await page.getByRole('navigation', { name: 'Viewers' }).waitFor()
  await streamed
  await watch('zoe')
  await page.getByRole('table', { name: 'Who watches now' }).getByRole('link', { name: 'zoe' }).waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('a screen too many is listed as refused, with the reason in words', async () => {
  const screens = [reelgate.newViewer(), reelgate.newViewer()]
  for (const screen of screens)
    await screen.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'max', streamLimit: 1 }))
  expect([(await screens[0]?.key(0))?.status, (await screens[1]?.key(0))?.status]).toEqual([200, 409])
  const reasons = async () => {
    const { rows } = (await (await reelgate.owner.call('GET', '/api/refusals')).json()) as { rows: { reason: string }[] }
    return rows.map(({ reason }) => reason)
  }
  await expect.poll(reasons).toContain('stream-limit') // what sessions are refused is saved every few seconds
  const page = await open('/viewers/refused')
  const row = page.getByRole('table', { name: 'Refused viewers' }).getByRole('row').filter({ hasText: 'max' })
  await row.getByText('The viewer was already watching on as many screens as allowed').waitFor()
  await keepPicture(page, 'refused-limit')
  expect(complaintsOf(page)).toEqual([])
})
