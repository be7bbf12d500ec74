import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { untilFinished } from '../../data-folder.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { startChromium } from '../chromium.ts'
import { makeLanguages, TONES } from '../tones.ts'
import { complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// An owner names the audio tracks of a video, and chooses the one that plays by itself.

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
    await page.getByRole('textbox', { name: 'Name' }).fill(name)
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
