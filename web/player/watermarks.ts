import type { WatermarkBody } from '../../src/http/play/wire.ts'

/**
 * A viewer's watermark in the picture. `rtext` moves to a random place every `intervalMs` and is absent for `skipMs` between two places;
 * `text` and `image` stay at `x`, `y`: a share of the picture (`12%`) or pixels (`40`).
 */
export type Watermark = WatermarkBody

const MAX_GLIDE_MS = 1500
/** How much of the picture's height a text may take, in lines of a legible size at least. */
const MAX_TEXT_SHARE = 0.4
const MIN_TEXT_HEIGHT_PX = 24
/** Two lines of captions lie below this part of the picture. */
const CAPTIONS_BEGIN = 0.75

type Size = { widthPx: number; heightPx: number }
export type Box = Size & { leftPx: number; topPx: number }

/** The part of a box that a picture fills when it is shown whole (`object-fit: contain`). No picture yet: the whole box. */
export function pictureBox(box: Size, picture: Size): Box {
  if (picture.widthPx <= 0 || picture.heightPx <= 0) return { leftPx: 0, topPx: 0, ...box }
  const scale = Math.min(box.widthPx / picture.widthPx, box.heightPx / picture.heightPx)
  const widthPx = picture.widthPx * scale
  const heightPx = picture.heightPx * scale
  return { leftPx: (box.widthPx - widthPx) / 2, topPx: (box.heightPx - heightPx) / 2, widthPx, heightPx }
}

/** Where a watermark is in its rhythm: `turn` counts the places of a moving one, `shown` is false in the pause between two. */
export function watermarkTurn(watermark: Watermark, elapsedMs: number): { turn: number; shown: boolean } {
  if (watermark.type !== 'rtext') return { turn: 0, shown: true }
  const { intervalMs, skipMs } = watermark
  const shownMs = Math.max(250, intervalMs) // a watermark that moves with every frame could not be read
  const turnMs = shownMs + Math.max(0, skipMs)
  return { turn: Math.floor(elapsedMs / turnMs), shown: elapsedMs % turnMs < shownMs }
}

/** How long a moving watermark takes to its next place; 0: it jumps. */
export function glideMs(watermark: Watermark, reducedMotion: boolean): number {
  if (watermark.type !== 'rtext' || watermark.skipMs > 0 || reducedMotion) return 0
  return Math.min(MAX_GLIDE_MS, watermark.intervalMs / 2)
}

/** The height that a text may take: in a small frame it is shown smaller, so that it leaves the picture and its controls visible. */
export function maxTextHeightPx(picture: Box, controlsTopPx: number | undefined): number {
  const aboveControlsPx = (controlsTopPx ?? Number.POSITIVE_INFINITY) - picture.topPx
  return Math.max(MIN_TEXT_HEIGHT_PX, Math.min(MAX_TEXT_SHARE * picture.heightPx, aboveControlsPx))
}

/**
 * The top left corner of a watermark, always so that the whole watermark is inside the picture, and above the controls while they show.
 * `chance`: two numbers of [0, 1) for a moving one, which also stays above the captions while there are any.
 */
export function watermarkCorner(
  watermark: Watermark,
  {
    picture,
    text,
    chance,
    captions = false,
    controlsTopPx = Number.POSITIVE_INFINITY,
  }: { picture: Box; text: Size; chance: readonly [number, number]; captions?: boolean; controlsTopPx?: number },
): { leftPx: number; topPx: number } {
  const roomX = Math.max(0, picture.widthPx - text.widthPx)
  const roomY = Math.max(0, picture.heightPx - text.heightPx)
  const moves = watermark.type === 'rtext'
  const aboveCaptionsY = Math.max(0, CAPTIONS_BEGIN * picture.heightPx - text.heightPx)
  const xPx = moves ? chance[0] * roomX : lengthPx(watermark.x, picture.widthPx)
  const yPx = moves ? chance[1] * (captions ? aboveCaptionsY : roomY) : lengthPx(watermark.y, picture.heightPx)
  const aboveControlsY = Math.max(0, controlsTopPx - picture.topPx - text.heightPx)
  return { leftPx: picture.leftPx + clamp(xPx, roomX), topPx: picture.topPx + clamp(yPx, Math.min(roomY, aboveControlsY)) }
}

function lengthPx(length: string | undefined, wholePx: number): number {
  const value = Number.parseFloat(length ?? '5%')
  if (!Number.isFinite(value)) return 0
  return length === undefined || length.trim().endsWith('%') ? (value / 100) * wholePx : value
}

function clamp(value: number, most: number): number {
  return Math.min(Math.max(0, value), most)
}
