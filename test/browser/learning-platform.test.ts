import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { courseAddress, ofVideo, register } from '../lti/launch.ts'
import { choosing, startPlatform, type TestPlatform } from '../lti/platform.ts'
import { makeVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { complaintsOf, findFaults, keepPicture, newContext, openTab, PHONE } from './console/console.ts'

// A launch as a course of a learning platform makes it: in a frame of another site.

let platform: TestPlatform
let reelgate: Reelgate & { remove(): Promise<void> }
let id: string
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  platform = await startPlatform()
  const env = { REELGATE_OUTBOUND_ALLOW: platform.host }
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: 'Lesson 12 – Light', env })
  id = await register(reelgate, platform, { mayUpload: 1 })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  await platform?.close()
})

/** Opens a course in a new browser, which keeps cookies of the frame for this pair of sites. */
async function openCourse(): Promise<Page> {
  const page = await openTab(await newContext(chromium))
  await page.goto(courseAddress(reelgate, platform, id, { stores: false }))
  return page
}

const activity = (page: Page) => page.frameLocator('iframe[title="Activity"]')

test('a launch plays in a frame whose cookies are kept for this pair of sites', async () => {
  platform.state.next = ofVideo(reelgate, reelgate.videoId)
  const page = await openCourse()
  await activity(page).getByRole('button', { name: 'Play', exact: true }).first().waitFor()
})

test('a teacher chooses a video in a frame, by keyboard, on a phone too, and axe finds no fault', async () => {
  platform.state.next = choosing(platform.issuer)
  const page = await openCourse()
  const complaints = complaintsOf(page)
  const choose = activity(page).getByRole('button', { name: 'Choose Lesson 12 – Light' })
  await choose.waitFor()
  for (const [name, size] of Object.entries({ desktop: { width: 960, height: 640 }, phone: PHONE })) {
    await page.setViewportSize(size)
    expect(await findFaults(page)).toEqual([])
    const isWider = await activity(page)
      .locator('html')
      .evaluate((html) => html.scrollWidth > html.clientWidth)
    expect(isWider, name).toBe(false)
    await keepPicture(page, `learning-platform-choose-${name}`)
  }
  await activity(page).getByRole('combobox', { name: 'Completed at' }).selectOption('80')
  await choose.focus()
  await page.keyboard.press('Enter')
  await activity(page).getByText('The video was added.').waitFor()
  expect(JSON.stringify(platform.state.answers.at(-1))).toContain('"completion_percent":"80"')
  const isOfAxe = (text: string) => text.startsWith("Failed to execute 'postMessage'") // which asks into frames
  expect(complaints.filter((text) => !isOfAxe(text))).toEqual([])
})

test('N29: a teacher uploads a video in a frame, and chooses it', async () => {
  platform.state.next = choosing(platform.issuer)
  const page = await openCourse()
  await activity(page).getByRole('button', { name: 'Upload a video' }).click()
  await activity(page)
    .locator('reelgate-uploader input[type=file]')
    .setInputFiles(await makeVideo({ seconds: 1 }))
  const choose = activity(page).getByRole('button', { name: 'Choose this video' })
  await expect.poll(() => choose.isEnabled()).toBe(true)
  await keepPicture(page, 'learning-platform-upload')
  await choose.click()
  await activity(page).getByText('The video was added.').waitFor()
  expect(JSON.stringify(platform.state.answers.at(-1))).toContain('ltiResourceLink')
})
