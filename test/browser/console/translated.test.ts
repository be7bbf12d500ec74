import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { sampleOf } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { haveWatched } from '../../viewers/watched.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, consoleUrl, openConsole } from './console.ts'

// The console while a browser translates it.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: 'Lesson 12 – Light' })
  haveWatched(reelgate, 'ann', 2)
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

/** Two browsers try one link: the second is refused, and there is an alert. */
async function tryTwice(userId: string): Promise<void> {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId })
  for (const viewer of [reelgate.newViewer(), reelgate.newViewer()]) await viewer.redeem(otp)
}

/** What a translation does to each text as soon as it appears: it is put into `<font>` elements, or replaced by them. */
const translation = (isReplaced: boolean) => `{
  const translate = () => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const texts = []
    while (walker.nextNode()) texts.push(walker.currentNode)
    for (const text of texts) {
      if (text.data.trim() === '' || text.parentElement.closest('font, script, style, textarea')) continue
      const [outer, inner] = [document.createElement('font'), document.createElement('font')]
      outer.append(inner)
      text.replaceWith(outer)
      inner.append(${isReplaced} ? text.data : text)
    }
  }
  addEventListener('DOMContentLoaded', () =>
    new MutationObserver(translate).observe(document.body, { childList: true, subtree: true, characterData: true }))
}`

const TRANSLATIONS = [
  ['put into other elements', false, ['ann', 'ben', 'cid']],
  ['replaced by translations', true, ['dora', 'emil', 'fay']],
] as const

test.each(sampleOf('translations of the console', TRANSLATIONS, 1))(
  'P-22: the console works while all its texts are %s, and shows what is now',
  async (_, isReplaced, viewers) => {
    const [first, second, third] = viewers
    for (const userId of [first, second]) await tryTwice(userId)
    const page = await openConsole(chromium, reelgate)
    await page.addInitScript(translation(isReplaced))
    const go = (path: string) => page.goto(`${consoleUrl(reelgate)}${path}`)
    const menu = (name: string) => page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click()
    const heading = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()

    await go('/videos')
    await page.getByRole('link', { name: 'Lesson 12 – Light' }).waitFor()
    expect(await page.locator('font').count()).toBeGreaterThan(10)
    const notice = page.getByRole('region', { name: 'New alerts' })
    await notice.getByText(`A second browser tried a link of ${second}. And 1 more.`).waitFor()
    const alerts = (await (await reelgate.owner.call('GET', '/api/alerts')).json()) as { rows: { id: number }[] }
    await reelgate.owner.call('PUT', '/api/alerts/seen', { body: { upTo: alerts.rows[0]?.id } })
    await tryTwice(third)
    await notice.getByText(`A second browser tried a link of ${third}.`).waitFor()
    expect(await notice.textContent()).not.toContain('more')

    const search = page.getByRole('searchbox').first()
    await search.fill('nothing')
    await page.getByText('No video matches “nothing”.').waitFor()
    await search.fill('neither')
    await page.getByText('No video matches “neither”.').waitFor()
    await page.getByRole('button', { name: 'Show all videos' }).click()
    await page.getByRole('link', { name: 'Lesson 12 – Light' }).click()
    for (const tab of ['Captions', 'Protection', 'Renditions', 'Statistics', 'History', 'Details']) {
      await page.getByRole('navigation', { name: 'About the video' }).getByRole('link', { name: tab }).click()
      await page.getByRole('heading', { level: 2 }).first().waitFor()
    }
    await menu('Viewers')
    await heading('Viewers')
    await page.getByRole('link', { name: 'Who watched' }).click()
    await page.getByRole('searchbox').fill('stranger')
    await page.getByText('No viewer of these days has “stranger”').waitFor()
    await page.getByRole('searchbox').fill('')
    await page.getByText('90 days', { exact: true }).click()
    await page.getByRole('link', { name: 'ann' }).click()
    await heading('ann')
    await menu('Viewers')
    await page.getByRole('link', { name: 'Refused' }).click()
    await page.getByText('The link was already used').first().waitFor()
    await page.getByRole('link', { name: 'Alerts' }).last().click()
    await heading('Alerts')
    await reelgate.owner.call('PUT', '/api/alerts/seen', { body: { upTo: 1_000_000 } })
    await menu('Activity')
    await page.getByText('7 days', { exact: true }).click()
    await page.getByRole('combobox', { name: 'Month' }).selectOption({ index: 1 })
    await page.getByText('Nothing was watched in this month.').waitFor()
    await menu('Develop')
    for (const part of ['Defaults', 'API keys', 'Webhooks', 'Limits'])
      await page.getByRole('navigation', { name: 'Develop' }).getByRole('link', { name: part }).click()
    await menu('System')
    for (const part of await page.getByRole('navigation', { name: 'System' }).getByRole('link').all()) await part.click()
    await menu('Videos')
    await page.getByRole('link', { name: 'Lesson 12 – Light' }).waitFor()
    expect(await page.getByText(/could not be shown|has an error/).count()).toBe(0)
    expect(complaintsOf(page)).toEqual([])
  },
)
