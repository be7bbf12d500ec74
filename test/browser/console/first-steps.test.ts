import { readFile } from 'node:fs/promises'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeLink } from '../../console/person.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { lookAtPlayer } from '../player.ts'
import { startSite } from '../site.ts'
import { complaintsOf, consoleUrl, keepPicture, newContext, openTab } from './console.ts'

// From the link that the first start prints to a video on the owner's own site.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
const school = startSite()
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  chromium = await startChromium()
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  school.close()
})

declare const navigator: { readonly clipboard: { readText(): Promise<string> } }

test('D26: a new owner is asked for their name, uploads a video, plays it, copies the code for a page, and it plays there: four clicks and a password', async () => {
  const context = await newContext(chromium, { permissions: ['clipboard-read', 'clipboard-write'] })
  const page = await openTab(context)
  await page.goto(`${consoleUrl(reelgate)}/link#${await makeLink(reelgate)}`)

  await page.getByLabel('Your name').fill('Ada Lovelace')
  await keepPicture(page, 'first-name')
  await page.getByLabel('Password', { exact: true }).fill('a lamp in the projection room')
  await page.getByRole('button', { name: 'Set the password' }).click()

  await page.getByRole('button', { name: 'Account menu of Ada Lovelace' }).waitFor()
  const chosen = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: 'Choose videos' }).click()
  await (await chosen).setFiles(await makeVideo({ size: '320x180' }))
  await page.getByText('is on the server.').waitFor()
  await page.waitForURL(/\/console\/welcome\?video=[0-9a-f]{32}$/)

  const frame = await (await page.waitForSelector('iframe')).contentFrame()
  if (!frame) throw new Error('The page has no frame')
  const player = lookAtPlayer(page, frame)
  await player.play()
  await player.playsPast(0.5)
  await keepPicture(page, 'first-steps')

  await page.getByRole('button', { name: 'Copy' }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const line = await page.evaluate(() => navigator.clipboard.readText())
  const visitor = await openTab(await newContext(chromium))
  await visitor.goto(school.put(line))
  const framed = visitor.frames().at(1)
  if (!framed) throw new Error('The page has no frame')
  const onSite = lookAtPlayer(visitor, framed)
  await onSite.play()
  await onSite.playsPast(0.5)

  const later = await openTab(context)
  await later.goto(page.url()) // which names the video: the steps are where they were
  await later.getByRole('tab', { name: 'WordPress' }).click()
  expect(await later.getByRole('group', { name: 'WordPress code' }).textContent()).toContain('[reelgate id="')
  const [plugin] = await Promise.all([
    later.waitForEvent('download'),
    later.getByRole('link', { name: 'Download the plug-in' }).click(),
  ])
  expect((await readFile(await plugin.path())).subarray(0, 4).toString('latin1')).toBe('PK\x03\x04')

  // The list was read before, when it was empty.
  const emptyWhileRead: boolean[] = []
  await page.route(/\/videos\?page=1&/, async (route) => {
    emptyWhileRead.push(await page.getByText('Your library is empty.').isVisible())
    await route.continue()
  })
  await page.getByRole('link', { name: 'Open your library' }).click()
  await page.getByRole('list', { name: 'Videos' }).getByText('Ready').waitFor()
  expect(emptyWhileRead[0]).toBe(false)
  await page.unrouteAll({ behavior: 'wait' })
  await page
    .getByRole('list', { name: 'Videos' })
    .getByRole('checkbox', { name: /^Select / })
    .click()
  await page.getByRole('toolbar').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('Your library is empty.').waitFor()
  await page.getByText('moved to the trash.').waitFor()
  expect(page.url()).toMatch(/\/videos$/)
  expect([...complaintsOf(page), ...complaintsOf(later)]).toEqual([])
})
