import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { changeRows } from '../../rows.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, findFaults, keepPicture, openConsole, tabTo } from './console.ts'

// What an owner reads from the charts: by mouse, by keyboard, and as tables.

const dayBefore = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate()
  const { videoId } = await reelgate.owner.credentials('Lesson 12 – Light')
  for (const [daysAgo, sentBytes, viewCount] of [
    [1, 3_000_000_000, 7],
    [2, 1_000_000_000, 1],
  ] as const)
    changeRows(
      reelgate,
      `insert into video_usage (day, account_id, video_id, user_id, sent_bytes, view_count) select ?, account_id, id, '', ?, ? from video where id = ?`,
      ...[dayBefore(daysAgo), sentBytes, viewCount, videoId],
    )
  changeRows(
    reelgate,
    'insert into storage_day (day, account_id, size_bytes) select ?, account_id, 2000000000000 from video where id = ?',
    ...[dayBefore(1), videoId],
  )
  for (const [view, daysAgo, startMs, waits, country, browser, error] of [
    [1, 1, 600, 0, 'DE', 'Chrome', null],
    [2, 1, 900, 2, 'DE', 'Firefox', null],
    [3, 2, 1400, 0, 'FR', 'Safari', 'network'],
  ] as const)
    changeRows(
      reelgate,
      `insert into view_quality select ?, 'p', ?, account_id, id, ?, ?, '4g', 60000, ?, ?, ?, 50000, 1500, 3, ?, '720:50000' from video where id = ?`,
      ...[String(view), dayBefore(daysAgo), country, browser, startMs, waits, 2000 * waits, error, videoId],
    )
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('the arrow keys read a chart day by day, and the same is in a table', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/activity?days=7' })
  const chart = page.getByRole('application', { name: 'Views.' })
  await chart.waitFor()
  await tabTo(page, '[role=application]')
  const reading = page.getByRole('figure', { name: 'Views' }).getByRole('status')
  await page.keyboard.press('ArrowRight')
  await reading.getByText('Views: 0').waitFor()
  const read: string[] = []
  for (let day = 2; day < 7; day++) {
    const before = (await reading.textContent()) ?? ''
    await page.keyboard.press('ArrowRight')
    await reading.filter({ hasNotText: before }).waitFor()
    read.push((await reading.textContent())?.split(': ')[1] ?? '')
  }
  expect(read.join()).toContain('1,7')

  await page.getByText('Bandwidth as a table').click()
  const table = page.getByRole('figure', { name: 'Bandwidth' }).getByRole('table')
  await table.getByRole('cell', { name: '3 GB' }).waitFor()
  expect(await table.getByRole('row').count()).toBe(8) // its head and 7 days

  await page.getByText('Storage as a table').click()
  const storage = page.getByRole('figure', { name: 'Storage' }).getByRole('table')
  await storage.getByRole('row', { name: '2 TB' }).waitFor()
  await storage.getByRole('cell', { name: 'not measured' }).first().waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('what draws charts is loaded when the first one is shown', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/videos' })
  await page.getByRole('link', { name: 'Lesson 12 – Light' }).waitFor()
  const drawings = () =>
    page.evaluate('performance.getEntriesByType("resource").filter(({ name }) => name.includes("/drawing-")).length')
  expect(await drawings()).toBe(0)
  await page.getByRole('link', { name: 'Activity' }).click()
  await page.getByRole('application', { name: 'Views.' }).waitFor()
  expect(await drawings()).toBe(1)
})

test('how videos play: shares and sums, medians by day, and countries, browsers, networks and videos compared', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/activity?days=7' })
  const section = page.getByRole('region', { name: 'How it plays' })
  for (const text of ['33.3%', '2.6%']) await section.getByText(text).first().waitFor() // one view of three waited; 4 s of 154
  await section.getByText('Time to the first frame as a table').click()
  await section.getByRole('cell', { name: '0.6 s' }).first().waitFor()
  await section.getByRole('row', { name: 'Germany 2 0.6 s 0.9 s 50%' }).waitFor()
  await section.getByText('Browsers', { exact: true }).click()
  await section.getByRole('row', { name: 'Safari 1 1.4 s 1.4 s 0% network 1' }).waitFor()
  await section.getByText('Videos', { exact: true }).click()
  await section.getByRole('link', { name: 'Lesson 12 – Light' }).waitFor()
  expect(await findFaults(page)).toEqual([])
  await section.scrollIntoViewIfNeeded()
  await keepPicture(page, 'how it plays')
  await page.setViewportSize({ width: 390, height: 844 })
  await section.scrollIntoViewIfNeeded()
  await keepPicture(page, 'how it plays on a phone')
  expect(complaintsOf(page)).toEqual([])
})

test('an account sees how much of its storage limit is used, a warning from 90 %, and before it uploads that nothing more fits', async () => {
  const upload = await reelgate.owner.credentials('Stored')
  await reelgate.owner.send(upload, new Blob([Buffer.alloc(950_000)]))
  await reelgate.owner.until(upload.videoId, 'Not a media file')
  const limitTo = (bytes: number | null) => changeRows(reelgate, 'update account set storage_limit_bytes = ?', bytes)
  onTestFinished(() => void limitTo(null))
  limitTo(2_000_000)
  const page = await openConsole(chromium, reelgate, { path: '/activity' })
  await page.getByText('950 kB of 2 MB').waitFor()
  expect(await page.getByText('Nearly used up.').count()).toBe(0)
  limitTo(1_000_000)
  await page.reload()
  await page.getByText('Nearly used up. Delete videos, also from the trash').waitFor()
  expect(await findFaults(page)).toEqual([])
  await keepPicture(page, 'storage nearly used')
  limitTo(900_000)
  await page.getByRole('link', { name: 'Videos', exact: true }).first().click()
  await page.reload()
  await page.getByRole('alert').getByText('Nothing more can be uploaded: 950 kB of 900 kB are stored.').waitFor()
  expect(await findFaults(page)).toEqual([])
  await page.setViewportSize({ width: 390, height: 844 })
  await keepPicture(page, 'storage full on a phone')
})
