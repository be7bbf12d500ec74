import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { complaintsOf, findFaults, keepPicture, newContext, openTab } from './console/console.ts'
import { startSite } from './site.ts'

// <reelgate-uploader> as visitors of an owner's page see it; `engines` has it in every engine.

let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
})
afterAll(() => chromium?.close())

const HEAD = '\0\0\0\x18ftypmp42'
const isUpload = (url: URL) => /\/api\/uploads\/[0-9a-f]{32}$/.test(url.pathname)

async function openPage(tokens: Record<string, unknown> = { maxFiles: 10 }, attributes = 'multiple') {
  const school = startSite()
  onTestFinished(() => void school.close())
  const reelgate = await startReelgate()
  const { origin } = new URL(school.put(''))
  const newToken = async () =>
    (await reelgate.owner.call('POST', '/api/upload-tokens', { body: { origin, ...tokens } })).json() as Promise<{
      id: string
      token: string
    }>
  const { token, id } = await newToken()
  const page = await openTab(await newContext(chromium))
  const policy = `default-src 'none'; img-src data:; style-src 'nonce-page'; script-src ${reelgate.url}; connect-src ${reelgate.url}; require-trusted-types-for 'script'`
  await page.goto(
    school.put(
      `<html lang="en"><meta name="viewport" content="width=device-width"><style nonce="page">:root { color-scheme: light dark; font: 16px sans-serif }</style>
      <main><h1>Homework</h1><reelgate-uploader ${attributes} token="${token}"></reelgate-uploader></main>
      <script src="${reelgate.url}/v2/uploader.js"></script>`,
      'localhost',
      { 'Content-Security-Policy': policy },
    ),
  )
  return { reelgate, page, newToken, tokenId: id }
}

const choose = (page: Page, names: readonly string[], text = HEAD) =>
  page
    .locator('reelgate-uploader input[type=file]')
    .setInputFiles(names.map((name) => ({ name, mimeType: 'video/mp4', buffer: Buffer.from(text + name.repeat(500), 'latin1') })))
const item = (page: Page, name: string) => page.getByRole('listitem').filter({ hasText: name })

test('P-43: in each state of its files the uploader is legible and named, on small and large screens, in the light and the dark', async () => {
  const { page } = await openPage()
  await keepPicture(page, 'uploader-empty')
  await choose(page, ['Sent.mp4'])
  await item(page, 'Sent.mp4').getByText('Uploaded · 4 kB').waitFor()
  await choose(page, ['Slides.mp4'], '%PDF-1.7')
  await item(page, 'Slides.mp4').getByText('Not uploaded. This file is a PDF file.').waitFor()
  let parts = 0
  await page.route(isUpload, async (route) => {
    if (route.request().method() !== 'PATCH') return route.continue()
    parts += 1
    const headers = { 'Upload-Offset': '16000', 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': '*' }
    if (parts === 1) return route.fulfill({ status: 204, headers })
    if (parts > 3) await route.abort('connectionreset') // the two before have no answer
  })
  await choose(page, ['Paused, with a name that is longer than a small screen is wide.mp4'])
  await item(page, 'Paused').getByText('48 % of 33 kB').waitFor()
  await page.getByRole('button', { name: 'Pause Paused' }).click()
  await item(page, 'Paused').getByText('Paused at 48 % of 33 kB').waitFor()
  await choose(page, ['Sending.mp4'])
  await expect.poll(() => parts).toBe(3)
  await choose(page, ['Lost.mp4', 'Next.mp4'])
  await item(page, 'Lost.mp4').getByText('the connection was lost, and the upload continues by itself').waitFor()
  await item(page, 'Next.mp4').getByText('Waiting').waitFor()
  for (const [width, colorScheme] of [
    [320, 'light'],
    [320, 'dark'],
    [1440, 'light'],
    [1440, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await keepPicture(page, `uploader-${width}-${colorScheme}`)
    expect(await findFaults(page)).toEqual([])
  }
})

test('P-45: where a token has ended, files wait for the next one, which the page is asked for', async () => {
  const { reelgate, page, newToken, tokenId } = await openPage()
  await reelgate.owner.call('DELETE', `/api/upload-tokens/${tokenId}`)
  const { token } = await newToken()
  await page.locator('reelgate-uploader').evaluate((uploader, next) => {
    uploader.addEventListener('tokenneeded', () => uploader.setAttribute('token', next))
  }, token)
  await choose(page, ['Lesson.mp4'])
  await item(page, 'Lesson.mp4').getByText('Uploaded').waitFor()
})

test('P-46: under a strict content policy, a file that is removed from the list while it is sent is deleted on the server', async () => {
  const { reelgate, page } = await openPage()
  await page.route(isUpload, (route) => (route.request().method() === 'PATCH' ? undefined : route.continue()))
  await choose(page, ['Lesson.mp4'])
  const titles = async () => {
    const { rows } = (await (await reelgate.owner.call('GET', '/api/videos')).json()) as { rows: { title: string }[] }
    return rows.map(({ title }) => title)
  }
  await expect.poll(titles).toEqual(['Lesson.mp4'])
  await page.getByRole('button', { name: 'Cancel Lesson.mp4' }).click()
  await expect.poll(titles).toEqual([])
  expect(await page.getByRole('listitem').count()).toBe(0)
  expect(complaintsOf(page)).toEqual([])
})
