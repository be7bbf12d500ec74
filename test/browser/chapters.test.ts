import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { lookAtPlayer, openPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'

const { test, draw } = sampledTests('chapters in the player', 3)

// Chapters as a viewer sees and uses them, and as a script of the page around reads them. The video has 8.3 seconds.

const LONG = `The second part, whose title ${'is longer than most '.repeat(8)}to its end`
const CHAPTERS = [
  { startS: 1, title: 'Before <b>&' },
  { startS: 3, title: LONG },
  { startS: 6.5, title: 'End' },
]

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
const site = startSite()

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  const body = { language: 'en', chapters: CHAPTERS }
  await reelgate.owner.call('PUT', `/api/videos/${reelgate.videoId}/chapters`, { body })
  chromium = await startChromiumWithFrameStorage()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  site.close()
})

async function watch(viewport = { width: 854, height: 480 }): Promise<Player> {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  const player = await openPlayer(await chromium.newContext({ viewport }), playerAddress(reelgate.url, otp))
  await player.shows('ready')
  return player
}

const isAt = (timeS: number) => (video: { timeS: number; seeking: boolean }) =>
  !video.seeking && Math.abs(video.timeS - timeS) < 0.05
const titleOf = ({ frame }: Player) => frame.locator('.chapter')
const signOf = ({ frame }: Player) => frame.locator('.sign').textContent()

test('C-05: the seek bar has a part for each chapter, with its title where the pointer is, and the current title next to the time', async () => {
  const player = await watch()
  const { page, frame } = player
  await player.play()
  await player.playsPast(0.2)
  await page.keyboard.press('k')
  await expect.poll(() => frame.locator('media-time-range #segments-clipping rect').count()).toBe(4) // one before the first
  const bar = await frame.locator('media-time-range').boundingBox()
  if (!bar) throw new Error('The player has no seek bar')
  await page.mouse.move(bar.x + (bar.width * 2) / 8.3, bar.y + bar.height / 2)
  await expect
    .poll(() => frame.locator('media-preview-chapter-display').getAttribute('aria-valuetext'))
    .toBe('chapter: Before <b>&')
  await player.keepPicture('chapters-bar')
  await player.seekNear(4.5)
  await expect.poll(() => titleOf(player).textContent()).toBe(LONG)
  await player.keepPicture('chapters-title')
  expect(player.complaints).toEqual([])
})

test('C-05: N and P go to the next and the previous chapter, and say its title', async () => {
  const player = await watch()
  const { page } = player
  await player.play()
  await player.playsPast(0.2)
  await page.keyboard.press('k')
  await player.until(({ paused }) => paused)
  await page.keyboard.press('Home') // a busy machine may have played past the first chapter
  await player.until(isAt(0))
  for (const { startS, title } of CHAPTERS) {
    await page.keyboard.press('n')
    await player.until(isAt(startS))
    expect(await signOf(player)).toBe(title)
  }
  await page.keyboard.press('n')
  expect(await signOf(player)).toBe('This is the last chapter')
  await page.keyboard.press('p') // from its beginning to the one before
  await player.until(isAt(3))
  await page.keyboard.press('p')
  await player.until(isAt(1))
  await page.keyboard.press('p')
  await player.until(isAt(0))
  expect(await signOf(player)).toBe('0:00')
  await expect.poll(() => titleOf(player).isVisible()).toBe(false)
})

test('C-05: the menu lists the chapters with their times, marks the current one, and goes to the chosen one, before play, too', async () => {
  const player = await watch()
  const { page } = player
  const chapters = page.getByRole('menu', { name: 'Chapters', exact: true })
  await player.openSettings()
  await page.getByRole('menuitem', { name: 'Chapters' }).click()
  await chapters.waitFor()
  await player.keepPicture('chapters-menu')
  await page.getByRole('menuitemradio', { name: '0:06 End' }).click()
  await chapters.waitFor({ state: 'hidden' })
  await expect.poll(() => titleOf(player).textContent()).toBe('End')
  await player.play()
  await player.playsPast(6.6)
  await page.keyboard.press('k')
  await titleOf(player).click()
  await chapters.waitFor()
  await page.getByRole('menuitemradio', { name: '0:06 End', checked: true }).waitFor()
  await page.keyboard.press('Home')
  await page.keyboard.press('Enter')
  await player.until(isAt(1))
})

test('C-05: in a frame of 320 pixels the menu has every chapter in full, and nothing is wider than the frame', async () => {
  const player = await watch({ width: 320, height: 180 })
  const { page } = player
  await player.play()
  await player.playsPast(0.2)
  await page.keyboard.press('k')
  await player.openSettings()
  await page.getByRole('menuitem', { name: 'Chapters' }).click()
  const item = page.getByRole('menuitemradio', { name: LONG })
  await item.waitFor()
  await player.keepPicture('chapters-phone')
  const { x, width } = (await item.boundingBox()) ?? { x: -1, width: 999 }
  expect([x >= 0, x + width <= 320]).toEqual([true, true])
  expect(await item.evaluate((button) => button.scrollWidth > button.clientWidth)).toBe(false)
  await item.click()
  await player.until(isAt(3))
  await player.keepPicture('chapters-phone-bar')
})

test('C-06: a script of the page around lists the chapters, and is called when another one plays', async () => {
  const { owner, videoId, url } = reelgate
  const page = await openTab(await chromium.newContext())
  await page.goto(
    site.put(`<script src="${url}/v2/api.js"></script>
      <iframe src="${url}/v2/?otp=${await owner.issueOtp(videoId)}" width="640" height="360" allow="autoplay"></iframe>
      <script>
      const { api, video } = VdoPlayer.getInstance(document.querySelector('iframe'))
      window.received = []
      api.addEventListener('chapterchange', (chapter) => received.push(chapter))
      </script>`),
  )
  await expect.poll(() => page.frames().length).toBe(2)
  const player = lookAtPlayer(page, page.frames().at(1))
  const listed = CHAPTERS.map(({ startS, title }) => ({ startTime: startS, title, active: false }))
  expect(await page.evaluate('api.getChapters()')).toEqual(listed)
  await expect.poll(() => page.evaluate('received')).toEqual([null])
  await page.evaluate('video.play()')
  await player.playsPast(0.1)
  await page.evaluate('video.currentTime = 6.6')
  await expect.poll(() => page.evaluate('received.at(-1)')).toEqual({ startTime: 6.5, title: 'End' })
  expect(await page.evaluate('api.getChapters()')).toEqual(listed.map((chapter, index) => ({ ...chapter, active: index === 2 })))
})

test('C-06: a video without chapters loads nothing for them, and says so', async () => {
  const { owner } = reelgate
  const { videoId } = reelgate
  await owner.call('PUT', `/api/videos/${videoId}/chapters`, { body: { chapters: [] } })
  const page = await openTab(await chromium.newContext())
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  await page.goto(playerAddress(reelgate.url, await owner.issueOtp(videoId)))
  const player = lookAtPlayer(page)
  await player.play()
  await player.playsPast(0.2)
  await page.keyboard.press('n')
  expect(await signOf(player)).toBe('This video has no chapters')
  expect(requests.filter((address) => /chapters/.test(address))).toEqual([])
  await owner.call('PUT', `/api/videos/${videoId}/chapters`, { body: { language: 'en', chapters: CHAPTERS } })
})

draw()
