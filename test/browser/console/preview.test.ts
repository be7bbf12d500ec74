import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { readRows } from '../../rows.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { lookAtPlayer } from '../player.ts'
import { DESKTOP, openConsole } from './console.ts'

// The player on the console's own pages.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: 'The ready one' })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('U34: the page of a video opens no session and spends no OTP before it is played, whatever tab is opened; then one', async () => {
  const page = await openConsole(chromium, reelgate, { path: `/videos/${reelgate.videoId}` })
  const redeems: string[] = []
  page.on('request', (request) => /\/play\/(?!poster)/.test(request.url()) && redeems.push(request.url()))
  const frame = page.locator('iframe[title="Player: The ready one"]')
  const box = await frame.boundingBox()
  expect(box?.height).toBeLessThanOrEqual(DESKTOP.height / 2)
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(DESKTOP.height)
  for (const tab of ['Captions', 'Protection', 'Renditions', 'Statistics', 'History', 'Details']) {
    await page.getByRole('link', { name: tab, exact: true }).click()
    await page.locator(`nav [aria-current]:text-is("${tab}")`).waitFor()
  }
  await page.getByText('How the player looks and starts').click()
  await page.frameLocator('iframe[title="Player with these options"]').locator('body[data-state=ready]').waitFor()
  await page.frameLocator('iframe[title="Player: The ready one"]').locator('body[data-state=ready]').waitFor()
  expect(redeems).toEqual([])
  expect(readRows(reelgate, 'select id from playback_session')).toEqual([])
  const content = await (await frame.elementHandle())?.contentFrame()
  if (!content) throw new Error('The page has no player')
  const player = lookAtPlayer(page, content)
  await player.play()
  await player.playsPast(0.3)
  expect(readRows(reelgate, 'select id from playback_session')).toHaveLength(1)
})
