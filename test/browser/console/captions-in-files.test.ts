import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeEmbedded } from '../../assets/embedded-sources.ts'
import { listFiles } from '../../assets/sample-files.ts'
import { makeSpokenVideo, makeTranscriber } from '../../assets/speech/speech.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// An owner decides which captions of an uploaded file viewers get.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let transcriber: Awaited<ReturnType<typeof makeTranscriber>>
let chromium: Browser
let spoken: string
beforeAll(async () => {
  chromium = await startChromium()
  const text = '1\n00:00:01,000 --> 00:00:02,500\nGuten Tag\n'
  const video = await makeEmbedded({
    is: 'for the console',
    file: 'lesson.mkv',
    tracks: [{ name: 'a.srt', text, language: 'ger', title: 'For the hard of hearing' }],
  })
  transcriber = await makeTranscriber()
  reelgate = await startSharedReelgate({ video, title: 'Lesson 12 – Light', env: transcriber.env })
  spoken = await reelgate.owner.upload('Ten digits', await makeSpokenVideo())
  await reelgate.owner.until(spoken, 'ready')
  while (!(await listFiles(reelgate.owner, reelgate.videoId)).some(({ type, size }) => type === 'caption' && size > 0))
    await pause(50)
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  await transcriber?.remove()
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

test.each([
  { screen: 'a laptop', viewport: DESKTOP, colorScheme: 'dark' as const },
  { screen: 'a phone', viewport: PHONE, colorScheme: 'light' as const },
])(
  'S-20: on $screen a video is transcribed, which is seen and cancelled, and its captions are marked as checked',
  async ({ screen, ...options }) => {
    const page = await openConsole(chromium, reelgate, { path: `/videos/${spoken}?tab=captions`, ...options })
    const waiting = join(transcriber.folder, 'wait')
    await writeFile(waiting, '')
    const transcribe = page.getByRole('button', { name: 'Transcribe', exact: true })
    await page.getByRole('combobox', { name: 'Language' }).fill('qae')
    await transcribe.focus()
    await page.keyboard.press('Enter')
    await page.getByText(/^Being transcribed, [1-9]\d* %$/).waitFor()
    await keepPicture(page, `transcription-${screen}`)
    await page.getByRole('button', { name: /^Cancel the transcription in/ }).click()
    await page.getByText('The transcription has been cancelled.').waitFor()
    await page.getByText(/^Being transcribed/).waitFor({ state: 'detached' })
    await rm(waiting)
    await transcribe.click()
    await page.getByText('Shown, automatic').waitFor()
    await keepPicture(page, `transcribed-${screen}`)
    expect(await findFaults(page)).toEqual([])
    await page.getByRole('button', { name: /^Mark as checked: / }).click()
    await page.getByText(/are no longer called automatic\.$/).waitFor()
    await page.getByText('Shown', { exact: true }).waitFor()
    await page.getByRole('button', { name: /^Delete qae/i }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Shown', { exact: true }).waitFor({ state: 'detached' })
    expect(complaintsOf(page)).toEqual([])
  },
)

test('S-20: the settings name the language in which all new videos are transcribed', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/system/settings', viewport: DESKTOP })
  const field = page.getByRole('combobox', { name: 'Captions of speech for all new videos' })
  await field.fill('engl')
  await page.getByRole('option', { name: 'English' }).click()
  expect(await findFaults(page)).toEqual([])
  await keepPicture(page, 'settings-transcribe')
  await page.getByRole('button', { name: 'Save the settings' }).click()
  await page.getByText('The settings have been saved.').waitFor()
  expect(await (await reelgate.owner.call('GET', '/api/account')).json()).toMatchObject({ transcribeLanguage: 'en' })
})
