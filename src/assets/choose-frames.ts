/** Tiny pictures of this size show cuts and fades. */
export const THUMB = { widthPx: 16, heightPx: 9 } as const
const THUMB_BYTES = THUMB.widthPx * THUMB.heightPx

/** So many parts of a video have a candidate each. */
export const MAX_PARTS = 12
const MAX_CHOSEN = 3
/** How far a candidate is from a cut or fade, in seconds. */
const STEADY_S = 1

/** How good a frame is as a poster. `brightness` and `contrast`: mean and standard deviation of its luma, 0 to 255. */
type FrameLook = { sharpness: number; contrast: number; brightness: number }

/** A frame that may be chosen. `index`: among the frames that were decoded, which `DecodedFrames` describes. */
export type LookedAt = FrameLook & { index: number }

/** Frames in their order, with gaps between segments that were not decoded. */
export type DecodedFrames = {
  hz: number
  /** Of each one its number in the video. */
  numbers: readonly number[]
  /** Of each one its part of the video, counted from 0. */
  parts: readonly number[]
  /** Their tiny pictures, one after another, a byte for each pixel. */
  thumbs: Uint8Array
}

/**
 * The sharpest and best lit of each part's frames, none within a second of a cut or fade or of where the frames around it are not known;
 * of these at most three, the best first, that show different things where they can. Where no frame is so far from a cut, all count.
 * Frames of one color, and black ones, are never chosen. Pure.
 * @returns numbers of frames in the video
 */
export function chooseFrames(decoded: DecodedFrames, looks: readonly LookedAt[]): number[] {
  const isSteady = findSteady(decoded)
  const visible = looks.filter((look) => look.index < decoded.numbers.length && hasPicture(look))
  const steady = visible.filter(({ index }) => isSteady[index])
  const scored = (steady.length > 0 ? steady : visible).map((look) => ({ ...look, score: score(look) }))
  const best = Map.groupBy(scored, ({ index }) => decoded.parts[index] ?? 0)
    .values()
    .map((inPart) => inPart.reduce((a, b) => (b.score > a.score ? b : a)))
    .toArray()
    .toSorted((a, b) => b.score - a.score)
  const chosen: (typeof best)[number][] = []
  const isLikeChosen = ({ index }: LookedAt) =>
    chosen.some((other) => difference(thumbOf(decoded, index), thumbOf(decoded, other.index)) < MIN_DIFFERENCE)
  const worst = MIN_SHARE * (best[0]?.score ?? 0)
  for (const look of best) if (look.score >= worst && !isLikeChosen(look)) chosen.push(look)
  const others = best.filter((look) => !chosen.includes(look))
  return [...chosen, ...others].slice(0, MAX_CHOSEN).map(({ index }) => decoded.numbers[index] ?? 0)
}

/** Mean difference of the pixels of tiny pictures, 0 to 255, from which on they show different things. */
const MIN_DIFFERENCE = 20

/** More contrast than this makes no better poster: something dark near the lens would outweigh that it is blurred. */
const ENOUGH_CONTRAST = 60

/** How good a frame is at least, as a share of the best, to be offered for showing something else. */
const MIN_SHARE = 1 / 3

function score({ sharpness, contrast, brightness }: FrameLook): number {
  return sharpness * Math.min(contrast, ENOUGH_CONTRAST) * lighting(brightness)
}

/** 1 in the middle, falling to 0 where a picture is nearly black or nearly white. */
function lighting(brightness: number): number {
  return Math.max(0, Math.min(1, (brightness - 16) / 44, (250 - brightness) / 50))
}

/** Where the luma varies less than this there is nothing to see. */
const MIN_CONTRAST = 4

function hasPicture(look: FrameLook): boolean {
  return look.contrast >= MIN_CONTRAST && score(look) > 0
}

/**
 * The look of a frame from its luma, a byte for each pixel. Its sharpness is the mean of how far each pixel is from the mean of its four
 * neighbors. Pure.
 */
export function lookAt(luma: Uint8Array, widthPx: number): FrameLook {
  const heightPx = luma.length / widthPx
  let [sum, squares, edges] = [0, 0, 0]
  for (const level of luma) {
    sum += level
    squares += level * level
  }
  for (let y = 1; y < heightPx - 1; y++)
    for (let at = y * widthPx + 1, end = at + widthPx - 2; at < end; at++) {
      const around = (luma[at - 1] ?? 0) + (luma[at + 1] ?? 0) + (luma[at - widthPx] ?? 0) + (luma[at + widthPx] ?? 0)
      edges += Math.abs(4 * (luma[at] ?? 0) - around)
    }
  const brightness = sum / luma.length
  const contrast = Math.sqrt(Math.max(0, squares / luma.length - brightness ** 2))
  return { sharpness: edges / luma.length, contrast, brightness }
}

/** Of each decoded frame, whether all frames within a second of it are decoded and none of them is at a cut or in a fade. */
function findSteady(decoded: DecodedFrames): boolean[] {
  const { hz, numbers } = decoded
  const reach = Math.ceil(STEADY_S * hz)
  const breaks = numbers.flatMap((_, index) => (isAfterCut(decoded, index) || isInFade(decoded, index) ? [index] : []))
  const isSteady = numbers.map(() => true)
  for (const index of [...breaks, numbers.length])
    for (let near = Math.max(0, index - reach); near <= Math.min(numbers.length - 1, index + reach); near++)
      isSteady[near] = false
  return isSteady
}

/** Mean difference between one frame and the next from which on it may be a cut, and how often it is that of the frames around it. */
const CUT = { difference: 12, times: 3 }
/** Frames before and after that are compared with it: a camera that moves fast differs by as much all the time. */
const CUT_NEIGHBORS = 3

/** Whether a frame is the first after a cut, after a gap, or of all. */
function isAfterCut(decoded: DecodedFrames, index: number): boolean {
  if (!isNext(decoded, index)) return true
  const change = changeAt(decoded, index)
  if (change < CUT.difference) return false
  const around = Array.from({ length: 2 * CUT_NEIGHBORS + 1 }, (_, n) => index - CUT_NEIGHBORS + n)
    .filter((other) => other !== index && isNext(decoded, other))
    .map((other) => changeAt(decoded, other))
  return around.every((other) => change >= CUT.times * other)
}

function isNext({ numbers }: DecodedFrames, index: number): boolean {
  return numbers[index] !== undefined && numbers[index] === (numbers[index - 1] ?? Number.NaN) + 1
}

function changeAt(decoded: DecodedFrames, index: number): number {
  return difference(thumbOf(decoded, index - 1), thumbOf(decoded, index))
}

/** Frames so far before and after show a fade, in seconds; how much they differ, and how near the frame is to halfway between them. */
const FADE = { reachS: 0.3, difference: 6, halfway: 0.15 }

/** Whether a frame is halfway between what is before and after it, as in a fade to black and where one scene becomes another. */
function isInFade(decoded: DecodedFrames, index: number): boolean {
  const { hz, numbers } = decoded
  const reach = Math.max(1, Math.round(FADE.reachS * hz))
  const [before, after] = [index - reach, index + reach]
  if ((numbers[after] ?? Number.NaN) - (numbers[before] ?? Number.NaN) !== 2 * reach) return false
  const [first, middle, last] = [before, index, after].map((at) => thumbOf(decoded, at))
  if (!first || !middle || !last) return false
  const change = difference(first, last)
  const halfway = first.map((level, pixel) => (level + (last[pixel] ?? 0)) / 2)
  return change >= FADE.difference && difference(middle, halfway) <= FADE.halfway * change
}

function thumbOf({ thumbs }: DecodedFrames, index: number): Uint8Array {
  return thumbs.subarray(index * THUMB_BYTES, (index + 1) * THUMB_BYTES)
}

function difference(a: Uint8Array, b: Uint8Array): number {
  return a.reduce((sum, level, pixel) => sum + Math.abs(level - (b[pixel] ?? 0)), 0) / a.length
}
