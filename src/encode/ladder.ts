import type { FrameRate } from './frame-rate.ts'
import type { VideoRendition } from './plan.ts'

type Rung = { shortSidePx: number; maxBitrateBps: number }

// Measured on the short side, so that a portrait phone video gets the same ladder as a landscape one.
const LOWEST: Rung = { shortSidePx: 240, maxBitrateBps: 400_000 }
const LADDER: readonly Rung[] = [
  { shortSidePx: 1080, maxBitrateBps: 5_000_000 },
  { shortSidePx: 720, maxBitrateBps: 2_800_000 },
  { shortSidePx: 480, maxBitrateBps: 1_200_000 },
  LOWEST,
]
// A source this much larger than its highest rung gets a rung of its own size: 640×360 must not end at 240.
const MIN_EXCESS_FOR_OWN_RUNG = 1.2
const MAX_LONG_SIDE_PX = 4096

/** The video renditions for a display size, highest first, ids from 1. Never larger than the source, always at least one. */
export function planLadder(shown: { widthPx: number; heightPx: number }, rate: FrameRate): readonly VideoRendition[] {
  return chooseRungs(Math.min(shown.widthPx, shown.heightPx)).map(({ shortSidePx, maxBitrateBps }, index) => {
    const size = scaleToRung(shown, shortSidePx)
    return { id: index + 1, ...size, maxBitrateBps, level: lowestLevel(size, rate, maxBitrateBps) }
  })
}

/** RFC 6381 name of a rendition's codec: High profile, no constraint flags, the level in hex. */
export function videoCodec({ level }: Pick<VideoRendition, 'level'>): string {
  return `avc1.6400${level.toString(16).padStart(2, '0')}`
}

export const AUDIO_CODEC = 'mp4a.40.2'

function chooseRungs(shortSidePx: number): readonly Rung[] {
  const fitting = LADDER.filter((rung) => rung.shortSidePx <= shortSidePx)
  const [top] = fitting
  if (!top) return [{ ...LOWEST, shortSidePx }]
  const above = LADDER[LADDER.indexOf(top) - 1]
  if (!above || shortSidePx < top.shortSidePx * MIN_EXCESS_FOR_OWN_RUNG) return fitting
  const share = (shortSidePx - top.shortSidePx) / (above.shortSidePx - top.shortSidePx)
  const maxBitrateBps = Math.round((top.maxBitrateBps + share * (above.maxBitrateBps - top.maxBitrateBps)) / 1000) * 1000
  return [{ shortSidePx, maxBitrateBps }, ...fitting]
}

function scaleToRung({ widthPx, heightPx }: { widthPx: number; heightPx: number }, shortSidePx: number) {
  const scale = Math.min(shortSidePx / Math.min(widthPx, heightPx), MAX_LONG_SIDE_PX / Math.max(widthPx, heightPx))
  return { widthPx: evenSide(widthPx, scale), heightPx: evenSide(heightPx, scale) }
}

// 4:2:0 needs even sides; 479 becomes 478, for 480 would be larger than the source.
function evenSide(sourcePx: number, scale: number): number {
  return Math.max(2, Math.min(2 * Math.round((sourcePx * scale) / 2), 2 * Math.floor(sourcePx / 2)))
}

// H.264 table A-1: level × 10, macroblocks a second, macroblocks a frame, macroblocks in the decoded picture buffer, kbit/s (× 1.25 in High).
const LEVELS = [
  [21, 19_800, 792, 4752, 4000],
  [22, 20_250, 1620, 8100, 4000],
  [30, 40_500, 1620, 8100, 10_000],
  [31, 108_000, 3600, 18_000, 14_000],
  [32, 216_000, 5120, 20_480, 20_000],
  [40, 245_760, 8192, 32_768, 20_000],
  [42, 522_240, 8704, 34_816, 50_000],
  [50, 589_824, 22_080, 110_400, 135_000],
  [51, 983_040, 36_864, 184_320, 240_000],
  [52, 2_073_600, 36_864, 184_320, 240_000],
] as const
// veryfast keeps one reference and three B-frames in a pyramid.
const BUFFERED_FRAMES = 4

function lowestLevel({ widthPx, heightPx }: { widthPx: number; heightPx: number }, rate: FrameRate, maxBitrateBps: number) {
  const columns = Math.ceil(widthPx / 16)
  const rows = Math.ceil(heightPx / 16)
  const frame = columns * rows
  const second = (frame * rate.rateNum) / rate.rateDen
  const found = LEVELS.find(
    ([, maxSecond, maxFrame, maxBuffered, maxKbps]) =>
      second <= maxSecond &&
      frame <= maxFrame &&
      frame * BUFFERED_FRAMES <= maxBuffered &&
      maxBitrateBps <= maxKbps * 1250 &&
      Math.max(columns, rows) <= Math.sqrt(8 * maxFrame), // A.3.1: neither side longer than this
  )
  return found?.[0] ?? 52
}
