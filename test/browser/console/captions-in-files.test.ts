import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeEmbedded } from '../../assets/embedded-sources.ts'
import { listFiles } from '../../assets/sample-files.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// An owner decides which captions of an uploaded file viewers get.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  const text = '1\n00:00:01,000 --> 00:00:02,500\nGuten Tag\n'
  const video = await makeEmbedded({
    is: 'for the console',
    file: 'lesson.mkv',
    tracks: [{ name: 'a.srt', text, language: 'ger', title: 'For the hard of hearing' }],
  })
  reelgate = await startSharedReelgate({ video, title: 'Lesson 12 – Light' })
  while (!(await listFiles(reelgate.owner, reelgate.videoId)).some(({ type, size }) => type === 'caption' && size > 0))
    await pause(50)
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test.each([
  { screen: 'a laptop', viewport: DESKTOP, colorScheme: 'light' as const },
  { screen: 'a phone', viewport: PHONE, colorScheme: 'dark' as const },
])('S-07: on $screen captions of the file are shown to viewers and hidden again', async ({ screen, ...options }) => {
  const page = await openConsole(chromium, reelgate, { path: `/videos/${reelgate.videoId}?tab=captions`, ...options })
  const name = 'German, “For the hard of hearing”'
  await page.getByText(name).waitFor()
  await page.getByText('Hidden', { exact: true }).waitFor()
  await keepPicture(page, `captions-in-file-${screen}`)
  const show = page.getByRole('button', { name: `Show ${name}` })
  await show.focus()
  await page.keyboard.press('Enter')
  await page.getByText(`Captions in ${name} are shown to viewers.`).waitFor()
  await page.getByText('Shown', { exact: true }).waitFor()
  expect(await findFaults(page)).toEqual([])
  await page.getByRole('button', { name: `Hide ${name}` }).click()
  await page.getByText('Hidden', { exact: true }).waitFor()
  await page.emulateMedia({ colorScheme: options.colorScheme === 'dark' ? 'light' : 'dark' })
  await keepPicture(page, `captions-in-file-${screen}-other`)
  expect(complaintsOf(page)).toEqual([])
})
