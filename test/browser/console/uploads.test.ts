import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { getStoredSource } from '../../data-folder.ts'
import { type Reelgate, startReelgate } from '../../in-process.ts'
import { startNginx } from '../../nginx.ts'
import { sampledTests } from '../../sample.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, consoleUrl, findFaults, keepPicture, openConsole, openTab, PHONE } from './console.ts'

// What an owner adds from their disk: which files go, in which order, what the tray says, and what happens when the way is cut.

let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
})
afterAll(async () => {
  await chromium?.close()
})

type VideoList = { rows: { id: string; title: string }[] }
type Given = { name: string; mimeType: string; buffer: Buffer }

/** What the console takes for a video; the server finds out later that it is none. */
const video = (name: string, sizeBytes = 2_000): Given => ({
  name,
  mimeType: 'video/mp4',
  buffer: Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1'), Buffer.alloc(sizeBytes, name)]),
})
const other = (name: string, text: string): Given => ({ name, mimeType: 'video/mp4', buffer: Buffer.from(text, 'latin1') })

const tray = (page: Page) => page.getByRole('region', { name: 'Uploads' })
const choose = (page: Page, files: Given[] | string) => page.locator('input[type=file]').first().setInputFiles(files)
/** Of an upload that was begun: what asks for its offset, and what sends its parts. */
const isUpload = (url: URL) => /\/console\/api\/uploads\/[0-9a-f]{32}$/.test(url.pathname)

async function open(options: { path?: string } = {}, reelgate?: Reelgate) {
  const server = reelgate ?? (await startReelgate())
  const { videoId } = await server.owner.credentials('There already')
  const page = await openConsole(chromium, server, { path: '/videos', ...options })
  await page.getByRole('button', { name: 'Add videos' }).waitFor()
  return { reelgate: server, page, videoId }
}

/** The newest first. */
async function titlesIn({ owner }: Reelgate): Promise<string[]> {
  return (await videosIn(owner)).map(({ title }) => title)
}

async function videosIn(owner: Reelgate['owner']): Promise<readonly { id: string; title: string }[]> {
  const { rows } = (await (await owner.call('GET', '/api/videos?limit=40')).json()) as VideoList
  return rows
}

test('U24: files of 0 bytes and of another kind are refused by their first bytes before anything is sent, each with its reason', async () => {
  const { reelgate, page } = await open()
  await choose(page, [
    other('Empty.mp4', ''),
    other('Download.mp4', '\n<!DOCTYPE html><title>Sign in</title>'),
    other('Slides.mov', '%PDF-1.7 …'),
    other('Still.mkv', '\x89PNG\r\n\x1a\n'),
    other('Cut.mp4', '\0'.repeat(9_000)),
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('a') },
    video('Lesson.mp4'),
  ])
  await tray(page).getByText('1 video uploaded').waitFor()
  const said = await tray(page).getByRole('alert').textContent()
  for (const sentence of [
    'Empty.mp4 is empty (0 bytes).',
    'Download.mp4 is a web page.',
    'Slides.mov is a PDF file.',
    'Still.mkv is an image.',
    'Cut.mp4 is empty space, as if its download had not been finished.',
    'And 1 more.',
  ])
    expect(said).toContain(sentence)
  expect(await titlesIn(reelgate)).toEqual(['Lesson', 'There already'])
  for (const [viewport, colorScheme] of [
    [undefined, 'light'],
    [PHONE, 'dark'],
  ] as const) {
    if (viewport) await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await keepPicture(page, `uploads-left-out-${viewport?.width ?? 1440}-${colorScheme}`)
    expect(await findFaults(page)).toEqual([])
  }
  expect(complaintsOf(page)).toEqual([])
})

test('U25: files that are added together are in the library in their order, those of a folder by their names', async () => {
  const { reelgate, page } = await open()
  let asking = 0
  let most = 0
  await page.route('**/console/api/uploads', async (route) => {
    asking += 1
    most = Math.max(most, asking)
    await route.fulfill({ response: await route.fetch() })
    asking -= 1
  })
  await choose(
    page,
    ['C', 'A', 'E', 'B', 'D'].map((name) => video(`${name}.mp4`)),
  )
  await tray(page).getByText('5 videos uploaded').waitFor()
  expect((await titlesIn(reelgate)).toReversed()).toEqual(['There already', 'C', 'A', 'E', 'B', 'D'])
  expect(most).toBe(1)

  const folder = await mkdtemp(join(tmpdir(), 'reelgate-course-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'Course'))
  for (const name of ['10', '2', '1']) await writeFile(join(folder, 'Course', `${name}.mp4`), video(name).buffer)
  await page.locator('input[webkitdirectory]').first().setInputFiles(join(folder, 'Course'))
  await tray(page).getByText('3 videos uploaded').waitFor()
  expect((await titlesIn(reelgate)).slice(0, 3).toReversed()).toEqual(['1', '2', '10'])
})

test('U26: a file that is here already is asked about, in the list and in the library; the others do not wait for the answer', async () => {
  const { reelgate, page } = await open()
  await choose(page, [video('Lesson 1.mp4')])
  await tray(page).getByText('1 video uploaded').waitFor()
  await choose(page, [video('Lesson 1.mp4'), video('Lesson 2.mp4')])
  await page.getByRole('dialog', { name: 'This file is here already' }).waitFor()
  await tray(page).getByText('1 video uploaded').waitFor()
  await keepPicture(page, 'uploads-asked')
  expect(await findFaults(page)).toEqual([])
  await page.keyboard.press('Escape')
  await tray(page).getByText('Lesson 1.mp4 is here already.').waitFor()
  expect(await titlesIn(reelgate)).toEqual(['Lesson 2', 'Lesson 1', 'There already'])

  await page.reload() // of which the list of uploads is gone
  await page.getByRole('button', { name: 'Add videos' }).waitFor()
  await choose(
    page,
    ['1', '2', '3'].map((number) => video(`Lesson ${number}.mp4`)),
  )
  await page.getByRole('dialog', { name: '2 files are here already' }).getByRole('button', { name: 'Upload again' }).click()
  await expect
    .poll(() => titlesIn(reelgate))
    .toEqual(['Lesson 2', 'Lesson 1', 'Lesson 3', 'Lesson 2', 'Lesson 1', 'There already'])
  await tray(page)
    .getByText(/ uploaded$/)
    .waitFor()
})

test('U27: the tray counts the files of this batch, and shows the one that runs', async () => {
  const { page } = await open()
  await choose(
    page,
    Array.from({ length: 3 }, (_, index) => video(`First ${index + 1}.mp4`)),
  )
  await tray(page).getByText('3 videos uploaded').waitFor()
  const held = Promise.withResolvers<void>()
  let forms = 0
  await page.route(isUpload, async (route) => {
    forms += 1
    if (forms > 15) await held.promise
    await route.continue()
  })
  await choose(
    page,
    Array.from({ length: 20 }, (_, index) => video(`Second ${index + 1}.mp4`)),
  )
  await tray(page).getByText('Uploading 16 of 20').waitFor()
  const running = tray(page).getByRole('listitem').filter({ hasText: 'Second 16' })
  await expect.poll(() => isWithin(running, tray(page).getByRole('list'))).toBe(true)
  await tray(page)
    .getByRole('button', { name: /^Uploading/ })
    .click()
  await tray(page)
    .getByRole('button', { name: /^Uploading/ })
    .click()
  await expect.poll(() => isWithin(running, tray(page).getByRole('list'))).toBe(true)
  held.resolve()
  await tray(page).getByText('20 videos uploaded').waitFor()
})

async function isWithin(item: ReturnType<Page['locator']>, list: ReturnType<Page['locator']>): Promise<boolean> {
  const [inner, outer] = [await item.boundingBox(), await list.boundingBox()]
  return inner !== null && outer !== null && inner.y >= outer.y - 1 && inner.y + inner.height <= outer.y + outer.height + 1
}

/** Ways in which an upload is interrupted. */
const { test: interrupted, draw } = sampledTests('interrupted uploads of the console', 2)

interrupted('U28: an upload that loses its connection, and one whose server is away, are sent again by themselves', async () => {
  const { reelgate, page } = await open()
  await page.route(isUpload, (route) => route.abort('connectionreset'), { times: 1 })
  await choose(page, [video('Cut.mp4')])
  await tray(page)
    .getByText(/^Next try in [12] s$/)
    .waitFor()
  await keepPicture(page, 'uploads-pausing')
  expect(await findFaults(page)).toEqual([])
  await tray(page).getByText('1 video uploaded').waitFor()

  await reelgate.stop()
  await choose(page, [video('Away.mp4')])
  await tray(page).getByText('Continues when the server answers').waitFor()
  await reelgate.restart()
  await tray(page).getByText('1 video uploaded').waitFor()
  expect(await titlesIn(reelgate)).toEqual(['Away', 'Cut', 'There already'])
})

interrupted(
  'U28: of an upload that ended with its page, the next visit says whether the tab was closed; of one that had failed it says neither',
  async () => {
    const { reelgate, page } = await open()
    const context = page.context()
    const next = async () => {
      const tab = await openTab(context)
      await tab.goto(`${consoleUrl(reelgate)}/videos`)
      await tab.getByRole('button', { name: 'Add videos' }).waitFor()
      return tab
    }
    async function startUpload(tab: Page, name: string) {
      await tab.route(isUpload, () => undefined) // no answer
      await choose(tab, [video(name)])
      tab.on('dialog', (dialog) => dialog.accept()) // of a page that is left while it uploads
      await tray(tab).getByText('0 % of 2 kB').waitFor()
    }
    async function close(tab: Page) {
      const closed = tab.waitForEvent('close')
      await tab.close({ runBeforeUnload: true })
      await closed
    }
    await startUpload(page, 'Closed.mp4')
    await close(page)
    const second = await next()
    await second.getByText('An upload ended when the tab was closed: Closed.').waitFor()

    await second.getByRole('button', { name: 'Close this notice' }).click()
    await startUpload(second, 'Reloaded.mp4')
    await second.reload()
    await second.getByText('An upload ended when the page was loaded again: Reloaded.').waitFor()

    await second.getByRole('button', { name: 'Close this notice' }).click()
    await second.unroute(isUpload)
    await second.route(isUpload, async (route) => {
      const [newest] = await videosIn(reelgate.owner)
      await reelgate.owner.call('DELETE', `/api/videos?videos=${newest?.id}`)
      await route.continue()
    })
    await choose(second, [video('Refused.mp4')])
    await tray(second).getByText('Nothing was uploaded').waitFor()
    await close(second)
    const third = await next()
    await third.getByRole('list', { name: 'Videos' }).getByText('There already').waitFor()
    expect(await third.getByText('ended when').count()).toBe(0)
  },
)

/** A file on the disk, which can be chosen again. */
async function fileOnDisk(name: string, sizeBytes: number): Promise<{ path: string; hash: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-upload-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { buffer } = video(name, sizeBytes)
  await writeFile(join(folder, name), buffer)
  return { path: join(folder, name), hash: sha256(buffer) }
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function storedHash(reelgate: Reelgate, title: string): Promise<string> {
  const { id = '' } = (await videosIn(reelgate.owner)).find((one) => one.title === title) ?? {}
  return sha256(await getStoredSource(reelgate, id).clear())
}

/** A proxy that takes bodies of 1 MB at most, as nginx does, and the offsets of the parts that have passed it. */
async function openBehindNginx() {
  const reelgate = await startReelgate()
  const nginx = await startNginx(() => ({ location: `proxy_pass ${reelgate.url}; proxy_set_header Host $http_host;` }))
  onTestFinished(() => nginx.remove())
  const { page } = await open({}, { ...reelgate, url: nginx.url })
  const offsets: number[] = []
  page.context().on('response', (response) => {
    if (response.status() === 204 && response.request().method() === 'PATCH')
      offsets.push(Number(response.request().headers()['upload-offset']))
  })
  return { reelgate, nginx, page, offsets }
}

interrupted(
  'U29, P-40: behind a proxy that refuses large bodies, files go in smaller parts; it is named once, with the size and the setting',
  async () => {
    const { reelgate, page } = await openBehindNginx()
    const { path, hash } = await fileOnDisk('Large.mp4', 3_000_000)
    await choose(page, path)
    await tray(page).getByText('1 video uploaded').waitFor()
    const said = tray(page).getByText('nginx in front of Reelgate refuses')
    expect(await said.allTextContents()).toEqual([
      'nginx in front of Reelgate refuses a part of 3 MB as too large (status 413). Its limit is 1 MB unless client_max_body_size says otherwise: set client_max_body_size 0; and reload it. Until then files are sent in smaller parts.',
    ])
    expect(await storedHash(reelgate, 'Large')).toBe(hash)
    for (const [viewport, colorScheme] of [
      [undefined, 'light'],
      [PHONE, 'dark'],
    ] as const) {
      if (viewport) await page.setViewportSize(viewport)
      // On a phone a finished list covers what the person goes on with.
      await tray(page)
        .locator(`[aria-expanded=${viewport ? 'false' : 'true'}]`)
        .waitFor()
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await keepPicture(page, `uploads-in-smaller-parts-${viewport?.width ?? 1440}-${colorScheme}`)
      expect(await findFaults(page)).toEqual([])
    }

    await page.route(isUpload, (route) =>
      route.request().method() === 'PATCH'
        ? route.fulfill({ status: 413, headers: { Server: 'cloudflare' }, body: '<html>' })
        : route.continue(),
    )
    await choose(page, [video('Refused.mp4', 50_000)])
    await tray(page).getByText('Cloudflare in front of Reelgate refuses a part of 50 kB').waitFor()
  },
)

interrupted('P-41: when the same file is chosen after the tab was closed, its upload continues where it stopped', async () => {
  const { reelgate, nginx, page, offsets } = await openBehindNginx()
  const { path, hash } = await fileOnDisk('Closed.mp4', 3_000_000)
  await page.route(isUpload, async (route) => {
    if (route.request().method() === 'PATCH' && offsets.length === 2) return // the third has no answer
    await route.continue()
  })
  await choose(page, path)
  await expect.poll(() => offsets.length).toBe(2)
  const before = [...offsets]
  page.on('dialog', (dialog) => dialog.accept())
  const closed = page.waitForEvent('close')
  await page.close({ runBeforeUnload: true })
  await closed

  const tab = await openTab(page.context())
  await tab.goto(`${consoleUrl(nginx)}/videos`)
  await tab.getByText('Choose this file again in the same place: uploads continue where they stopped').waitFor()
  await choose(tab, path)
  await tray(tab).getByText('1 video uploaded').waitFor()
  expect(offsets.slice(2)[0]).toBeGreaterThan(before.at(-1) ?? 0)
  expect(await titlesIn(reelgate)).toEqual(['Closed', 'There already'])
  expect(await storedHash(reelgate, 'Closed')).toBe(hash)
})

interrupted('P-47: a part whose connection dies in silence is sent over another one after 20 seconds', async () => {
  const { reelgate, page } = await open()
  await page.clock.install()
  const died = Promise.withResolvers<void>()
  let parts = 0
  await page.route(isUpload, async (route) => {
    if (route.request().method() !== 'PATCH' || parts > 0) return route.continue()
    parts += 1
    died.resolve() // without an answer
  })
  const { path, hash } = await fileOnDisk('Silent.mp4', 20_000)
  await choose(page, path)
  await died.promise
  await page.clock.fastForward(20_000)
  await tray(page).getByText('1 video uploaded').waitFor()
  expect(await storedHash(reelgate, 'Silent')).toBe(hash)
})

interrupted(
  'P-42: an upload whose network is lost continues where it stopped: no part that has arrived is sent again',
  async () => {
    const { reelgate, page, offsets } = await openBehindNginx()
    const { path, hash } = await fileOnDisk('Train.mp4', 3_000_000)
    await page.route(isUpload, async (route) => {
      if (route.request().method() !== 'PATCH' || offsets.length !== 2) return route.continue()
      await page.context().setOffline(true)
      await route.abort('internetdisconnected')
    })
    await choose(page, path)
    await tray(page).getByText('Continues when the server answers').waitFor()
    expect(offsets).toHaveLength(2)
    expect(await tray(page).textContent()).not.toMatch(/\/s|left/)
    await keepPicture(page, 'uploads-offline')
    expect(await findFaults(page)).toEqual([])
    await page.unroute(isUpload)
    await page.context().setOffline(false)
    await tray(page).getByText('1 video uploaded').waitFor()
    expect(offsets).toEqual([...new Set(offsets)].toSorted((a, b) => a - b))
    expect(await storedHash(reelgate, 'Train')).toBe(hash)
  },
)

draw()
