import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { changeRows, readRows } from '../../rows.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// The options that links have by default, whatever they contain, of the account, of a video and of many.

const LESSONS = 60

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate()
  for (let number = 1; number <= LESSONS; number++) await reelgate.owner.credentials(`Lesson ${String(number).padStart(3, '0')}`)
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const open = (path: string, options = {}) => openConsole(chromium, reelgate, { path, ...options })
const list = (page: Page) => page.getByRole('list', { name: 'Videos' })
const firstTitle = (page: Page) => list(page).getByRole('link').first().textContent()
const putDefaults = (body: unknown, path = 'otp-defaults') => reelgate.owner.call('PUT', `/api/${path}`, { body })

async function defaultsOf(path = 'otp-defaults'): Promise<unknown> {
  return (await reelgate.owner.call('GET', `/api/${path}`)).json()
}

async function look(page: Page, name: string): Promise<void> {
  for (const viewport of [DESKTOP, PHONE])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize(viewport)
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await keepPicture(page, `${name}-${viewport.width}-${colorScheme}`)
      expect(await findFaults(page)).toEqual([])
    }
  await page.setViewportSize(DESKTOP)
}

test('U33: defaults that were set over the API and no form knows are seen, edited and removed in the console', async () => {
  const text = { type: 'text', text: 'for training', x: '10%', y: '10%' }
  await putDefaults({ annotate: [text, { ...text, y: '80%' }], ttl: 600 })
  const page = await open('/develop/defaults')
  const json = page.getByRole('textbox', { name: 'Options as JSON' })
  expect(JSON.parse(await json.inputValue())).toEqual(await defaultsOf())
  await look(page, 'defaults-json')

  await json.fill('{"ttl": 60')
  await page.getByText('This is no JSON object').waitFor()
  expect(await page.getByRole('button', { name: 'Save the JSON' }).isDisabled()).toBe(true)
  await json.fill('{"watermark": "me"}')
  await page.getByRole('button', { name: 'Save the JSON' }).click()
  await page.getByText('There is no default "watermark" of an account.').waitFor()
  await json.fill(JSON.stringify({ annotate: [text, text], ttl: 700 }))
  await page.getByRole('button', { name: 'Save the JSON' }).click()
  await expect.poll(() => defaultsOf()).toEqual({ annotate: [text, text], ttl: 700 })
  await expect.poll(() => json.inputValue()).toContain('\n') // as it is stored
  await page.getByRole('button', { name: 'Remove all options' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove all' }).click()
  await expect.poll(() => defaultsOf()).toEqual({})

  await page.getByRole('textbox', { name: 'Site' }).fill('school.example') // the form is back
  await page.getByRole('button', { name: 'Save the defaults' }).click()
  await expect.poll(() => defaultsOf()).toEqual({ whitelisthref: 'school.example' })
  await putDefaults({ forcedBitrate: 800, ttl: 300 })
  await page.reload()
  await page.getByText('All options as JSON, also forcedBitrate, which the form does not have').click()
  expect(JSON.parse(await json.inputValue())).toEqual({ forcedBitrate: 800, ttl: 300 })
  await putDefaults({})
  expect(complaintsOf(page)).toEqual([])
})

test('U41: defaults saved by an older version that refuse every OTP are shown to do so until others are saved', async () => {
  const annotate = [{ type: 'rtext', text: 'x'.repeat(501) }]
  changeRows(reelgate, 'update account set otp_defaults = ?', JSON.stringify({ annotate }))
  const page = await open('/develop/defaults')
  const notice = page.getByRole('alert').getByText('These options refuse every OTP')
  expect(await notice.textContent()).toMatch(/longer than 500 characters.* Shorten it\.$/)
  await look(page, 'defaults-refused')
  const shorter = { annotate: [{ type: 'rtext', text: 'for training' }] }
  await page.getByRole('textbox', { name: 'Options as JSON' }).fill(JSON.stringify(shorter))
  await page.getByRole('button', { name: 'Save the JSON' }).click()
  await notice.waitFor({ state: 'detached' })
  expect(await defaultsOf()).toEqual(shorter)
  await putDefaults({})
  expect(complaintsOf(page)).toEqual([])
})

test('U25: the heads of the table order the library and turn it round; the address keeps it, and a phone has the same as a list', async () => {
  const page = await open('/videos?q=lesson')
  const head = (name: string) => page.getByRole('button', { name: new RegExp(`^${name}`) })
  await expect.poll(() => firstTitle(page)).toBe(`Lesson 0${LESSONS}`)
  await head('Title').click()
  await expect.poll(() => firstTitle(page)).toBe('Lesson 001')
  expect(page.url()).toContain('sort=title')
  expect(await head('Title').getAttribute('aria-pressed')).toBe('true')
  await head('Title').press('Enter')
  await expect.poll(() => firstTitle(page)).toBe(`Lesson 0${LESSONS}`)
  await head('Added').click()
  await head('Added').click()
  await expect.poll(() => firstTitle(page)).toBe('Lesson 001')
  await page.reload()
  await expect.poll(() => firstTitle(page)).toBe('Lesson 001')
  await page.setViewportSize(PHONE)
  await page.getByRole('combobox', { name: 'Order' }).selectOption('Newest first')
  await expect.poll(() => firstTitle(page)).toBe(`Lesson 0${LESSONS}`)
  expect(page.url()).not.toContain('sort=')
  expect(complaintsOf(page)).toEqual([])
})

test('U33: all videos of a list are selected, also those that were not read yet, and get one protection together', async () => {
  const page = await open('/videos?q=lesson')
  await page.getByRole('checkbox', { name: 'Select all' }).click()
  await page.getByText(`${LESSONS} selected`).waitFor()
  await look(page, 'library-selected')
  await page.setViewportSize(PHONE)
  await page.getByRole('toolbar').getByRole('button', { name: 'Protect' }).click({ trial: true }) // nothing covers it
  await page.setViewportSize(DESKTOP)
  await page.getByRole('checkbox', { name: 'Select all' }).click()
  await page.getByText(`${LESSONS} selected`).waitFor({ state: 'detached' })
  await list(page).getByRole('link').first().focus()
  await page.keyboard.press('Control+a')
  await page.getByRole('toolbar').getByRole('button', { name: 'Protect' }).click()
  const dialog = page.getByRole('dialog', { name: `Protect ${LESSONS} videos` })
  await dialog.getByRole('textbox', { name: 'Site' }).fill('school.example')
  await dialog.getByRole('textbox', { name: 'Screens of one viewer' }).fill('2')
  await look(page, 'library-protect')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText(`The protection of ${LESSONS} videos has been saved.`).waitFor()
  const set = readRows(reelgate, 'select otp_defaults as options, count(*) as n from video group by otp_defaults order by n')
  expect(set).toEqual([{ options: '{"whitelisthref":"school.example","streamLimit":2}', n: LESSONS }])
})

test('sentences of the player in the owner’s words: written, seen in their language, and removed', async () => {
  const sentences = async () =>
    ((await (await reelgate.owner.call('GET', '/api/account')).json()) as { playerSentences: unknown }).playerSentences
  const page = await open('/develop/defaults')
  const section = page.getByRole('region', { name: 'What the player says' })
  await section.getByLabel('Language', { exact: true }).click()
  await page.getByRole('option', { name: 'Arabic' }).click()
  await section.getByLabel('Sentence', { exact: true }).fill('watch again')
  await page.getByRole('option', { name: 'Watch again' }).click()
  await section.getByLabel('In your words').fill('مرة أخرى')
  await section.getByRole('button', { name: 'Save the sentence' }).click()
  await expect.poll(sentences).toEqual({ ar: { 'watch-again': 'مرة أخرى' } })
  await section.getByRole('list', { name: 'Sentences in your words' }).getByText('Arabic: Watch again').waitFor()
  await look(page, 'sentences')
  await section.getByRole('button', { name: 'Remove “مرة أخرى”' }).click()
  await expect.poll(sentences).toEqual({})
  expect(complaintsOf(page)).toEqual([])
})
