import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { makeVideo } from '../../videos.ts'
import { haveWatched } from '../../viewers/watched.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, consoleUrl, openConsole } from './console.ts'

// Whatever text others gave, such as an uploader or a program that imports, the owner reads it as text.

const TEXT = '<img src=x onerror=alert(1)><b data-hostile>bold</b>'

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: TEXT })
  const { owner, videoId } = reelgate
  await owner.call('POST', `/api/videos/${videoId}`, { body: { description: TEXT } })
  await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: [TEXT] } })
  await owner.call('POST', '/api/videos/folders', { body: { name: TEXT } })
  await owner.call('POST', '/api/keys', { body: { name: TEXT, permissions: ['viewer'] } })
  const viewer = reelgate.newViewer()
  const otp = await owner.issueOtp(videoId, { userId: 'reader-4711' })
  await viewer.redeem(otp)
  await viewer.key(0)
  await reelgate.newViewer().redeem(otp) // refused, and an alert
  haveWatched(reelgate, 'reader-4711', 2)
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('X08: titles, descriptions, tags, folders and names of keys are text on every page, in its title and in what is announced', async () => {
  const page = await openConsole(chromium, reelgate)
  const video = `/videos/${reelgate.videoId}`
  for (const path of [
    ...['/videos', '/videos?view=cards', video, '/alerts', '/viewers/refused', '/viewers/reader-4711', '/develop/keys'],
  ]) {
    await page.goto(`${consoleUrl(reelgate)}${path}`)
    await page.getByText(TEXT).first().waitFor()
    expect([path, await page.locator('[data-hostile], [onerror]').count()]).toEqual([path, 0])
  }
  await page.goto(`${consoleUrl(reelgate)}${video}`)
  await page.getByRole('heading', { name: TEXT, level: 1 }).waitFor()
  expect(await page.title()).toBe(`${TEXT} · Reelgate`)
  expect(await page.getByRole('textbox', { name: 'Description' }).inputValue()).toBe(TEXT)

  await page.goto(`${consoleUrl(reelgate)}/develop/keys`)
  await page.getByRole('button', { name: `Revoke ${TEXT}` }).click()
  await page.getByRole('dialog').getByText(TEXT).first().waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText(`The key ${TEXT} has been revoked.`).waitFor()

  await reelgate.owner.call('DELETE', `/api/videos?videos=${reelgate.videoId}&trash=1`)
  await page.goto(`${consoleUrl(reelgate)}/trash`)
  await page.getByText(TEXT).first().waitFor()
  expect(await page.locator('[data-hostile], [onerror]').count()).toBe(0)
  expect(complaintsOf(page)).toEqual([]) // a handler in the page would have been refused by its policy, with a complaint
})
