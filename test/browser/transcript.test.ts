import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { addFile } from '../assets/sample-files.ts'
import { footage } from '../footage.ts'
import { startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { judgeByAxe } from './axe.ts'
import { startChromiumWithFrameStorage } from './chromium.ts'
import { openPlayer, openTab, type Player, playerAddress } from './player.ts'
import { startSite } from './site.ts'

const { test, draw } = sampledTests('the transcript', 5)

// The transcript as a viewer reads, searches and follows it, and as a page around opens it. The video has 8.3 seconds.

const at = (s: number) => new Date(s * 1000).toISOString().slice(11, 23)
const vtt = (lines: readonly string[], everyS = 1) =>
  ['WEBVTT', ...lines.map((text, n) => `${at(n * everyS)} --> ${at(n * everyS + everyS)}\n${text}`)].join('\n\n')
const ENGLISH = [
  'Hello, and welcome to the third lesson about <i>light</i>.',
  '<v Ann>What is a café doing in\nour text?',
  'It asks whether accents are found.',
  'A long line that does not fit: light leaves the lamp, meets the glass, bends, and leaves it on the other side as a colored band.',
  'Light again &amp; again.',
  'Sixth second.',
  'Seventh second.',
  'The end.',
]
const ARABIC = ['مرحبا بكم في الدرس الثالث', 'الضوء', 'النهاية']
/** As many as two hours of a talk have. */
const TWO_HOURS = Array.from({ length: 3600 }, (_, n) => `Zeile ${n + 1} eines langen Vortrags`)

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
const site = startSite()

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: footage.movieHello, title: 'Hello' })
  const { owner, videoId } = reelgate
  for (const [language, text] of [
    ['en', vtt(ENGLISH)],
    ['ar', vtt(ARABIC, 3)],
    ['de', vtt(TWO_HOURS, 2)],
  ] as const)
    expect((await addFile(owner, videoId, text, language)).status).toBe(200)
  chromium = await startChromiumWithFrameStorage()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  site.close()
})

const MARK = { type: 'text', text: 'ann@example.org', alpha: '1', color: '0xff00ff', size: '20', x: '92%', y: '20%' }

async function watch(options = '', { viewport = { width: 1000, height: 562 }, annotate = [] as object[], touch = false } = {}) {
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { annotate })
  const context = await chromium.newContext({ viewport, hasTouch: touch, isMobile: touch })
  const player = await openPlayer(context, playerAddress(reelgate.url, otp, `&loop=true${options}`))
  await player.shows('ready')
  return player
}

async function pauseAfterStart(player: Player) {
  await player.play()
  await player.playsPast(0.2)
  await player.page.keyboard.press('k')
}

const panelOf = ({ page }: Player) => page.getByRole('complementary', { name: 'Transcript' })
const linesOf = (player: Player) => panelOf(player).getByRole('listitem').getByRole('button')
const currentOf = (player: Player) => panelOf(player).locator('[aria-current="true"]')
const isAt = (timeS: number) => (video: { timeS: number; seeking: boolean }) =>
  !video.seeking && Math.abs(video.timeS - timeS) < 0.05

test('L-06: the transcript is opened in the settings: each line with its time and speaker, the spoken one marked; a click seeks', async () => {
  const player = await watch('&ccLanguage=en')
  await pauseAfterStart(player)
  await player.openSettings()
  await player.page.getByRole('menuitem', { name: 'Transcript' }).click()
  await expect.poll(() => linesOf(player).allTextContents()).toHaveLength(ENGLISH.length)
  const texts = (await linesOf(player).allTextContents()).map((text) => text.replace(/\s+/g, ' '))
  expect(texts.slice(0, 2)).toEqual([
    '0:00 Hello, and welcome to the third lesson about light.',
    '0:01 Ann: What is a café doing in our text?',
  ])
  await linesOf(player).filter({ hasText: 'Sixth second' }).click()
  await player.until(isAt(5))
  await expect.poll(() => currentOf(player).textContent()).toContain('Sixth second')
  await player.keepPicture('transcript-beside')
  expect(await judgeByAxe(player.page)).toEqual([])
  await player.page.keyboard.press('Escape')
  await panelOf(player).waitFor({ state: 'hidden' })
  expect(player.complaints).toEqual([])
})

test('L-07: by keyboard: t opens it, words are found without case and accents, arrows move along the lines, Enter seeks, Escape leaves', async () => {
  const player = await watch()
  const { keyboard } = player.page
  await pauseAfterStart(player)
  await keyboard.press('t')
  await linesOf(player).first().waitFor()
  await keyboard.type('CAFE')
  await expect.poll(() => panelOf(player).getByRole('status').textContent()).toBe('1 line')
  expect(await panelOf(player).locator('mark').allTextContents()).toEqual(['café'])
  await keyboard.press('Escape') // empties the field first
  await keyboard.type('light')
  await expect.poll(() => panelOf(player).getByRole('status').textContent()).toBe('3 lines')
  expect(await panelOf(player).locator('mark').allTextContents()).toEqual(['light', 'light', 'Light'])
  await keyboard.press('ArrowDown')
  await keyboard.press('End')
  await keyboard.press('Enter')
  await player.until(isAt(4))
  expect((await player.video()).paused).toBe(true) // no letter and no Enter was a shortcut
  await player.keepPicture('transcript-search')
  await keyboard.press('ArrowUp')
  await keyboard.press(' ')
  await player.until(isAt(3))
  await keyboard.press('Escape')
  await panelOf(player).waitFor({ state: 'hidden' })
  await keyboard.press('k')
  await player.playsPast(3.1)
})

test('L-08: it works while captions are off, in the language that is chosen in it; right-to-left text is laid out so', async () => {
  const player = await watch('&transcript=on')
  await panelOf(player).waitFor()
  await expect.poll(() => panelOf(player).getByRole('status').textContent()).toBe('The text appears here when the video plays.')
  await pauseAfterStart(player)
  await expect.poll(() => linesOf(player).count()).toBe(ENGLISH.length)
  expect(
    await player.frame.evaluate(
      `[...document.querySelector('video').textTracks].filter(({ mode }) => mode === 'showing').length`,
    ),
  ).toBe(0)
  await panelOf(player).getByRole('combobox', { name: 'Language of the transcript' }).selectOption('العربية')
  await expect.poll(() => linesOf(player).count()).toBe(ARABIC.length)
  const [time, words] = await Promise.all([0, 1].map((part) => linesOf(player).first().locator('span').nth(part).boundingBox()))
  expect((time?.x ?? 0) > (words?.x ?? 0)).toBe(true)
  expect(
    await linesOf(player)
      .first()
      .evaluate((button) => (button.parentElement as { lang?: string } | null)?.lang),
  ).toBe('ar')
  await player.keepPicture('transcript-arabic')
})

test('L-09: of two hours of lines each is there, searched and followed; the viewer’s own scrolling is not undone', async () => {
  const player = await watch('&ccLanguage=de&transcript=on')
  const panel = player.page.locator('.transcript')
  await pauseAfterStart(player)
  await expect.poll(() => panel.locator('li').count()).toBe(TWO_HOURS.length)
  const search = panel.locator('input')
  await search.fill('zeile 3599')
  await expect.poll(() => panel.locator('.found').textContent()).toBe('1 line')
  await search.fill('')
  const list = panel.locator('ol')
  await list.hover()
  await player.page.mouse.wheel(0, 20_000)
  const follow = panel.locator('.follow')
  await follow.waitFor()
  const scrolled = () => list.evaluate((element) => (element as unknown as { scrollTop: number }).scrollTop)
  await expect.poll(scrolled).toBeGreaterThan(10_000)
  await player.frame.evaluate(`document.querySelector('video').currentTime = 6.5`)
  await expect.poll(() => panel.locator('[aria-current]').textContent()).toContain('Zeile 4 ')
  expect(await scrolled()).toBeGreaterThan(10_000)
  await follow.click()
  await expect.poll(scrolled).toBeLessThan(500)
})

test.each([
  { what: 'a phone upright', viewport: { width: 390, height: 844 }, touch: true },
  { what: 'a frame of a phone', viewport: { width: 320, height: 180 }, touch: true },
  { what: 'a large frame', viewport: { width: 1440, height: 810 }, touch: false },
])(
  'L-10: on $what the transcript fits, and no part of the picture is without its watermark',
  async ({ what, viewport, touch }) => {
    const player = await watch('&ccLanguage=en&surfaceColor=fbfaf8', { viewport, touch, annotate: [MARK] })
    await pauseAfterStart(player)
    await player.openSettings()
    await player.page.getByRole('menuitem', { name: 'Transcript' }).click()
    await linesOf(player).first().waitFor()
    await player.keepPicture(`transcript-${what.replaceAll(' ', '-')}`)
    const panel = await panelOf(player).boundingBox()
    const video = await player.page.locator('video').boundingBox()
    if (!panel || !video) throw new Error('nothing is drawn')
    expect(panel.x + panel.width).toBeLessThanOrEqual(viewport.width)
    expect(panel.y + panel.height).toBeLessThanOrEqual(viewport.height)
    const isAside = video.x + video.width <= panel.x + 1 || video.y + video.height <= panel.y + 1
    const coversAll = panel.width === viewport.width && panel.height === viewport.height
    expect([isAside, coversAll]).toContain(true)
    expect(
      await panelOf(player).evaluate((element) => (element as unknown as { scrollWidth: number }).scrollWidth),
    ).toBeLessThanOrEqual(panel.width)
    expect(await judgeByAxe(player.page)).toEqual([])
    await player.page.getByRole('button', { name: 'Close the transcript' }).click()
    await player.press('Settings')
    expect((await player.video()).paused).toBe(true)
    expect(await player.frame.locator('body').getAttribute('data-state')).toBe('playing') // no watermark was taken for covered
  },
)

test('L-12: the bar is one line at each width, with a long chapter, next to the transcript and without it', async () => {
  const { owner, videoId } = reelgate
  const chapters = [{ startS: 0, title: 'A chapter whose title is longer than the bar has room for' }]
  expect((await owner.call('PUT', `/api/videos/${videoId}/chapters`, { body: { chapters } })).status).toBe(200)
  const player = await watch('&ccLanguage=en')
  await pauseAfterStart(player)
  for (const withTranscript of [false, true]) {
    if (withTranscript) await player.page.keyboard.press('t')
    if (withTranscript) await linesOf(player).first().waitFor()
    for (const width of [561, 640, 720, 844, 1000]) {
      await player.page.setViewportSize({ width, height: 360 })
      const end = withTranscript && width >= 640 ? (await panelOf(player).boundingBox())?.x : width
      expect(await misplacedInBar(player, end ?? 0), `${width} pixels, ${withTranscript}`).toEqual([])
    }
    await player.keepPicture(`bar-${withTranscript ? 'with-transcript' : 'alone'}`)
  }
  expect((await owner.call('PUT', `/api/videos/${videoId}/chapters`, { body: { chapters: [] } })).status).toBe(200)
})

/** What is in another line than the play button, or reaches over the end of the bar. */
async function misplacedInBar({ page }: Player, end: number): Promise<string[]> {
  const boxes = await page.locator('media-control-bar > *').evaluateAll((elements) =>
    elements.map((element) => {
      const { x, y, width } = element.getBoundingClientRect()
      return { name: element.localName, x, y, width }
    }),
  )
  const drawn = boxes.filter(({ width }) => width > 0)
  return drawn.filter(({ x, y, width }) => y !== drawn[0]?.y || x + width > end).map(({ name }) => name)
}

test('L-10: in full screen it is there, too', async () => {
  const player = await watch('&ccLanguage=en')
  await pauseAfterStart(player)
  await player.page.keyboard.press('f')
  await expect.poll(() => player.frame.evaluate('document.fullscreenElement !== null')).toBe(true)
  await player.page.keyboard.press('t')
  await linesOf(player).first().click()
  await player.until(isAt(0))
  await player.keepPicture('transcript-fullscreen')
})

test('L-11: a page around opens it by its address or its script, and a video without captions has none', async () => {
  const { owner, videoId, url } = reelgate
  const page = await openTab(await chromium.newContext())
  await page.goto(
    site.put(`<script src="${url}/v2/api.js"></script>
      <iframe src="${url}/v2/?otp=${await owner.issueOtp(videoId)}" width="1000" height="562" allow="autoplay"></iframe>
      <script>const { api, video } = VdoPlayer.getInstance(document.querySelector('iframe'))</script>`),
  )
  await page.evaluate('api.setTranscript(true)')
  const panel = page.frameLocator('iframe').getByRole('complementary', { name: 'Transcript' })
  await panel.waitFor()
  await page.evaluate('api.setTranscript(false)')
  await panel.waitFor({ state: 'hidden' })
})

draw()
