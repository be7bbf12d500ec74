import type { BrowserContext } from 'playwright-core'
import { expect } from 'vitest'
import { addFile } from '../assets/sample-files.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'
import { startWithSmallVideo } from './videos.ts'

const { test, draw } = sampledTests('where a video continues', 3)

// Where a video resumes, and that the server knows what was watched before a seek and right after it. The video has 60 s, so that a
// slow machine leaves it long before its last 10 s, from which no visit resumes.

const shared = startWithSmallVideo()

const newBrowser = (): Promise<BrowserContext> => shared.chromium.newContext({ viewport: { width: 640, height: 360 } })

async function watch(browser: BrowserContext, options = '', otpOptions: Record<string, unknown> = {}): Promise<Player> {
  const otp = await shared.reelgate.owner.issueOtp(shared.reelgate.videoId, otpOptions)
  return openPlayer(browser, playerAddress(shared.reelgate.url, otp, options))
}

/** Plays from the beginning, then a little at another place, and closes the page. @returns where it was left */
async function watchUntil(browser: BrowserContext, placeS: number, otpOptions: Record<string, unknown> = {}): Promise<number> {
  const stretchS = otpOptions.userId ? 2.2 : 0.3 // what the server counts is whole seconds
  const player = await watch(browser, '&t=0', otpOptions)
  await player.play()
  await player.playsPast(stretchS)
  await player.seekNear(placeS)
  await player.playsPast(placeS + stretchS)
  await player.page.keyboard.press('k')
  const { timeS } = await player.until(({ paused }) => paused)
  if (otpOptions.userId) await expect.poll(async () => (await watched(otpOptions.userId)).positionS).toBeGreaterThan(placeS)
  await player.page.close()
  return timeS
}

type Viewing = { intervals: [number, number][]; positionS: number }

async function watched(userId: unknown): Promise<Viewing> {
  const response = await shared.reelgate.owner.call('GET', `/api/viewers/${userId}`)
  const { rows }: { rows: Viewing[] } = JSON.parse(await response.text())
  return rows[0] ?? { intervals: [], positionS: 0 }
}

const startOf = async (player: Player) => (await player.until(({ timeS, paused }) => timeS > 0 && !paused)).timeS

test('the seconds after the start and after a seek count as watched; the viewer whom the OTP names resumes in another browser', async () => {
  const browser = await newBrowser()
  await watchUntil(browser, 24, { userId: 'viewer-1' })
  const { intervals } = await watched('viewer-1')
  expect(intervals).toHaveLength(2)
  const [[, startedToS] = [0, 0], [seekedToS] = [0, 0]] = intervals
  expect([startedToS >= 2, startedToS < 20, seekedToS > 20]).toEqual([true, true, true])

  const resumed = await watch(await newBrowser(), '&autoplay=true', { userId: 'viewer-1' })
  expect(await startOf(resumed)).toBeGreaterThan(24)
  const other = await watch(browser, '&autoplay=true', { userId: 'viewer-2' })
  expect(await startOf(other)).toBeLessThan(10)
  const elsewhere = await watch(browser, '&autoplay=true&t=15', { userId: 'viewer-1' })
  expect(await startOf(elsewhere)).toBeLessThan(20)
})

test('without a name the browser remembers where the video was left: the player shows it, and the viewer may start over before it plays or while it does', async () => {
  const browser = await newBrowser()
  const leftAtS = await watchUntil(browser, 24)
  const offer = ({ page }: Player) => page.getByText('Resumes at')
  const ready = await watch(browser)
  const resumesAtS = Number((await offer(ready).textContent())?.replace('Resumes at 0:', ''))
  expect(Math.abs(resumesAtS - leftAtS)).toBeLessThanOrEqual(1) // it is rounded, and may have moved a little after the pause
  await ready.keepPicture('resumes')
  const playing = await watch(browser, '&autoplay=true')
  expect(await startOf(playing)).toBeGreaterThan(leftAtS - 2)
  await playing.press('Start over')
  await playing.until(({ timeS, paused, seeking }) => timeS < 10 && !paused && !seeking)
  expect(await offer(playing).count()).toBe(0)

  await ready.press('Start over')
  expect(await startOf(ready)).toBeLessThan(10)
  expect(await offer(ready).count()).toBe(0)
})

test('a viewer who goes to another place is no longer offered to start over', async () => {
  const browser = await newBrowser()
  await browser.addInitScript(`localStorage.setItem('reelgate-places', '{"${shared.reelgate.videoId}":24}')`)
  const player = await watch(browser, '&autoplay=true')
  await player.playsPast(24)
  await player.page.getByText('Resumes at').waitFor()
  await player.page.keyboard.press('ArrowLeft')
  await player.page.getByText('Resumes at').waitFor({ state: 'detached' })
})

test.each(sampleOf('widths of the offer to start over', [320, 390, 768, 1440], 1))(
  'P-16: while the video plays, the offer to start over is at the top of a frame of %i pixels, and captions at the bottom',
  async (width) => {
    const { reelgate, chromium } = shared
    const height = Math.round((width * 9) / 16)
    await addFile(
      reelgate.owner,
      reelgate.videoId,
      `1\n00:00:00,000 --> 00:01:00,000\n${'Many words in a row. '.repeat(4)}\n`,
      'en',
    )
    const browser = await chromium.newContext({ viewport: { width, height } })
    await browser.addInitScript(`localStorage.setItem('reelgate-places', '{"${reelgate.videoId}":24}')`)
    const player = await watch(browser, '&autoplay=true&ccLanguage=en')
    await player.playsPast(24)
    const box = await player.page.locator('.resume').boundingBox()
    await player.keepPicture(`resume-captions-${width}`)
    expect((box?.y ?? height) + (box?.height ?? 0)).toBeLessThan(height / 3)
  },
)

test('P-16: in a small frame the words of the offer to start over give way to a watermark, and all of it to a sentence', async () => {
  const browser = await shared.chromium.newContext({ viewport: { width: 320, height: 222 } })
  await watchUntil(browser, 24)
  const annotate = JSON.stringify([{ type: 'text', text: 'reader@example.org', size: '24', x: '5%', y: '0%' }])
  const { page, play, keepPicture } = await watch(browser, '', { annotate })
  const color = () => page.evaluate("getComputedStyle(document.querySelector('.resume span')).color")
  await page.getByText('Resumes at').waitFor()
  expect(await color()).toBe('rgb(242, 240, 236)')
  await page.route('**/key/**', () => {}) // it does not play, so the offer stays
  await play()
  await expect.poll(color).toBe('rgba(0, 0, 0, 0)')
  const startOver = page.getByRole('button', { name: 'Start over' })
  await startOver.waitFor()
  await keepPicture('resume-marked-320')
  await page.locator('.note').waitFor() // that the connection is slow
  await startOver.waitFor({ state: 'hidden' })
})

draw()
