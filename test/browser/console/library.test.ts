import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test as inEveryRun, onTestFinished } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { changeRows } from '../../rows.ts'
import { sampledTests } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, keepPicture, openConsole, PHONE, tabTo } from './console.ts'

const { test, draw } = sampledTests('the library', 6)

// The library of an owner with some hundred videos.

const FILLERS = 250

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: 'The ready one' })
  await Promise.all(Array.from({ length: FILLERS }, (_, index) => addVideo(`Lesson ${String(index + 1).padStart(3, '0')}`)))
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

/** A video that waits for its file: enough for a list. @returns its id */
async function addVideo(title: string): Promise<string> {
  return (await reelgate.owner.credentials(title)).videoId
}

/** A video that has failed: only one with a file goes to the trash. */
async function addWithFile(title: string): Promise<string> {
  const credentials = await reelgate.owner.credentials(title)
  await reelgate.owner.send(credentials, new Blob(['no video']))
  return credentials.videoId
}

async function titlesOf(ids: readonly string[]): Promise<string[]> {
  return Promise.all(ids.map(async (id) => (await reelgate.owner.video(id)).title))
}

const list = (page: Page) => page.getByRole('list', { name: 'Videos' })
const titles = (page: Page) => list(page).getByRole('link').allTextContents()
const open = (path: string, options = {}) => openConsole(chromium, reelgate, { path, ...options })

test('what is typed into the search narrows the list letter by letter, and the address says it', async () => {
  const page = await open('/videos')
  await page.getByRole('searchbox').pressSequentially('lesson 01')
  await expect.poll(() => titles(page)).toHaveLength(10)
  expect(page.url()).toMatch(/\?q=lesson\+01$/)
  await page.getByRole('searchbox').pressSequentially('7')
  await expect.poll(() => titles(page)).toEqual(['Lesson 017'])
  await page.getByRole('searchbox').fill('nothing is called so')
  await page.getByText('No video matches “nothing is called so”.').waitFor()
  await page.getByRole('button', { name: 'Show all videos' }).click()
  await list(page).getByRole('link').first().waitFor()
  expect(page.url()).not.toContain('?')
  expect(complaintsOf(page)).toEqual([])
})

test('a list of hundreds is read as it is looked at: End shows its oldest video, and few pages were asked for', async () => {
  const page = await open('/videos?q=lesson')
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  await list(page).getByRole('link').first().focus()
  await page.keyboard.press('End')
  const last = list(page)
    .locator(`[aria-posinset="${FILLERS}"]`)
    .filter({ has: page.locator('[data-video]:focus') })
  await last.waitFor()
  expect(await last.getAttribute('aria-setsize')).toBe(String(FILLERS))
  expect(asked.filter((url) => /\bpage=[23]\b/.test(url))).toEqual([])
})

test('what a search finds beyond a thousand is counted after the rows are there, and End then shows its oldest video', async () => {
  const large = await startSharedReelgate()
  onTestFinished(() => large.remove())
  changeRows(
    large,
    `insert into video (id, account_id, title, description, file_name, upload_time_s, status)
      with recursive number (n) as (select 1 union all select n + 1 from number where n < 1234)
      select 'abcdefabcdefabcdefabcdefab' || (100000 + n), account.id, 'Take ' || n, '', '', n, 'Queued' from number, account;
    update account set video_count = 1234`,
  )
  const page = await openConsole(chromium, large, { path: '/videos' })
  await page.getByRole('link', { name: 'All 1,234' }).waitFor()
  const counting = Promise.withResolvers<void>()
  const isCount = (url: URL) => url.searchParams.get('limit') === '1' && url.searchParams.has('q')
  await page.route(isCount, async (route) => {
    await counting.promise
    await route.continue()
  })
  await page.getByRole('searchbox').fill('ke')
  const itemAt = (location: number, size: number) => list(page).locator(`[aria-posinset="${location}"][aria-setsize="${size}"]`)
  await itemAt(1, -1).waitFor()
  await itemAt(1, -1).getByRole('link').focus()
  await page.keyboard.press('End')
  await itemAt(1000, -1).getByRole('link', { name: 'Take 235' }).waitFor()
  counting.resolve()
  await itemAt(1000, 1234).waitFor()
  await page.keyboard.press('End')
  await itemAt(1234, 1234).getByRole('link', { name: 'Take 1', exact: true }).waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('a link to a folder, tags and a state shows a colleague the same videos', async () => {
  const folder = await createFolder('Courses')
  const ids = await Promise.all(['Deep A', 'Deep B', 'Deep C'].map(addVideo))
  const [a, b] = ids
  await reelgate.owner.call('POST', '/api/videos/move', { body: { videos: ids, folderId: folder } })
  await reelgate.owner.call('POST', '/api/videos/tags', { body: { videos: [a, b], tags: ['light', 'course'] } })
  const page = await open(`/videos?folder=${folder}&tags=light,course&state=waiting&view=cards`)
  await expect.poll(() => titles(page)).toEqual(['Deep B', 'Deep A'])
  expect(await page.getByRole('navigation', { name: 'Folders around this one' }).textContent()).toContain('Courses')
  expect(await page.getByRole('radio', { name: 'Cards' }).isChecked()).toBe(true)
  expect(await page.getByRole('navigation', { name: 'States' }).locator('[aria-current]').textContent()).toMatch(
    /^Waiting for a file/,
  )
})

inEveryRun('by keyboard alone: search, move, select with Shift, delete, and restore from the trash', async () => {
  const ids = await Promise.all(['Keys one', 'Keys two', 'Keys three'].map(addWithFile))
  const page = await open('/videos')
  await list(page).getByRole('link').first().waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('keys')
  await expect.poll(() => titles(page)).toHaveLength(3)
  await tabTo(page, '[data-video]')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Space')
  await page.keyboard.press('Shift+ArrowDown')
  await page.getByText('2 selected').waitFor()
  await page.keyboard.press('Delete')
  await page.getByRole('dialog', { name: 'Delete 2 videos?' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.keyboard.press('Delete') // the focus is back in the list
  await page.getByRole('dialog', { name: 'Delete 2 videos?' }).waitFor()
  await page.keyboard.press('Tab') // from Cancel, where it begins
  await page.keyboard.press('Enter')
  await page.getByText('2 videos moved to the trash.').waitFor()
  await expect.poll(() => titles(page)).toHaveLength(1)
  const remaining = await titles(page)

  await tabTo(page, 'a[href$="/trash"]')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Trash' }).waitFor()
  await tabTo(page, 'input[type=checkbox]') // all
  await page.keyboard.press('Space')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('The trash is empty.').waitFor()
  expect((await titlesOf(ids)).filter((title) => !remaining.includes(title))).toHaveLength(2)
  expect(complaintsOf(page)).toEqual([])
})

test('selected videos get tags and move to a new folder together', async () => {
  const ids = await Promise.all(['Bulk one', 'Bulk two'].map(addVideo))
  const page = await open('/videos')
  await page.getByRole('button', { name: 'New folder' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Bulk folder')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('navigation', { name: 'Folders', exact: true }).getByText('Bulk folder').waitFor()

  await page.getByRole('searchbox').fill('bulk')
  await expect.poll(() => titles(page)).toHaveLength(2)
  await page.getByRole('checkbox', { name: 'Select Bulk one' }).click()
  await page.getByRole('checkbox', { name: 'Select Bulk two' }).click()
  await page.getByRole('toolbar').getByRole('button', { name: 'Tag' }).click()
  await page.getByRole('combobox', { name: 'Add tags' }).fill('together')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByText('The tags of 2 videos have been changed.').waitFor()

  await page.getByRole('checkbox', { name: 'Select Bulk one' }).click()
  await page.getByRole('checkbox', { name: 'Select Bulk two' }).click()
  await page.getByRole('toolbar').getByRole('button', { name: 'Move' }).click()
  await page.getByRole('combobox', { name: 'To' }).click()
  await page.getByRole('option', { name: 'Bulk folder' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click()
  await page.getByText('2 videos moved.').waitFor()
  const [first, second] = await Promise.all(ids.map((id) => reelgate.owner.video(id)))
  expect(first?.tags).toEqual(['together'])
  expect(second).toMatchObject({ tags: ['together'], folderId: first?.folderId })
  expect(first?.folderId).not.toBe('root')
})

test('a folder is renamed and deleted; its videos stay, one folder up', async () => {
  const folder = await createFolder('To be renamed')
  const id = await addVideo('In a folder')
  await reelgate.owner.call('POST', '/api/videos/move', { body: { videos: [id], folderId: folder } })
  const page = await open('/videos')
  await page.getByRole('link', { name: /^To be renamed/ }).click()
  await expect.poll(() => titles(page)).toEqual(['In a folder'])
  await page.getByRole('button', { name: 'Change the folder To be renamed' }).click()
  await page.getByRole('menuitem', { name: 'Rename or move' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Renamed')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'Change the folder Renamed' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('button', { name: 'Delete the folder' }).click()
  await page.waitForURL(/\/videos$/)
  expect((await reelgate.owner.video(id)).folderId).toBe('root')
})

test('the view of cards is kept for the next visit, and its arrows move in both directions', async () => {
  const page = await open('/videos?q=lesson+00')
  await page.getByTitle('Cards').click()
  await page.waitForURL(/view=cards/)
  await page.goto(page.url().replace('&view=cards', ''))
  const first = list(page).getByRole('link').first()
  await first.focus()
  const before = await first.boundingBox()
  for (const key of ['ArrowRight', 'ArrowDown']) await page.keyboard.press(key)
  const focused = page.locator('[data-video]:focus')
  const after = await focused.boundingBox()
  if (!before || !after) throw new Error('A card is not on the screen')
  expect(after.x).toBeGreaterThan(before.x)
  expect(after.y).toBeGreaterThan(before.y)
})

test('on a phone a video is found, opened and plays', async () => {
  const page = await open('/videos', { viewport: PHONE, hasTouch: true })
  await page.getByRole('searchbox').fill('the ready one')
  await list(page).getByRole('link', { name: 'The ready one' }).tap()
  await page.getByRole('heading', { name: 'The ready one' }).waitFor()
  const frame = page.frameLocator('iframe[title="Player: The ready one"]')
  await frame.locator('.big-play').tap()
  await frame.locator('video').evaluate((video: { readonly paused: boolean }) => !video.paused)
})

test('on a phone the states of videos have a line of their own, and their tags, the CSV file and the view the next one', async () => {
  await addWithFile('A failed one')
  await reelgate.owner.call('POST', '/api/videos/tags', { body: { videos: [await addVideo('A tagged one')], tags: ['course'] } })
  const page = await open('/videos', { viewport: PHONE, hasTouch: true })
  const states = page.getByRole('navigation', { name: 'States' })
  await states.getByText('Failed').waitFor()
  const next = [
    page.getByPlaceholder('Tags'),
    page.getByRole('link', { name: 'CSV' }),
    page.getByRole('radiogroup', { name: 'View' }),
  ]
  for (const one of next) await one.waitFor()
  const [first, ...others] = await Promise.all([states, ...next].map((one) => one.boundingBox()))
  if (!first) throw new Error('The states are not on the screen')
  for (const box of others) expect(box?.y).toBeGreaterThanOrEqual(first.y + first.height - 8) // padding for their outlines
  await keepPicture(page, 'library-phone')
})

test('a row says how often its video was viewed, on a phone too, and the head of the column orders by it', async () => {
  const often = await addVideo('Viewed often')
  const once = await addVideo('Viewed once')
  await addVideo('Viewed never')
  changeRows(reelgate, `insert into view_total (video_id, view_count) values ('${often}', 1203), ('${once}', 1)`)
  const page = await open('/videos?q=viewed')
  await page.getByRole('button', { name: 'Views', exact: true }).click()
  const rows = list(page).getByRole('listitem')
  await rows.first().getByText('Views 1,203', { exact: true }).waitFor()
  await rows.nth(1).getByText('Views 1', { exact: true }).waitFor()
  await rows.nth(2).getByText('Views 0', { exact: true }).waitFor()
  await keepPicture(page, 'library-views')
  await page.setViewportSize(PHONE)
  await rows.first().getByText('1,203 views', { exact: true }).waitFor()
  await rows.nth(1).getByText('1 view', { exact: true }).waitFor()
  await keepPicture(page, 'library-views-phone')
  expect(complaintsOf(page)).toEqual([])
})

test('how long ago a video was added stays true while nothing else changes on the page', async () => {
  const page = await open('/videos?q=nothing')
  await page.getByText('No video matches').waitFor()
  await page.clock.install()
  await page.getByRole('searchbox').fill('ready')
  const row = list(page).getByRole('listitem')
  await row.getByText(/Added .+(second|minute)s? ago/).waitFor()
  await page.clock.fastForward('02:00:00')
  await row.getByText('Added 2 hours ago').waitFor()
})

test('while the server is away the list says so and keeps what it has; trying again brings it back', async () => {
  const page = await open('/videos?q=lesson+00')
  await expect.poll(() => titles(page)).toHaveLength(9)
  await page.route('**/api/videos?*', (route) => route.abort())
  await page.getByRole('searchbox').fill('lesson 01')
  await page.getByRole('alert').getByText('The server cannot be reached.').waitFor()
  await page.unroute('**/api/videos?*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await expect.poll(() => titles(page)).toHaveLength(10)
  expect(await page.getByRole('alert').count()).toBe(0)
})

async function createFolder(name: string): Promise<string> {
  const created = await reelgate.owner.call('POST', '/api/videos/folders', { body: { name } })
  return ((await created.json()) as { id: string }).id
}

draw()
