import { expect, test } from 'vitest'
import { createTrafficMeter } from '../../src/playback/traffic.ts'
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
    take: (address: string, videoId = bare.videoId) => traffic.take(address, { ...video, videoId }, SEGMENT_BYTES),
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
