import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { makeCertificate } from '../certificate.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { courseAddress, ofVideo, register } from '../lti/launch.ts'
import { choosing, startPlatform, type TestPlatform } from '../lti/platform.ts'
import { sampleOf } from '../sample.ts'
import { startTlsFront } from '../tls-front.ts'
import { makeVideo } from '../videos.ts'
import { startChromium, startChromiumWithoutStorage, startChromiumWithoutThirdPartyCookies } from './chromium.ts'
import { complaintsOf, findFaults, keepPicture, newContext, openTab, PHONE } from './console/console.ts'
import { lookAtPlayer } from './player.ts'

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

/** People’s browsers, and whether the platform stores for tools. */
const STRICT = [
  { where: 'third-party cookies are off', start: startChromiumWithoutThirdPartyCookies, stores: false },
  { where: 'no cookie is kept, with what the platform stores', start: startChromiumWithoutStorage, stores: true },
]

test.each(sampleOf('browsers that keep no cookies of frames', STRICT, 1))(
  'N32: over https a launch plays in a frame of another site where $where',
  async ({ start, stores }) => {
    const certificate = makeCertificate()
    const [courses, videos] = [await startTlsFront(certificate), await startTlsFront(certificate)]
    const own = await startPlatform()
    onTestFinished(() => own.close())
    courses.lead(own.issuer)
    const origin = `https://localhost:${courses.port}`
    own.state.configuration = { authorization_endpoint: `${origin}/authorize` }
    const publicUrl = `https://127.0.0.1:${videos.port}`
    const allowed = [own.host, `localhost:${courses.port}`].join(',')
    const env = { REELGATE_PUBLIC_URL: publicUrl, REELGATE_OUTBOUND_ALLOW: allowed }
    const server = await startReelgate({ video: await makeVideo(), env })
    videos.lead(server.url)
    const ofServer = await register(server, own)
    own.state.next = ofVideo({ url: publicUrl }, server.videoId)
    const { browser, remove } = await start({ ignoreHTTPSErrors: true })
    onTestFinished(remove)

    const page = await openTab(browser)
    const address = (stored: boolean) => courseAddress({ url: publicUrl }, own, ofServer, { stores: stored, origin })
    await page.goto(address(stores))
    await activity(page).getByRole('button', { name: 'Play', exact: true }).first().waitFor()
    const player = lookAtPlayer(page, page.frames().at(1))
    await player.play()
    await player.playsPast(0.5)
    expect(await player.frame.evaluate("document.cookie = 'a=b; SameSite=None; Secure'; document.cookie")).toBe('')
    if (!stores) return
    await page.goto(address(false))
    await activity(page).getByText('Have the activity open in a new window').waitFor()
  },
)

test('a teacher chooses a video in a frame, by keyboard, on a phone too, and axe finds no fault', async () => {
  platform.state.next = choosing(platform.issuer)
  const page = await openCourse()
  const complaints = complaintsOf(page)
  const choose = activity(page).getByRole('button', { name: 'Choose Lesson 12 – Light' })
  await choose.waitFor()
  expect(complaints).toEqual([])
  for (const [name, size] of Object.entries({ desktop: { width: 960, height: 640 }, phone: PHONE })) {
    await page.setViewportSize(size)
    expect(await findFaults(page)).toEqual([])
    const isWider = await activity(page)
      .locator('html')
      .evaluate((html) => html.scrollWidth > html.clientWidth)
    expect(isWider, name).toBe(false)
    await keepPicture(page, `learning-platform-choose-${name}`)
  }
  // axe asks into the frame, which is of another site.
  expect(complaints.filter((text) => !text.startsWith("Failed to execute 'postMessage'"))).toEqual([])
  complaints.length = 0
  await activity(page).getByRole('combobox', { name: 'Completed at' }).selectOption('80')
  await choose.focus()
  await page.keyboard.press('Enter')
  await activity(page).getByText('The video was added.').waitFor()
  expect(JSON.stringify(platform.state.answers.at(-1))).toContain('"completion_percent":"80"')
  expect(complaints).toEqual([])
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
