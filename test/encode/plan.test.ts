import { expect, test } from 'vitest'
import { chooseFrameRate, chooseTimescale } from '../../src/encode/frame-rate.ts'
import { planVideo } from '../../src/encode/grid.ts'
import { planLadder, videoCodec } from '../../src/encode/ladder.ts'
import { audioSegmentCount, type VideoTrackPlan, videoSegmentCount } from '../../src/encode/plan.ts'
import type { Probe } from '../../src/encode/probe.ts'

const RATE = { rateNum: 30, rateDen: 1 }
const PICTURE = {
  widthPx: 1280,
  heightPx: 720,
  storedPx: { widthPx: 1280, heightPx: 720 },
  baseRateHz: 30,
  averageRateHz: 30,
  interlaced: false,
  color: { matrix: 'bt709', range: 'tv', primaries: 'bt709', transfer: 'bt709', alpha: false, coarse: false } as const,
  durationS: 60,
}
const SOURCES = [{ stream: 1, channels: 2, layout: 'stereo' }]
const PROBE: Probe = {
  formatName: 'mov,mp4',
  isSeekable: true,
  videoTrack: PICTURE,
  audioTrack: { sources: SOURCES, durationS: 60.02 },
  embedded: { captions: [], chapters: [], notices: [] },
  notices: [],
}

test.each([
  { source: '1920×1080', rungs: '1920×1080 1280×720 854×480 426×240' },
  { source: '3840×2160', rungs: '1920×1080 1280×720 854×480 426×240' },
  { source: '1280×720', rungs: '1280×720 854×480 426×240' },
  { source: '1920×800', rungs: '1728×720 1152×480 576×240' },
  { source: '720×1280', rungs: '720×1280 480×854 240×426' },
  { source: '640×360', rungs: '640×360 426×240' },
  { source: '480×352', rungs: '480×352 328×240' },
  { source: '853×479', rungs: '852×478 428×240' },
  { source: '160×90', rungs: '160×90' },
  { source: '1×1', rungs: '2×2' },
  { source: '3×4097', rungs: '2×4096' },
])('a source of $source gets the rungs $rungs', ({ source, rungs }) => {
  const [widthPx = 0, heightPx = 0] = source.split('×').map(Number)
  const ladder = planLadder({ widthPx, heightPx }, RATE)
  expect(ladder.map((rung) => `${rung.widthPx}×${rung.heightPx}`).join(' ')).toBe(rungs)
  expect(ladder.map(({ id }) => id)).toEqual(ladder.map((_, index) => index + 1))
})

test('the codec of a rung is known before its first frame', () => {
  expect(planLadder({ widthPx: 1920, heightPx: 1080 }, RATE).map(videoCodec)).toEqual([
    'avc1.640028',
    'avc1.64001f',
    'avc1.64001f',
    'avc1.640015',
  ])
  expect(planLadder({ widthPx: 1920, heightPx: 1080 }, { rateNum: 60, rateDen: 1 }).map(videoCodec)[0]).toBe('avc1.64002a')
})

test.each([
  { base: 30_000 / 1001, average: 29.9700004, rate: '30000/1001' },
  { base: 20, average: 20, rate: '20/1' },
  { base: 30, average: 30.12, rate: '30/1' },
  { base: 12.5, average: 12.5, rate: '25/2' },
  { base: 120, average: 120, rate: '60/1' },
  { base: 100, average: 100, rate: '50/1' },
  { base: 30, average: 16.8, rate: '30/1' },
  { base: 1000, average: 29.8, rate: '30000/1001' },
  { base: 1_000_000, average: 1_000_000, rate: '60/1' },
  { base: 0.000_001, average: 0.000_001, rate: '5/1' },
  { base: undefined, average: undefined, rate: '25/1' },
])('a source of base $base and average $average frames a second is encoded at $rate', ({ base, average, rate }) => {
  const chosen = chooseFrameRate(base, average)
  expect(`${chosen.rateNum}/${chosen.rateDen}`).toBe(rate)
  expect((chooseTimescale(chosen) * chosen.rateDen) % chosen.rateNum).toBe(0)
})

test('the grid is about four seconds, and every frame belongs to one segment', () => {
  const { videoTrack, audioTrack } = planVideo(PROBE)
  expect(videoTrack).toMatchObject({ frameCount: 1800, gopFrames: 120, timescale: 90_000, heldFrames: 0 })
  expect(videoTrack && videoSegmentCount(videoTrack)).toBe(15)
  expect(audioTrack).toEqual({ renditionId: 4, bitrateBps: 128_000, frameCount: 2814, silentFrames: 0, sources: SOURCES })
  expect(audioTrack && audioSegmentCount(audioTrack)).toBe(15)
})

test('the same probe gives the same plan, also after it was kept as JSON', () => {
  const plan = planVideo(PROBE)
  expect(planVideo(PROBE)).toEqual(plan)
  expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
})

test('a cover with an hour of talk is an hour long', () => {
  const plan = planVideo({
    ...PROBE,
    videoTrack: { ...PICTURE, durationS: 0.04 },
    audioTrack: { sources: SOURCES, durationS: 3600 },
  })
  expect(plan.durationS).toBeCloseTo(3600, 0)
  const { frameCount, heldFrames = 0 } = plan.videoTrack as VideoTrackPlan
  expect([frameCount, frameCount - heldFrames]).toEqual([108_000, 1])
})

test('I-12: of 120 frames a second every second one has a slot, and the last of them no other', () => {
  const fit = { rate: { rateNum: 120, rateDen: 1 }, startS: 0 }
  const video = { ...PICTURE, baseRateHz: 120, averageRateHz: 120, fit, durationS: 6, lastFrameS: 719 / 120 }
  expect(planVideo({ ...PROBE, videoTrack: video, audioTrack: undefined }).videoTrack?.frameCount).toBe(360)
})

test('interlaced video is counted in frames, not in fields', () => {
  const plan = planVideo({ ...PROBE, videoTrack: { ...PICTURE, interlaced: true, baseRateHz: 50, averageRateHz: 25 } })
  expect(plan.videoTrack).toMatchObject({ rateNum: 25, rateDen: 1 })
})
