import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { readRows } from '../../rows.ts'
import { sampledTests } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { addCaptions, complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

const { test, draw } = sampledTests('details of a video', 4)

// An owner works on one video.

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

const open = (path: string, options = {}) =>
  openConsole(chromium, reelgate, { path: `/videos/${reelgate.videoId}${path}`, ...options })

test('details are changed, and a frame of the video becomes its poster', async () => {
  const page = await open('')
  await page.getByRole('textbox', { name: 'Title' }).fill('Lesson 12 – Shadow')
  await page.getByRole('textbox', { name: 'Description' }).fill('What light leaves out.')
  await page.getByRole('combobox', { name: 'Tags' }).fill('light')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('The details have been saved.').waitFor()
  await page.getByRole('heading', { name: 'Lesson 12 – Shadow', level: 1 }).waitFor()
  const before = await reelgate.owner.video(reelgate.videoId)
  expect(before).toMatchObject({ title: 'Lesson 12 – Shadow', description: 'What light leaves out.', tags: ['light'] })

  await page.getByRole('textbox', { name: 'Frame at second' }).fill('1')
  await page.getByRole('button', { name: 'Use this frame' }).click()
  await page.getByText('The poster has been changed.').waitFor()
  expect((await reelgate.owner.video(reelgate.videoId)).poster).not.toBe(before.poster)
  expect(complaintsOf(page)).toEqual([])
})

test.each([
  { screen: 'a laptop', viewport: DESKTOP, colorScheme: 'light' as const },
  { screen: 'a phone', viewport: PHONE, colorScheme: 'dark' as const },
  { screen: 'a small phone', viewport: { width: 320, height: 640 }, colorScheme: 'light' as const },
])(
  'B-11: on $screen a poster is chosen of three sharp frames or by its picture, by keyboard, too',
  async ({ screen, ...options }) => {
    await untilFinished(reelgate, reelgate.videoId)
    const { owner, videoId } = reelgate
    const page = await open('', options)
    const frames = page.getByRole('group', { name: 'Sharp and well lit' }).getByRole('button')
    await expect.poll(() => frames.count()).toBe(3)
    for (const image of await frames.locator('img').all())
      await expect.poll(() => image.evaluate((img: unknown) => (img as { naturalWidth: number }).naturalWidth)).toBeGreaterThan(0)
    const before = (await owner.video(videoId)).poster
    await frames.first().focus()
    await page.keyboard.press('Enter')
    await page.getByText('The poster has been changed.').waitFor()
    await expect.poll(async () => (await owner.video(videoId)).poster).not.toBe(before)

    const slider = page.getByRole('slider', { name: 'Frame' })
    await slider.focus()
    for (const _ of [1, 2]) await page.keyboard.press('ArrowRight')
    expect(await page.getByRole('textbox', { name: 'Frame at second' }).inputValue()).toBe('2')
    await page.locator('[data-tile="1"]').waitFor()
    await page.getByRole('heading', { name: 'Poster' }).scrollIntoViewIfNeeded()
    expect(await findFaults(page)).toEqual([])
    await keepPicture(page, `poster-${screen}`)
    await page.emulateMedia({ colorScheme: options.colorScheme === 'dark' ? 'light' : 'dark' })
    await keepPicture(page, `poster-${screen}-other`)
    expect(complaintsOf(page)).toEqual([])
  },
)

test('own fields are shown, changed and removed; an id of another video is refused in the page', async () => {
  const own = { externalId: 'lms/4711', metadata: { course: 'drawing' } }
  await reelgate.owner.call('POST', `/api/videos/${reelgate.videoId}`, { body: own })
  await reelgate.owner.call('PUT', '/api/videos?title=Other&externalId=taken')
  const page = await open('')
  const externalId = page.getByRole('textbox', { name: 'External id' })
  const save = page.getByRole('button', { name: 'Save', exact: true })
  expect(await externalId.inputValue()).toBe('lms/4711')
  expect(await page.getByRole('textbox', { name: 'Value 1' }).inputValue()).toBe('drawing')
  await page.getByRole('button', { name: 'Add a pair' }).click()
  await page.getByRole('textbox', { name: 'Name 2' }).fill('term')
  await page.getByRole('textbox', { name: 'Value 2' }).fill('1')
  await save.click()
  await page.getByText('The details have been saved.').waitFor()
  expect(await reelgate.owner.video(reelgate.videoId)).toMatchObject({ ...own, metadata: { course: 'drawing', term: '1' } })

  await externalId.fill('taken')
  await save.click()
  await page.getByText('Another video of this account has the externalId "taken".').waitFor()
  await externalId.fill('')
  await page.getByRole('button', { name: 'Remove pair 1' }).click()
  await save.click()
  await expect.poll(async () => (await reelgate.owner.video(reelgate.videoId)).externalId).toBe(undefined)
  expect(await reelgate.owner.video(reelgate.videoId)).toMatchObject({ metadata: { term: '1' } })
  expect(complaintsOf(page).filter((complaint) => !complaint.includes('409'))).toEqual([])
})

test('F-97: what was typed and taken back is no change, and only what was changed is saved', async () => {
  const page = await open('')
  const title = page.getByRole('textbox', { name: 'Title' })
  const description = page.getByRole('textbox', { name: 'Description' })
  const save = page.getByRole('button', { name: 'Save', exact: true })
  const [before, stored] = [await title.inputValue(), await description.inputValue()]
  await title.fill('Something else')
  await expect.poll(() => save.isEnabled()).toBe(true)
  await title.fill(before)
  await title.blur()
  await expect.poll(() => save.isEnabled()).toBe(false)

  await description.fill(`${stored} And back.`)
  await reelgate.owner.call('POST', `/api/videos/${reelgate.videoId}`, { body: { title: 'Changed elsewhere' } })
  await expect.poll(() => title.inputValue()).toBe('Changed elsewhere')
  const [request] = await Promise.all([
    page.waitForRequest((sent) => sent.method() === 'POST' && sent.url().endsWith(reelgate.videoId)),
    save.click(),
  ])
  expect(request.postDataJSON()).toEqual({ description: `${stored} And back.` }) // so that a change of this moment is kept
  await page.getByText('The details have been saved.').waitFor()
  await expect.poll(() => save.isEnabled()).toBe(false)
  const saved = { title: 'Changed elsewhere', description: `${stored} And back.` }
  expect(await reelgate.owner.video(reelgate.videoId)).toMatchObject(saved)
  expect(complaintsOf(page)).toEqual([])
})

test('on a phone captions are edited line by line, and the player has the new ones', async () => {
  await addCaptions(reelgate, 'en', [
    ['00:00.000', '00:01.000', 'A frist line'],
    ['00:01.000', '00:02.000', 'A second line'],
  ])
  const page = await open('?tab=captions', { viewport: PHONE, hasTouch: true })
  await page.getByRole('button', { name: 'Edit lines: English' }).tap()
  await page.getByRole('textbox', { name: 'Line 1', exact: true }).fill('A first line')
  await page.getByRole('button', { name: 'Delete line 2' }).tap()
  await page.getByRole('button', { name: 'Save the lines' }).tap()
  await page.getByText('The captions in English have been saved.').waitFor()
  await page.getByRole('button', { name: 'Edit lines: English' }).tap()
  await page.getByRole('textbox', { name: 'Line 1', exact: true }).waitFor()
  expect(await page.getByRole('textbox', { name: 'Line 1', exact: true }).inputValue()).toBe('A first line')
  expect(await page.getByRole('textbox', { name: 'Line 2', exact: true }).count()).toBe(0)
  expect(complaintsOf(page)).toEqual([])
})

test('a site, countries, a limit of streams and a watermark are saved as the defaults of its OTPs, and shown again', async () => {
  const page = await open('?tab=protection')
  await page.getByRole('textbox', { name: 'Site' }).fill('school.example')
  await page.getByRole('combobox', { name: 'Where it may be watched' }).click()
  await page.getByRole('option', { name: 'Only in some countries' }).click()
  await page.getByRole('combobox', { name: 'Countries' }).fill('Germ')
  await page.getByRole('option', { name: 'Germany' }).click()
  await page.keyboard.press('Escape')
  await page.getByRole('textbox', { name: 'Screens of one viewer' }).fill('2')
  await page.getByRole('textbox', { name: 'Seconds to open a link' }).fill('600')
  await page.getByRole('switch', { name: 'Show a text over the picture' }).check()
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('{id} at school')
  await page.getByText('reader-4711 at school').waitFor() // as it will look
  await page.getByRole('button', { name: 'Save the protection' }).click()
  await page
    .getByText('The protection has been saved. The player above shows it. Your site must send userId with each OTP')
    .waitFor()
  const saved = await (await reelgate.owner.call('GET', `/api/videos/${reelgate.videoId}/otp-defaults`)).json()
  expect(saved).toEqual({
    ...{ whitelisthref: 'school.example', ipGeo: { allow: ['DE'] }, streamLimit: 2, ttl: 600 },
    annotate: [expect.objectContaining({ type: 'rtext', text: '{id} at school', color: '0xFFFFFF' })],
  })
  await page.reload()
  expect(await page.getByRole('textbox', { name: 'Site' }).inputValue()).toBe('school.example')
  expect(await page.getByRole('textbox', { name: 'Text', exact: true }).inputValue()).toBe('{id} at school')
  expect(complaintsOf(page)).toEqual([])
})

test('on a phone an MP4 of the video is made, and downloaded when it is ready', async () => {
  const page = await open('?tab=files', { viewport: PHONE, hasTouch: true })
  await page.getByRole('button', { name: 'Make an MP4' }).tap()
  const row = page.getByRole('table', { name: 'Files' }).getByRole('row').filter({ hasText: 'MP4' })
  const downloaded = page.waitForEvent('download')
  await row.getByRole('button', { name: /^Download / }).tap() // is there when the MP4 is
  const bytes = await readFile(await (await downloaded).path())
  expect(bytes.toString('latin1', 4, 8)).toBe('ftyp')
  expect(await page.getByRole('button', { name: 'Make an MP4' }).count()).toBe(0)
  expect(complaintsOf(page)).toEqual([])
})

test('a video that plays is encoded again, and is in the queue meanwhile', async () => {
  const { videoId } = reelgate
  const page = await open('?tab=files', { viewport: DESKTOP })
  await page.getByRole('button', { name: 'Encode again' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('The video plays as it is until they are complete.').waitFor()
  await keepPicture(page, 'encode-again')
  expect(await findFaults(page)).toEqual([])
  const position = dialog.getByLabel('Only what plays at')
  await position.fill('soon')
  await dialog.getByText('Write a time of the video').waitFor()
  await position.fill('0:00.5')
  await keepPicture(page, 'encode-part-again')
  await dialog.getByRole('button', { name: 'Encode again' }).click()
  await page.getByText('is encoded again and compared.').waitFor()
  await expect.poll(() => readRows(reelgate, `select 1 from chunk where state != 'done' or compared = 1`)).toEqual([])
  const events = () => readRows(reelgate, `select details from audit_event where kind = 'video:part-encoded'`)
  expect(events()).toEqual([{ details: '{"positionS":0.5}' }])
  await page.getByRole('button', { name: 'Encode again' }).click()
  await position.fill('')
  await dialog.getByRole('button', { name: 'Encode again' }).click()
  await page.getByText('is encoded again, and plays meanwhile.').waitFor()
  await keepPicture(page, 'encode-again-begun')
  const numbers = () => readRows(reelgate, 'select number from generation where video_id = ?', videoId)
  await expect.poll(numbers).toEqual([{ number: 2 }])
  expect((await reelgate.owner.video(videoId)).status).toBe('ready')
  expect(complaintsOf(page)).toEqual([])
})

test('a failed video is encoded again with a click, and its history says so', async () => {
  const upload = await reelgate.owner.credentials('No video')
  await reelgate.owner.send(upload, new Blob(['no video']))
  const page = await openConsole(chromium, reelgate, { path: `/videos/${upload.videoId}` })
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('link', { name: 'History' }).click()
  await page.getByRole('table', { name: 'History' }).getByText('Encoded again').waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('a video is deleted last, and is in the trash', async () => {
  const page = await open('')
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page
    .getByRole('dialog', { name: /^Delete / })
    .getByRole('button', { name: 'Delete' })
    .click()
  await page.getByText('is in the trash.').waitFor()
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  expect((await reelgate.owner.call('GET', `/api/videos/${reelgate.videoId}`)).status).toBe(404)
})

draw()
