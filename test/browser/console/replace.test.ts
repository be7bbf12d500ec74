import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import type { VideoBody } from '../../client.ts'
import { untilFinished } from '../../data-folder.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../../in-process.ts'
import { readRows } from '../../rows.ts'
import { sampledTests } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import {
  addCaptions,
  complaintsOf,
  consoleUrl,
  DESKTOP,
  findFaults,
  keepPicture,
  openConsole,
  openTab,
  PHONE,
  tabTo,
} from './console.ts'

const { test, draw } = sampledTests('files that are replaced and cut', 2)

// An owner cuts a lesson, sends another file for it, and takes both back.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({
    video: await makeVideo({ seconds: 6, rate: 20, audioTrack: false }),
    title: 'Lesson 12 – Light',
  })
  await untilFinished(reelgate, reelgate.videoId)
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const openTrim = (on: Reelgate & { videoId: string }, options: object = {}): Promise<Page> =>
  openConsole(chromium, on, { path: `/videos/${on.videoId}?tab=trim`, ...options })

const chooser = (page: Page) => page.locator('main input[type=file]')
const isPart = (url: URL) => /\/console\/api\/uploads\/[0-9a-f]{32}$/.test(url.pathname)

async function untilPlays(of: Reelgate & { videoId: string }, seconds: number): Promise<VideoBody> {
  await expect.poll(async () => (await of.owner.video(of.videoId)).length).toBeCloseTo(seconds, 1)
  return of.owner.video(of.videoId)
}

const playerValue = (page: Page, name: 'currentTime' | 'duration') =>
  page
    .frameLocator('iframe')
    .locator('video')
    .evaluate((video, of) => Number(Reflect.get(video, of)), name)

/** The player above plays, from the one of now. */
async function expectPlaying(page: Page): Promise<void> {
  const player = page.frameLocator('iframe')
  await player.locator('.big-play').click()
  await player.locator('body[data-state="playing"]').waitFor()
}

test.each([
  { screen: 'a laptop', viewport: DESKTOP, colorScheme: 'light' as const },
  { screen: 'a phone', viewport: PHONE, colorScheme: 'dark' as const },
])(
  'on $screen a lesson is cut at the player’s time, by keyboard too, and with one click it is whole again',
  async ({ screen, ...options }) => {
    const page = await openTrim(reelgate, options)
    const [start, end] = [page.getByRole('textbox', { name: 'Start' }), page.getByRole('textbox', { name: 'End' })]
    const trim = page.getByRole('button', { name: 'Trim the video' })
    expect([await start.inputValue(), await end.inputValue(), await trim.isEnabled()]).toEqual(['0:00', '0:06', false])
    await start.fill('5.8')
    await page.getByText('The end must be at least half a second after the start.').waitFor()
    await start.fill('soon')
    await page.getByText('Write a time such as 12:30 or 0:07.5.').waitFor()
    expect(await trim.isEnabled()).toBe(false)
    await start.fill('0:00')

    await page.getByRole('slider', { name: 'Start' }).focus()
    for (let presses = 0; presses < 10; presses++) await page.keyboard.press('ArrowRight')
    expect(await start.inputValue()).toBe('0:01')
    await expect.poll(() => playerValue(page, 'currentTime')).toBeCloseTo(1, 1) // the player shows where the cut will be
    await page.getByRole('slider', { name: 'End' }).focus()
    for (let presses = 0; presses < 15; presses++) await page.keyboard.press('ArrowLeft')
    await page.getByRole('button', { name: 'Start at the player’s time' }).click()
    await page.getByText('The end must be at least half a second after the start.').waitFor()
    await start.fill('0:01')
    await page.getByText('New length: 0:04 of 0:06.').waitFor() // 3.5 s, as lengths are written
    await keepPicture(page, `trim-${screen}`)
    expect(await findFaults(page)).toEqual([])
    await tabTo(page, 'button[type=submit]')
    await page.keyboard.press('Enter')
    await page.getByText('The trim has begun.').waitFor()
    await page.getByText('Now 0:01 to 0:04.5 of the file plays.').waitFor()
    expect((await untilPlays(reelgate, 3.5)).length).toBeCloseTo(3.5, 1)
    await page.getByText('trimmed · kept until').waitFor()
    await expectPlaying(page)
    await expect.poll(() => playerValue(page, 'duration')).toBeCloseTo(3.5, 1)
    await keepPicture(page, `trimmed-${screen}`)
    expect(await findFaults(page)).toEqual([])

    await page.getByRole('button', { name: 'Undo the trim' }).click()
    await page.getByText('The video plays the former version again.').waitFor()
    await untilPlays(reelgate, 6)
    expect([await start.inputValue(), await end.inputValue()]).toEqual(['0:00', '0:06'])
    await page.getByRole('button', { name: 'Delete it now' }).click()
    await page.getByRole('dialog', { name: 'Delete the former version?' }).waitFor()
    await keepPicture(page, `former-version-deleted-${screen}`)
    expect(await findFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Delete for good' }).click()
    await page.getByText('The former versions have been deleted.').waitFor()
    await page.getByRole('button', { name: 'Redo' }).waitFor({ state: 'detached' })
    expect(complaintsOf(page)).toEqual([])
  },
)

test('another file replaces that of a lesson: the list and the page say how far it is, and that the former one plays until then', async () => {
  const own = await startWithLesson()
  const chapters = [0, 2, 4].map((startS) => ({ startS, title: `At ${startS}` }))
  await own.owner.call('PUT', `/api/videos/${own.videoId}/chapters`, { body: { chapters } })
  await addCaptions(own, 'en', [
    ['00:01.000', '00:02.000', 'A first line'],
    ['00:03.500', '00:04.000', 'A second line'],
  ])
  const page = await openTrim(own)
  await page.locator('[data-tile]').first().waitFor()
  const former = await pictureAddress(page)
  const held = Promise.withResolvers<void>()
  await page.route(isPart, async (route) => {
    await held.promise
    await route.continue()
  })
  await chooser(page).setInputFiles(await makeVideo({ seconds: 3, size: '96x64' }))
  await page.getByText(/^0 % of .* sent\. Keep this tab open/).waitFor()
  await page.getByRole('region', { name: 'Uploads' }).getByText('New file of Lesson 12').waitFor()
  expect(await findFaults(page)).toEqual([])
  await keepPicture(page, 'replace-sent')
  held.resolve()
  await untilPlays(own, 3)
  await page.getByText('not shown: 1 line of the captions in English and 1 chapter.').waitFor()
  await keepPicture(page, 'replaced-does-not-fit')
  expect(await findFaults(page)).toEqual([])
  await page.getByText('replaced · kept until').waitFor()
  await expect.poll(() => pictureAddress(page)).not.toBe(former)
  expect(await page.getByRole('textbox', { name: 'End' }).inputValue()).toMatch(/^0:03/)
  expect(await own.owner.video(own.videoId)).toMatchObject({ title: 'Lesson 12', kept: [{ replacedBy: 'replace' }] })

  // One that is no video changes nothing.
  const none = Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1'), Buffer.alloc(2_000, 'none')])
  await chooser(page).setInputFiles({ name: 'Broken.mp4', mimeType: 'video/mp4', buffer: none })
  await page.getByText('The new file could not be used, and nothing has changed.').waitFor()
  await keepPicture(page, 'replace-failed')
  expect(await findFaults(page)).toEqual([])
  const list = await openConsole(chromium, own, { path: '/videos' })
  await list.getByText('Ready, new file failed').waitFor()
  await page.getByRole('button', { name: 'Dismiss' }).click()
  await list.getByText('Ready', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Undo the replacement' }).click()
  await untilPlays(own, 6)
  await page.getByText('not shown:').waitFor({ state: 'detached' })
  await expectPlaying(page)
  expect(complaintsOf(page)).toEqual([])
})

/** Of the sheet with the picture at the start; undefined while the video has none. */
const pictureAddress = (page: Page): Promise<string | undefined> =>
  page.evaluate(`document.querySelector('[data-tile]')?.style.backgroundImage`)

async function startWithLesson() {
  const own = await startReelgate({ video: await makeVideo({ seconds: 6 }), title: 'Lesson 12' })
  await untilFinished(own, own.videoId)
  return own
}

test('P-48: an upload that replaces a file is cancelled: what has arrived is deleted, and the video plays as before', async () => {
  const { owner, videoId } = reelgate
  const before = await owner.video(videoId)
  const page = await openTrim(reelgate)
  const uploads = () =>
    readRows(reelgate, 'select id from resumable_upload where video_id = ? and finished_at_s is null', videoId)
  await page.route(isPart, (route) => (route.request().method() === 'PATCH' ? undefined : route.continue())) // no part has an answer
  for (const where of [
    page.getByRole('button', { name: 'Cancel the upload' }),
    page.getByRole('button', { name: 'Cancel New file' }),
  ]) {
    await chooser(page).setInputFiles(await makeVideo({ seconds: 8, size: '96x64' }))
    await expect.poll(uploads).toHaveLength(1)
    await where.click()
    await expect.poll(uploads).toEqual([])
  }
  expect(await owner.video(videoId)).toEqual(before)
  await page.getByRole('button', { name: 'Replace file' }).waitFor()
  await expectPlaying(page)
  expect(complaintsOf(page)).toEqual([])
})

test('P-49: a tab that sends a new file is closed: the same file continues in the same place, and is a video of its own in the library', async () => {
  const page = await openTrim(reelgate)
  const path = await makeVideo({ seconds: 8, size: '96x64' })
  const begun: string[] = []
  page.context().on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/console/api/uploads'))
      begun.push(request.headers()['upload-metadata'] ?? '')
  })
  const isSending = Promise.withResolvers<void>()
  await page.route(isPart, () => isSending.resolve()) // and no part has an answer
  await chooser(page).setInputFiles(path)
  await isSending.promise // the address of its upload is kept
  expect(begun).toHaveLength(1)
  await page.getByText(/sent\. Keep this tab open/).waitFor()
  page.on('dialog', (dialog) => dialog.accept())
  const closed = page.waitForEvent('close')
  await page.close({ runBeforeUnload: true })
  await closed

  const tab = await openTab(page.context())
  await tab.goto(`${consoleUrl(reelgate)}/videos`)
  await tab.getByText('New file of Lesson 12 – Light. Choose this file again in the same place').waitFor()
  await tab.route(isPart, () => undefined)
  await tab.getByRole('button', { name: 'Add videos' }).waitFor()
  await tab.locator('input[type=file]').first().setInputFiles(path)
  await expect.poll(() => begun).toHaveLength(2)
  await tab.unroute(isPart)
  await tab.goto(`${consoleUrl(reelgate)}/videos/${reelgate.videoId}?tab=trim`)
  await chooser(tab).setInputFiles(path)
  await untilPlays(reelgate, 8)
  expect(begun).toHaveLength(2)
})

draw()
