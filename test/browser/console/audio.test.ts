import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { claimEncoding } from '../../pipeline/dubs.ts'
import { makeSound } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { makeLanguages, TONES } from '../tones.ts'
import { complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// An owner names the audio tracks of a video, and chooses the one that plays by default.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeLanguages(TONES, 10), title: 'Lesson 12 – Light' })
  await untilFinished(reelgate, reelgate.videoId)
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const open = (options: object): Promise<Page> =>
  openConsole(chromium, reelgate, { path: `/videos/${reelgate.videoId}?tab=audio`, ...options })

test.each([
  { screen: 'a laptop', viewport: DESKTOP, colorScheme: 'light' as const, name: 'Director', before: 'Commentary' },
  { screen: 'a phone', viewport: PHONE, colorScheme: 'dark' as const, name: 'Lecturer', before: 'Director' },
])(
  'T-08: on $screen an audio track is renamed and made the default, and the player shows it',
  async ({ screen, name, before, ...options }) => {
    const page = await open(options)
    await page.getByRole('button', { name: `Edit ${before}` }).click()
    await page.getByRole('dialog').getByRole('textbox', { name: 'Name' }).fill(name)
    await keepPicture(page, `audio-dialog-${screen}`)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The audio track has been saved.').waitFor()
    const other = screen === 'a phone' ? 'English' : name
    await page.getByRole('button', { name: `Make default: ${other}` }).click()
    await page.getByText(`“${other}” plays unless a viewer chooses another.`).waitFor()
    expect(await findFaults(page)).toEqual([])
    await keepPicture(page, `audio-${screen}`)
    const list = await reelgate.owner.call('GET', `/api/videos/${reelgate.videoId}/audio`)
    const { tracks } = (await list.json()) as { tracks: { name: string; default: boolean }[] }
    expect(tracks.map((track) => track.name)).toEqual(['English', 'Deutsch', name])
    expect(tracks.find((track) => track.default)?.name).toBe(other)
    expect(complaintsOf(page)).toEqual([])
  },
)

test('T-26: while an audio track is encoded, a bar shows how much of it is, and it can be removed', async () => {
  const claim = claimEncoding(reelgate, reelgate.videoId)
  const page = await open({ viewport: PHONE, colorScheme: 'dark' })
  const section = page.getByRole('region', { name: 'Add an audio track' })
  await section.getByRole('combobox', { name: 'Language' }).fill('it')
  await section.locator('input[type=file]').setInputFiles(await makeSound(4))
  await page.getByText('Waits to be encoded').waitFor()
  claim.hasEncoded(0.4)
  await page.getByText('Being encoded, 40 %').waitFor()
  await page.getByRole('progressbar', { name: 'Encoding of Italiano' }).waitFor()
  expect(await findFaults(page)).toEqual([])
  await keepPicture(page, 'audio-encoding')
  await page.getByRole('button', { name: 'Remove Italiano' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('“Italiano” has been removed.').waitFor()
  claim.end()
})

test('T-14: an audio track is added from a file, with its progress, made the default and removed', async () => {
  const page = await open({ viewport: PHONE, colorScheme: 'light' })
  const section = page.getByRole('region', { name: 'Add an audio track' })
  await section.getByRole('combobox', { name: 'Language' }).fill('fren')
  await page.getByRole('option', { name: 'French' }).click()
  await section.getByRole('textbox', { name: 'Name' }).fill('Français')
  await section.getByRole('switch').check()
  expect(await findFaults(page)).toEqual([])
  await keepPicture(page, 'audio-add')
  await section.locator('input[type=file]').setInputFiles(await makeSound(4))
  await page.getByText('The audio track in French has been sent, and is being encoded.').waitFor()
  await page.getByText('by default; its file is 0:06 shorter than the video, and silent from there').waitFor()
  await page.getByRole('button', { name: 'Edit Français' }).waitFor()
  await keepPicture(page, 'audio-added')
  await page.getByRole('button', { name: 'Remove Français' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('“Français” has been removed.').waitFor()

  expect(await section.getByRole('combobox', { name: 'Language' }).inputValue()).toBe('') // the next track is of another
  await section.getByRole('combobox', { name: 'Language' }).fill('fren')
  await page.getByRole('option', { name: 'French' }).click()
  await section
    .locator('input[type=file]')
    .setInputFiles({ name: 'a.mp3', mimeType: 'audio/mpeg', buffer: Buffer.from('no sound') })
  await page.getByText('This file has no sound that can be decoded.').waitFor()
  expect(await findFaults(page)).toEqual([])
  await keepPicture(page, 'audio-failed')
  await page.getByRole('button', { name: 'Remove Français' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('“Français” has been removed.').waitFor()
  await section.getByRole('combobox', { name: 'Language' }).fill('!')
  await section.locator('input[type=file]').setInputFiles(await makeSound(4))
  await section.getByRole('alert').waitFor()
  expect(complaintsOf(page).filter((text) => !text.includes('400'))).toEqual([])
})
