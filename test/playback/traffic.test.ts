import { expect, test } from 'vitest'
import { createTrafficMeter } from '../../src/playback/sessions/traffic.ts'
import { openBarePlayback } from './playback-deps.ts'

// A leaked segment address costs no more than a few lengths of its video (playback-protocol.md, section 8).

const LENGTH_BYTES = 600_000
const SEGMENT_BYTES = LENGTH_BYTES / 10

async function openTraffic() {
  const bare = await openBarePlayback()
  const rendition = { id: 1, widthPx: 320, heightPx: 180, maxBitrateBps: 60_000, level: 30 }
  const videoTrack = { rateNum: 25, rateDen: 1, timescale: 12_800, frameCount: 1500, gopFrames: 100, interlaced: false }
  const plan = {
    videoTrack: { ...videoTrack, aspectRatio: 16 / 9, renditions: [{ ...rendition, id: 2, maxBitrateBps: 30_000 }, rendition] },
    audioTrack: { renditionId: 3, bitrateBps: 20_000, frameCount: 2813 },
    durationS: 60,
    isSeekable: true,
  }
  const video = { videoId: bare.videoId, plan }
  const traffic = createTrafficMeter(bare.deps.sessions, bare.nowS)
  return {
    ...bare,
    take: (address: string, videoId = bare.videoId, sizeBytes = SEGMENT_BYTES) =>
      traffic.take(address, { ...video, videoId }, sizeBytes),
    /** How many of so many segments an address is sent now. */
    countSent: (address: string, most: number) =>
      Array.from({ length: most }, () => traffic.take(address, video, SEGMENT_BYTES)).filter((waitS) => waitS === undefined)
        .length,
  }
}

test('P23: of one leaked address four lengths of the video are sent in an hour, then it waits, and neither another video nor another address does', async () => {
  const { take, countSent, passS } = await openTraffic()
  expect(countSent('203.0.113.1', 6000)).toBe(40)
  expect(take('203.0.113.1')).toBeGreaterThan(3000)
  expect(take('203.0.113.1', 'another')).toBeUndefined()
  expect(take('203.0.113.2')).toBeUndefined()
  passS(1800)
  expect(take('203.0.113.1')).toBeGreaterThan(1000)
  passS(3600)
  expect(countSent('203.0.113.1', 6000)).toBe(40)
})

test('P23: a /64 counts as one address', async () => {
  const { countSent, take } = await openTraffic()
  expect(countSent('2001:db8:0:1::1', 6000)).toBe(40)
  expect(take('2001:db8:0:1::2')).toBeGreaterThan(0)
})

test('P26: over all /64s of a /48 sixteen times as much is sent, and an address that is refused uses up nothing of it', async () => {
  const { countSent, take, passS } = await openTraffic()
  let sent = 0
  for (let network = 0; network < 100; network++) sent += countSent(`2001:db8:1:${network.toString(16)}::1`, 50)
  expect(sent).toBe(16 * 40)
  expect(take('2001:db8:1:ffff::1')).toBeGreaterThan(3000)
  expect(take('2001:db8:2::1')).toBeUndefined()
  passS(2 * 3600)
  countSent('2001:db8:1:1::1', 6000)
  sent = 0
  for (let network = 2; network < 100; network++) sent += countSent(`2001:db8:1:${network.toString(16)}::1`, 50)
  expect(sent).toBe(15 * 40)
})

test('P26: what a /48 was sent is not forgotten when a byte goes to each of 25 000 /64s', async () => {
  const { countSent, take, videoId } = await openTraffic()
  let sent = 0
  for (let network = 0; network < 15; network++) sent += countSent(`2001:db8:1:${network.toString(16)}::1`, 50)
  for (let network = 100; network < 25_100; network++) take(`2001:db8:1:${network.toString(16)}::1`, videoId, 1)
  for (let network = 30_000; network < 30_100; network++) sent += countSent(`2001:db8:1:${network.toString(16)}::1`, 50)
  expect(sent).toBeLessThanOrEqual(16 * 40)
})

test('P26: each session in a /48 adds as much again', async () => {
  const { countSent, newPlayingViewer, ask, deps } = await openTraffic()
  const viewers = [await newPlayingViewer(), await newPlayingViewer()]
  for (const [n, viewer] of viewers.entries()) await ask(viewer, 'beat', deps.nonces.current(), { address: `2001:db8:1:${n}::1` })
  let sent = 0
  for (let network = 0; network < 100; network++) sent += countSent(`2001:db8:1:${network.toString(16)}::1`, 50)
  expect(sent).toBe(2 * 16 * 40)
})

test('each session that plays behind an address adds four lengths; one that has ended or moved adds none', async () => {
  const { countSent, newPlayingViewer, ask, deps, passS } = await openTraffic()
  const [, leaving, moving] = [await newPlayingViewer(), await newPlayingViewer(), await newPlayingViewer()]
  expect(countSent('192.0.2.1', 6000)).toBe(120)
  const ended = deps.sessions.get(leaving.state.session)
  if (ended) ended.row = { ...ended.row, endedAtS: deps.nowS() }
  await ask(moving, 'beat', deps.nonces.current(), { address: '198.51.100.1' })
  passS(2 * 3600)
  expect(countSent('192.0.2.1', 6000)).toBe(40)
  expect(countSent('198.51.100.1', 6000)).toBe(40)
})
