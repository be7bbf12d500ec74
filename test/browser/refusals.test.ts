import { openAsBlob } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { startReelgate, startSharedReelgate } from '../in-process.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { startChromium } from './chromium.ts'
import { openPlayer, type Player, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

const { test, draw } = sampledTests('refusals in a browser', 5)

// What a viewer reads where the video does not play, and that then nothing of it is on the page.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let video: string

beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  // The name represents a server on another machine: to this browser it is not localhost, hence not secure.
  chromium = await startChromium('--host-resolver-rules=MAP insecure.example 127.0.0.1')
  video = reelgate.videoId
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

test('O02: a link that was opened already says so in every other browser', async () => {
  const otp = await reelgate.owner.issueOtp(video)
  const first = await openInNewBrowser(playerAddress(reelgate.url, otp))
  await first.shows('ready')
  const second = await openInNewBrowser(playerAddress(reelgate.url, otp))
  await second.shows('refused', 'otp-used')
  expect(await second.sentence()).toBe('This link was already used. Reload the page you came from to get a new one.')
  await expectNoVideo(second)
  await first.play()
  await first.playsPast(0.5)
})

test('P01: the address bar of a viewer, copied, plays in no other browser', async () => {
  const player = await openInNewBrowser(playerAddress(reelgate.url, await reelgate.owner.issueOtp(video)))
  await player.shows('ready')
  expect(player.page.url()).toContain('?session=')
  const copy = await openInNewBrowser(player.page.url())
  await copy.shows('refused', 'not-allowed')
  expect(await copy.sentence()).toBe(
    'This video was opened in another browser. Open it from the page you came from to watch it here.',
  )
  await expectNoVideo(copy)
})

test('O06: a link that was not opened in time says that it has expired', async () => {
  const otp = await reelgate.owner.issueOtp(video, { ttl: 1 })
  await untilOtpsOfOneSecondHaveExpired()
  const player = await openInNewBrowser(playerAddress(reelgate.url, otp))
  await player.shows('refused', 'otp-expired')
  expect(await player.sentence()).toBe('This link has expired. Reload the page you came from to get a new one.')
  await expectNoVideo(player)
})

test('a link that was made up says that it is not valid', async () => {
  const player = await openInNewBrowser(playerAddress(reelgate.url, 'A'.repeat(64)))
  await player.shows('refused', 'otp-unknown')
  expect(await player.sentence()).toBe('This link is not valid. Reload the page you came from to get a new one.')
})

test('a viewer who comes before the video is ready sees that, and it begins by itself when it is', async () => {
  const { owner } = reelgate
  const credentials = await owner.credentials('Early')
  const otp = await owner.issueOtp(credentials.videoId)
  const player = await openInNewBrowser(playerAddress(reelgate.url, otp, '&autoplay=true'))
  await player.shows('waiting', 'video-not-ready')
  expect(await player.sentence()).toBe('This video is being prepared. It can be played here as soon as it is ready.')
  await player.keepPicture('not-ready')
  expect((await owner.send(credentials, await openAsBlob(await makeVideo()))).status).toBe(201)
  await player.playsPast(0.5)
})

test('a video that cannot be played asks its viewers to contact the owner', async () => {
  const { owner } = reelgate
  const credentials = await owner.credentials('Not a video')
  const otp = await owner.issueOtp(credentials.videoId)
  expect((await owner.send(credentials, new Blob(['a letter, not a video']))).status).toBe(201)
  await untilFailed(credentials.videoId)
  const player = await openInNewBrowser(playerAddress(reelgate.url, otp))
  await player.shows('refused', 'video-failed')
  expect(await player.sentence()).toBe('This video could not be prepared for playing. Please contact the owner of this site.')
})

test('O07: a video deleted while it plays stops within a beat and leaves nothing to play', async () => {
  const { owner, url, videoId: doomed } = await startReelgate({ video: await makeSmallVideo() })
  const unspent = await owner.issueOtp(doomed)
  const player = await openInNewBrowser(playerAddress(url, await owner.issueOtp(doomed)))
  await player.play()
  await player.playsPast(1)
  await owner.delete([doomed])
  await player.shows('refused') // from a beat, a key or a segment, whichever is requested first
  expect(await player.sentence()).toBe(
    'This video is no longer available. Go back to the page you came from, or ask the owner of this site.',
  )
  await player.keepPicture('deleted')
  await expectNoVideo(player)

  const late = await openInNewBrowser(playerAddress(url, unspent))
  await late.shows('refused', 'video-gone')
  expect(await late.sentence()).toBe(
    'This video is no longer available. Go back to the page you came from, or ask the owner of this site.',
  )
})

test('a page without https says which address needs it, and does not spend the link', async () => {
  const otp = await reelgate.owner.issueOtp(video)
  const { port } = new URL(reelgate.url)
  const player = await openInNewBrowser(playerAddress(`http://insecure.example:${port}`, otp))
  await player.shows('refused', 'insecure-page')
  expect(await player.sentence()).toBe(
    `This video plays only on a secure page. Open insecure.example:${port} with https:// in front.`,
  )
  await player.page.goto(playerAddress(reelgate.url, otp))
  await player.shows('ready')
})

draw()

async function openInNewBrowser(address: string): Promise<Player> {
  return openPlayer(await chromium.newContext(), address)
}

async function expectNoVideo(player: Player) {
  expect(await player.video()).toMatchObject({ widthPx: 0, durationS: Number.NaN, framesDecoded: 0 })
  expect(await player.page.locator('.big-play').isVisible()).toBe(false)
}

/** An OTP made after the one in question, for a video that is not there, can be asked for and not be spent. */
async function untilOtpsOfOneSecondHaveExpired() {
  const { videoId } = await reelgate.owner.credentials('Never sent')
  const witness = await reelgate.owner.issueOtp(videoId, { ttl: 1 })
  await expect.poll(async () => (await reelgate.newViewer().redeem(witness)).body.code).toBe('otp-expired')
}

async function untilFailed(videoId: string) {
  await expect.poll(async () => (await reelgate.owner.video(videoId)).status).toBe('Not a media file')
}
