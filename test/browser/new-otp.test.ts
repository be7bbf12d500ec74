import { afterAll, expect, test } from 'vitest'
import { lookAtPlayer, openTab } from './player.ts'
import { startSite } from './site.ts'
import { startWithSmallVideo } from './videos.ts'

// A session that is over, in a page of another site. Frames have no storage in this Chromium, so only the page knows the place.

const shared = startWithSmallVideo()
const site = startSite()
afterAll(() => site.close())

const IDLE = { status: 403, json: { code: 'session-ended', why: 'idle', message: '', requestId: '' } }
const newOtp = () => shared.reelgate.owner.issueOtp(shared.reelgate.videoId)

const frameHtml = (otp: string, script = '', query = '') =>
  `<iframe src="${shared.reelgate.url}/player/?otp=${otp}${query}" width="640" height="360" allow="autoplay; fullscreen"></iframe>${script}`
const withApi = (script = '') => `<script src="${shared.reelgate.url}/v2/api.js"></script>
  <script>const player = VdoPlayer.getInstance(document.querySelector('iframe')); ${script}</script>`

test('P-25: in a page of another site that does not listen, the sentence takes the place of the button after 3 s', async () => {
  const otp = await newOtp()
  await shared.reelgate.newViewer().redeem(otp)
  const page = await openTab(await shared.chromium.newContext())
  await page.clock.install()
  await page.goto(site.put(frameHtml(otp)))
  const player = lookAtPlayer(page, page.frames().at(1))
  await player.shows('refused', 'otp-used')
  await player.frame.getByRole('button', { name: 'Continue' }).click()
  await player.shows('loading')
  await page.clock.fastForward(3_000)
  await player.shows('refused', 'otp-used')
  expect(await player.sentence()).toContain('Reload the page you came from')
  expect(await player.frame.getByRole('button', { name: 'Continue' }).count()).toBe(0)
})

/** Opens a page whose player is refused after a pause of an hour, 20 s into its video. */
async function leaveForAnHour(body: string) {
  const page = await openTab(await shared.chromium.newContext())
  await page.goto(site.put(body))
  const findPlayer = async () => {
    await expect.poll(() => page.frames().length).toBe(2)
    const frame = page.frames().at(1)
    if (!frame) throw new Error('The page has no frame')
    return lookAtPlayer(page, frame)
  }
  const player = await findPlayer()
  await player.shows('ready')
  await player.play()
  await player.playsPast(20)
  await page.route('**/beat', (route) => route.fulfill(IDLE))
  await player.frame.locator('media-play-button').click() // whose beat is refused
  await player.shows('refused', 'session-ended.idle')
  await page.unroute('**/beat')
  return { page, player, findPlayer, next: player.frame.getByRole('button', { name: 'Continue' }) }
}

test('P-13: after an hour idle a button asks the page for a new OTP, which plays on where the viewer was', async () => {
  const listener = `player.api.addEventListener('statusChange', (status) => {
    if (status === 'otpNeeded' && window.otp) player.api.loadVideo({ otp: window.otp })
  })`
  const { page, player, next } = await leaveForAnHour(frameHtml(await newOtp(), withApi(listener), '&t=20'))
  await player.keepPicture('idle-in-frame')
  expect(await player.sentence()).toBe('This video was paused for a long time.') // not to reload by hand
  await page.evaluate(`window.stays = true, window.otp = '${await newOtp()}'`)
  await next.click()
  await player.frame.getByText('Resumes at 0:2').waitFor()
  await player.play()
  await player.playsPast(20.5)
  expect((await player.video()).timeS).toBeLessThan(40)
  expect(await page.evaluate('window.stays')).toBe(true)
})

test('P-13: a page that gives no new OTP is reloaded by the button, and the video plays on where the viewer was', async () => {
  const { findPlayer, next } = await leaveForAnHour(frameHtml(await newOtp(), withApi(), '&t=20'))
  site.put(frameHtml(await newOtp(), withApi()))
  await next.click()
  await expect.poll(async () => (await findPlayer()).frame.getByText('Resumes at 0:2').count()).toBe(1)
  const player = await findPlayer()
  await player.play()
  await player.playsPast(20.5)
})

test('P-13: a page without the scripts gets a message, with which it can reload itself', async () => {
  const reload = `<script>addEventListener('message', ({ data }) => data?.reelgate === 'otpNeeded' && location.reload())</script>`
  const { findPlayer, next } = await leaveForAnHour(frameHtml(await newOtp(), reload, '&t=20'))
  site.put(frameHtml(await newOtp(), reload))
  await next.click()
  await expect.poll(async () => (await findPlayer()).frame.locator('body[data-state="ready"]').count()).toBe(1)
})
