import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { readRows } from '../../rows.ts'
import { sampleOf } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { lookAtPlayer } from '../player.ts'
import { startSite } from '../site.ts'
import { complaintsOf, findFaults, keepPicture, newContext, openConsole, openTab, PHONE } from './console.ts'

// An owner chooses how a video is embedded, and copies the code to a page of their site.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
const school = startSite()
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo({ size: '320x180' }), title: 'Lesson 12 – Light' })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  school.close()
})

declare const navigator: { readonly clipboard: { readText(): Promise<string> } }
declare const history: { readonly length: number }
declare const document: { querySelector(selector: 'video'): { readonly loop: boolean; readonly muted: boolean } }

const WAYS = [
  { way: 'Frame', holds: '<iframe' },
  { way: 'Element', holds: '<reelgate-player' },
  { way: 'Script', holds: 'vdo.add(' },
]

test.each(sampleOf('ways of embedding', WAYS, 1))(
  'code that was copied as $way plays on a page of another site, with the options of its preview and the watermark that were chosen',
  async ({ way, holds }) => {
    const countSessions = () => readRows(reelgate, 'select id from playback_session').length
    const sessionsBefore = countSessions()
    const page = await openConsole(chromium, reelgate, {
      path: `/videos/${reelgate.videoId}`,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await page.getByRole('radiogroup', { name: 'Way of embedding' }).getByText(way).click()
    const playerOfPage = page.frameLocator('iframe[title="Player: Lesson 12 – Light"]')
    await playerOfPage.locator('body[data-state=ready]').waitFor()
    const historyBefore = await page.evaluate(() => history.length)
    expect(countSessions() - sessionsBefore).toBe(0) // until it is played
    await page.getByText('How the player looks and starts').click()
    const preview = page.frameLocator('iframe[title="Player with these options"]')
    await preview.locator('body[data-state=ready]').waitFor()
    await page.getByRole('switch', { name: 'Starts by itself, muted' }).check()
    await preview.locator('body[data-state=playing]').waitFor()
    expect(await preview.locator('.title').textContent()).toBe('Lesson 12 – Light')
    await page.getByRole('switch', { name: 'Repeats' }).check()
    await page.getByRole('switch', { name: 'Shows the title' }).uncheck()
    await page.getByRole('textbox', { name: 'Start at second' }).fill('1')
    await page.getByRole('textbox', { name: 'Primary color' }).fill('#7cc4ff')
    await page.getByRole('textbox', { name: 'Font' }).fill('Georgia, serif')
    await preview.locator('html[style*="--lamp: #7cc4ff"][style*="Georgia"]').waitFor()
    await preview.locator('body[data-state=playing] video[loop]').waitFor()
    expect(await preview.locator('.title').textContent()).toBe('')
    expect(countSessions() - sessionsBefore).toBe(1) // however often it is loaded
    expect(await page.evaluate(() => history.length)).toBe(historyBefore)
    await page.getByText('What your server asks for with each link').click()
    await page.getByRole('textbox', { name: 'Watermark' }).fill('{id} <{email}>')
    await page.getByRole('textbox', { name: 'Site' }).fill('^localhost$')
    await page.getByRole('textbox', { name: 'Screens of one viewer' }).fill('2')
    await keepPicture(page, `embed-${way}`)
    await page.getByRole('button', { name: 'Copy' }).click() // waits until the code has this OTP
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    const code = await page.evaluate(() => navigator.clipboard.readText())
    expect(code).toContain(holds)

    const visitor = await openTab(await newContext(chromium))
    const redeemed = visitor.waitForResponse('**/play/redeem')
    await visitor.goto(school.put(code))
    const answer = await (await redeemed).text()
    expect(answer).toContain('reader-4711 <ann@example.org>')
    const { session } = JSON.parse(answer)
    const sessions = readRows(reelgate, 'select stream_limit from playback_session where id = ?', session)
    expect(sessions).toEqual([{ stream_limit: 2 }])
    const frame = visitor.frames().at(1)
    if (!frame) throw new Error('The page has no frame')
    const player = lookAtPlayer(visitor, frame)
    await player.until(({ paused, timeS }) => !paused && timeS > 1.2) // it was not clicked
    expect(await frame.evaluate(() => document.querySelector('video').loop)).toBe(true)
    expect((await player.video()).muted).toBe(true)
    expect(await frame.locator('.title').textContent()).toBe('')
    const styles = 'getComputedStyle(document.documentElement)'
    expect(await frame.evaluate(`${styles}.getPropertyValue('--lamp')`)).toBe('#7cc4ff')
    expect(await frame.evaluate(`${styles}.getPropertyValue('--font')`)).toContain('Georgia')
    expect([...complaintsOf(page), ...player.complaints]).toEqual([])
  },
)

test('on a phone the code in every language follows what is chosen, and a site that cannot be one is explained', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/develop/code', viewport: PHONE, hasTouch: true })
  await page.getByText('What your server asks for with each link').tap()
  await page.getByRole('textbox', { name: 'Site' }).fill('https://school.example/')
  await page.getByRole('alert').getByText('whitelisthref').waitFor()
  await page.getByRole('textbox', { name: 'Site' }).fill('school.example')
  await page.getByRole('combobox', { name: 'Where it may be watched' }).tap()
  await page.getByRole('option', { name: 'Only in some countries' }).tap()
  await page.getByText('Until you choose one, it may be watched everywhere.').waitFor()
  await page.getByRole('combobox', { name: 'Countries' }).fill('Germ')
  await page.getByRole('option', { name: 'Germany' }).tap()
  await page.getByRole('textbox', { name: 'Screens of one viewer' }).fill('3')
  await page.getByRole('textbox', { name: 'Seconds to open a link' }).fill('60')
  for (const language of ['curl', 'Node', 'PHP', 'Python', 'WordPress']) {
    await page.getByRole('tab', { name: language }).tap()
    const code = page.getByRole('group', { name: language === 'WordPress' ? 'WordPress options' : `${language} code` })
    await code.getByText('school.example').waitFor()
    const text = (await code.textContent()) ?? ''
    expect(text).toMatch(/.ttl.{1,5}60\b/)
    expect(text).toMatch(/.streamLimit.{1,5}3\b/)
    expect(text).toMatch(/.ipGeo.{1,5}[[{]\s*.allow.{1,5}\[\s*.DE.\s*\]/)
  }
  await page.getByText('How the player looks and starts').tap()
  await page.getByRole('textbox', { name: 'Primary color' }).tap()
  await page.locator('[data-position] [role=slider]').first().waitFor() // the color picker is open
  await keepPicture(page, 'embed-phone-color')
  expect(await findFaults(page)).toEqual([])
  expect(complaintsOf(page)).toEqual([])
})
