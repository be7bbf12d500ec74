import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startReelgate } from '../../in-process.ts'
import { launch, ofVideo, openLink, platformsOf } from '../../lti/launch.ts'
import { startPlatform } from '../../lti/platform.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
})
afterAll(() => chromium?.close())

test('N02: an owner connects a learning platform by a link, confirms it after comparing it, reads its last error, and removes it', async () => {
  const platform = await startPlatform()
  const reelgate = await startReelgate({ env: { REELGATE_OUTBOUND_ALLOW: platform.host } })
  const page = await openConsole(chromium, reelgate, { viewport: DESKTOP })
  const complaints = complaintsOf(page)
  await page.getByRole('link', { name: 'Develop' }).click()
  await page.getByRole('link', { name: 'Learning platforms' }).click()
  await page.getByRole('button', { name: 'Connect a platform' }).click()
  await page.getByRole('button', { name: 'Make a link' }).click()
  const dialog = page.getByRole('dialog')
  const link = (await dialog.locator('code').textContent()) ?? ''
  expect(link).toMatch(/\/lti\/register\/\w{64}$/)
  expect((await openLink(link, platform)).status).toBe(200)
  const table = page.getByRole('table', { name: 'Learning platforms' })
  await dialog.getByText(platform.state.clientId).waitFor() // it has come by itself
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await table.getByText('To be confirmed').waitFor()
  await table.getByRole('button', { name: /confirm it/ }).click()
  await dialog.getByText(platform.state.clientId).waitFor()
  await keepPicture(page, 'console-platform-confirm')
  expect(await findFaults(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Confirm' }).click()
  await table.getByText('On', { exact: true }).waitFor()

  const [{ id } = { id: '' }] = await platformsOf(reelgate.owner)
  await launch(reelgate, platform, id, ofVideo(reelgate, '0'.repeat(32)))
  await page.setViewportSize(PHONE)
  await page.reload()
  await page.getByText('This video is not open to this course').waitFor()
  await keepPicture(page, 'console-platforms-phone')
  await page.getByRole('button', { name: /^Courses/ }).click()
  await dialog.getByRole('combobox', { name: 'Economics as a Social Science' }).click()
  await page.getByRole('option', { name: 'All videos' }).click()
  const courses = async () => (await (await reelgate.owner.call('GET', `/api/lti/platforms/${id}/courses`)).json()) as unknown
  await expect.poll(courses).toMatchObject({ rows: [{ folderId: 'root' }] })
  await keepPicture(page, 'console-courses-phone')
  expect(await findFaults(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: /^Remove/ }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No platforms.').waitFor()
  expect(complaints).toEqual([])
  await platform.close()
})
