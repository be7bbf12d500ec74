import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../../in-process.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, openConsole } from './console.ts'

// The page that imports from a list of addresses. Nothing listens at these: what is tried is the list.

const HOST = '127.0.0.1:9'
let reelgate: Reelgate & { remove(): Promise<void> }
let chromium: Browser

beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: HOST } })
  chromium = await startChromium()
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('S29: a CSV of 500 lines is imported with one call; a wrong line says why, and is the only one that is left to import', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/videos/import' })
  const calls: string[] = []
  page.on('request', (request) => {
    if (request.method() !== 'GET') calls.push(`${request.method()} ${new URL(request.url()).pathname}`)
  })
  const lines = Array.from(
    { length: 499 },
    (_, index) => `http://${HOST}/${index}.mp4,Lesson ${index},course;light,Courses/Drawing,2026-11-21`,
  )
  await page
    .getByLabel('Addresses or CSV')
    .fill(['url,title,tags,folder,date', ...lines, 'http://10.0.0.1/a.mp4,Private,,,'].join('\n'))
  await page.getByRole('button', { name: 'Import 500 videos' }).click()
  await page.getByText('499 videos added, 1 failed.').waitFor()
  expect(calls).toEqual(['POST /console/api/imports'])
  const firstRow = page.getByRole('table', { name: 'What is imported' }).getByRole('row').nth(1)
  expect(await firstRow.textContent()).toMatch(/^501http:\/\/10\.0\.0\.1\/a\.mp4.*not on the public internet/)
  await page.getByRole('button', { name: 'Import 1 video' }).waitFor()
  await page.getByRole('link', { name: 'See them in the library' }).click()
  await page.getByText('Lesson 498', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Courses' }).first().waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('S29: rows whose call found no server are added once it is back', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/videos/import' })
  let isAway = true
  await page.route('**/console/api/imports', (route) => (isAway ? route.abort() : route.continue()))
  await page.getByLabel('Addresses or CSV').fill(`http://${HOST}/again.mp4`)
  const failed = page.waitForEvent('requestfailed')
  await page.getByRole('button', { name: 'Import 1 video' }).click()
  await failed
  isAway = false
  await page.getByText('1 video added.').waitFor()
})
