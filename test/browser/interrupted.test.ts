import { afterAll, expect, onTestFinished, test } from 'vitest'
import { sampledTests, sampleOf } from '../sample.ts'
import { answerOf } from '../viewer.ts'
import { startPersonsChromium } from './chromium.ts'
import { lookAtPlayer, openPlayer, openTab, playerAddress } from './player.ts'
import { startSite } from './site.ts'
import { startWithSmallVideo } from './videos.ts'

// A video whose connection, page or tab goes away for a while.

const { test: sampled, draw } = sampledTests('lost connections', 1)

const shared = startWithSmallVideo()
const school = startSite()
afterAll(() => school.close())

sampled(
  'offline, the video plays from its buffer, then says so; back online it plays on by itself in the same session',
  async () => {
    const browser = await shared.chromium.newContext()
    const player = await openPlayer(
      browser,
      playerAddress(shared.reelgate.url, await shared.reelgate.owner.issueOtp(shared.reelgate.videoId)),
    )
    await player.play()
    const { timeS } = await player.playsPast(0.5)
    const session = player.page.url()

    await browser.setOffline(true)
    await player.playsPast(timeS + 1)
    await player.seekNear(50)
    await player.shows('playing', 'offline')
    expect(await player.note()).toBe('You are offline. Playback continues when the connection is back.')
    await player.keepPicture('offline')

    await browser.setOffline(false)
    await player.playsPast(50.5)
    await player.shows('playing', '')
    expect(player.page.url()).toBe(session)
  },
)

sampled('while the server is away the player says so, and plays on by itself in the same session when it is back', async () => {
  const otp = await shared.reelgate.owner.issueOtp(shared.reelgate.videoId)
  const player = await openPlayer(await shared.chromium.newContext(), playerAddress(shared.reelgate.url, otp))
  await player.play()
  await player.playsPast(0.5)
  const session = player.page.url()

  await shared.reelgate.stop()
  await player.seekNear(50)
  await player.shows('playing', 'network')
  expect(await player.note()).toBe('The server does not answer. Playback continues when it does.')

  await shared.reelgate.restart()
  await player.playsPast(50.5)
  expect(player.page.url()).toBe(session)
})

draw()

const CLOCKS = [
  ['ten years ahead', '2040-01-01'],
  ['ten years behind', '2015-01-01'],
] as const

test.each(sampleOf('clocks of viewers', CLOCKS, 1))(
  'C01: a viewer whose clock is %s plays, and continues after a reload',
  async (_, time) => {
    const page = await openTab(await shared.chromium.newContext())
    await page.clock.install({ time })
    const player = lookAtPlayer(page)
    await page.goto(playerAddress(shared.reelgate.url, await shared.reelgate.owner.issueOtp(shared.reelgate.videoId)))
    await player.play()
    await player.playsPast(0.5)
    await page.reload()
    await player.play()
    await player.playsPast(0.5)
  },
)

test('a page that is left and come back to plays on by itself where it was: same session, same screen, new keys', async () => {
  const person = await startPersonsChromium()
  onTestFinished(person.remove)
  const page = await openTab(person.browser)
  const issueOtp = () => shared.reelgate.owner.issueOtp(shared.reelgate.videoId, { userId: 'back', streamLimit: 1 })
  const lesson = school.put(`<script src="${shared.reelgate.url}/v2/api.js"></script>
    <iframe src="${playerAddress(shared.reelgate.url, await issueOtp())}" width="640" height="360" allow="autoplay"></iframe>
    <script>const player = VdoPlayer.getInstance(document.querySelector('iframe'))
      addEventListener('pageshow', ({ persisted }) => { globalThis.wasKept = persisted })</script>`)
  await page.goto(lesson)
  const inPage = <T>(script: string) => page.evaluate(script) as Promise<T>
  const frame = page.frames().at(1)
  if (!frame) throw new Error('The page has no frame')
  await lookAtPlayer(page, frame).play()
  await expect.poll(() => inPage('player.video.currentTime')).toBeGreaterThan(1)
  await page.goto('about:blank')
  await page.goBack({ waitUntil: 'commit' })
  expect(await inPage('wasKept')).toBe(true)

  const cameBackAtS = await inPage<number>('player.video.currentTime')
  expect(cameBackAtS).toBeGreaterThan(1)
  await expect.poll(() => inPage('player.video.currentTime')).toBeGreaterThan(cameBackAtS + 0.5)
  await inPage('player.video.currentTime = 50') // where none of its keys is from before
  await expect.poll(() => inPage('player.video.currentTime')).toBeGreaterThan(50.5)
  const sessions = await shared.reelgate.owner.call('GET', '/api/sessions?userId=back')
  expect(await sessions.json()).toMatchObject({ rows: [{ userId: 'back' }] })
  const other = shared.reelgate.newViewer()
  await other.redeem(await issueOtp())
  expect(await answerOf(other.key(0))).toEqual([409, 'stream-limit'])
})
