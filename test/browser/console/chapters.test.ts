import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// An owner divides a video into chapters.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo({ seconds: 8 }), title: 'Lesson 12 – Light' })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const open = (options: object): Promise<Page> =>
  openConsole(chromium, reelgate, { path: `/videos/${reelgate.videoId}?tab=chapters`, ...options })

test.each([
  { screen: 'a laptop', viewport: DESKTOP, colorScheme: 'light' as const },
  { screen: 'a phone', viewport: PHONE, colorScheme: 'dark' as const },
])('C-07: on $screen chapters are pasted, saved and shown by the player above', async ({ screen, ...options }) => {
  await reelgate.owner.call('PUT', `/api/videos/${reelgate.videoId}/chapters`, { body: { chapters: [] } })
  const page = await open(options)
  const lines = page.getByRole('textbox', { name: 'Chapters, one a line' })
  const save = page.getByRole('button', { name: 'Save the chapters' })
  await page.getByRole('button', { name: 'Add the player’s time' }).click()
  expect(await lines.inputValue()).toBe('0:00 ')
  await lines.fill('0:00 Introduction\nno time')
  await page.getByText('Line 2 does not begin with a time such as 12:30.').waitFor()
  expect(await save.isEnabled()).toBe(false)
  await lines.fill('• 0:02 – Light and shadow\n0:00 Introduction')
  await save.click()
  await page.getByText('The chapters have been saved.').waitFor()
  expect(await lines.inputValue()).toBe('0:00 Introduction\n0:02 Light and shadow')
  const stored = await reelgate.owner.call('GET', `/api/videos/${reelgate.videoId}/chapters`)
  expect(await stored.json()).toMatchObject({ chapters: [{ startS: 0 }, { startS: 2, title: 'Light and shadow' }] })

  const player = page.frameLocator('iframe')
  await player.locator('.big-play').click()
  await player.locator('body[data-state="playing"]').waitFor()
  await page.getByRole('button', { name: '0:02 Light and shadow' }).click()
  await expect.poll(() => player.locator('.chapter').textContent()).toBe('Light and shadow')
  await untilFinished(reelgate, reelgate.videoId)
  await page.reload()
  await page.getByRole('list', { name: 'Chapters of the video' }).locator('[data-tile="1"]').waitFor() // of 0:02
  expect(await findFaults(page)).toEqual([])
  await keepPicture(page, `chapters-${screen}`)
  await page.emulateMedia({ colorScheme: options.colorScheme === 'dark' ? 'light' : 'dark' })
  await keepPicture(page, `chapters-${screen}-other`)
  expect(complaintsOf(page)).toEqual([])
})

test('C-07: a chapter behind the end of the video is refused in the page, and what was typed remains', async () => {
  const page = await open({})
  const lines = page.getByRole('textbox', { name: 'Chapters, one a line' })
  await lines.fill('12:30 Late')
  await page.getByRole('button', { name: 'Save the chapters' }).click()
  await page.getByText('The chapter "Late" begins at 12:30, but the video ends at').waitFor()
  expect(await lines.inputValue()).toBe('12:30 Late')
})
