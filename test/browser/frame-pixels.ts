import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inflateSync } from 'node:zlib'
import type { ShownFrame } from './in-page.ts'

const run = promisify(execFile)

/** How like the source a shown frame is (SSIM of all three colours, 1: equal), and how like the source's frame of one second away. */
export type Likeness = { timeS: number; source: number; neighbour: number }

/** Compares each shown frame with the source's own frame of that time, and with one of another time so that a blind measure shows. */
export async function compareWithSource(shown: readonly ShownFrame[], source: string): Promise<Likeness[]> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-picture-'))
  try {
    const frameTimesS = await readFrameTimes(source)
    const endS = frameTimesS.at(-1) ?? 0
    const wanted = shown.map(({ mediaTimeS }) => ({
      own: frameAt(frameTimesS, mediaTimeS),
      other: frameAt(frameTimesS, mediaTimeS + 1 <= endS ? mediaTimeS + 1 : mediaTimeS - 1),
    }))
    const frames = await extractFrames(
      source,
      wanted.flatMap(({ own, other }) => [own, other]),
      folder,
    )
    return await Promise.all(
      shown.map(async (frame, at): Promise<Likeness> => {
        const { own, other } = wanted[at] ?? { own: 0, other: 0 }
        const file = join(folder, `shown-${at}.png`)
        await writeFile(file, Buffer.from(frame.pngBase64, 'base64'))
        const sources = [own, other].map((number) => frames.get(number) ?? '')
        const [source, neighbour] = await measureSsim(file, sources, frame)
        return { timeS: frame.mediaTimeS, source, neighbour }
      }),
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** When each frame of a video is shown, the first at 0. */
async function readFrameTimes(video: string): Promise<number[]> {
  const entries = ['-select_streams', 'v:0', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0']
  const { stdout } = await run('ffprobe', ['-v', 'error', ...entries, video])
  const timesS = stdout.split('\n').flatMap((line) => (line === '' ? [] : [Number.parseFloat(line)]))
  const firstS = Math.min(...timesS)
  return timesS.map((timeS) => timeS - firstS).sort((a, b) => a - b)
}

function frameAt(frameTimesS: readonly number[], timeS: number): number {
  const apartS = frameTimesS.map((frameS) => Math.abs(frameS - timeS))
  return apartS.indexOf(Math.min(...apartS))
}

/** Decodes a video once from its start, so that no seek can go wrong, and keeps the frames of these numbers. */
async function extractFrames(video: string, numbers: readonly number[], folder: string): Promise<Map<number, string>> {
  const wanted = [...new Set(numbers)].sort((a, b) => a - b)
  const select = wanted.map((number) => `eq(n,${number})`).join('+')
  const files = join(folder, 'source-%d.png')
  const output = ['-vf', `select='${select}'`, '-fps_mode', 'passthrough', '-frames:v', String(wanted.length), files]
  await run('ffmpeg', ['-nostdin', '-v', 'error', '-i', video, '-map', '0:v:0', ...output])
  return new Map(wanted.map((number, at) => [number, join(folder, `source-${at + 1}.png`)]))
}

/** Compares a shown frame with two of the source in one run: ffmpeg takes longer to start than to compare. */
async function measureSsim(
  shown: string,
  [own = '', other = '']: string[],
  size: ShownFrame,
): Promise<[own: number, other: number]> {
  const prepare = `scale=${size.widthPx}:${size.heightPx}:flags=bicubic,format=gbrp`
  const graph = `[0]format=gbrp,split[a][c];[1]${prepare}[b];[2]${prepare}[d];[a][b]ssim@own;[c][d]ssim@other`
  const inputs = [shown, own, other].flatMap((file) => ['-i', file])
  const { stderr } = await run('ffmpeg', ['-nostdin', ...inputs, '-filter_complex', graph, '-f', 'null', '-'])
  const read = (name: string) => Number(new RegExp(`ssim@${name} .*SSIM .*All:([\\d.]+)`).exec(stderr)?.[1])
  return [read('own'), read('other')]
}

export type Rgb = readonly [red: number, green: number, blue: number]
export type Spot = { pixels: number; leftPx: number; topPx: number; rightPx: number; bottomPx: number }

/** Where a screenshot shows a colour, give or take the blending at a letter's edge. */
export function findColour(png: Buffer, colour: Rgb): Spot {
  const { widthPx, heightPx, channels, pixels } = decodePng(png)
  const spot = { pixels: 0, leftPx: widthPx, topPx: heightPx, rightPx: 0, bottomPx: 0 }
  for (let at = 0; at < widthPx * heightPx; at++) {
    if (!colour.every((value, channel) => Math.abs((pixels[at * channels + channel] ?? 0) - value) < 48)) continue
    const [x, y] = [at % widthPx, Math.floor(at / widthPx)]
    spot.pixels++
    spot.leftPx = Math.min(spot.leftPx, x)
    spot.topPx = Math.min(spot.topPx, y)
    spot.rightPx = Math.max(spot.rightPx, x)
    spot.bottomPx = Math.max(spot.bottomPx, y)
  }
  return spot
}

/** The color of one pixel of a screenshot or frame. @param at as parts of its width and height */
export function colorAt(png: Buffer, at: readonly [x: number, y: number]): Rgb {
  const { widthPx, heightPx, channels, pixels } = decodePng(png)
  const start = channels * (Math.floor(at[1] * heightPx) * widthPx + Math.floor(at[0] * widthPx))
  return [pixels[start] ?? 0, pixels[start + 1] ?? 0, pixels[start + 2] ?? 0]
}

type Pixels = { widthPx: number; heightPx: number /** 3, or 4 with alpha. */; channels: number; pixels: Uint8Array }

/** Decodes what browsers write: 8 bits a channel, RGB or RGBA, not interlaced. A process of ffmpeg for each screenshot takes ten times as long. */
function decodePng(png: Buffer): Pixels {
  const [widthPx, heightPx, depth, colourType] = [png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25]]
  const channels = colourType === 2 ? 3 : 4
  if (depth !== 8 || (colourType !== 2 && colourType !== 6) || png[28] !== 0)
    throw new Error(`a PNG of depth ${depth} and colour type ${colourType} is not expected of a browser`)
  const parts: Buffer[] = []
  for (let at = 8; at < png.length; ) {
    const sizeBytes = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + sizeBytes))
    at += sizeBytes + 12
  }
  const filtered = inflateSync(Buffer.concat(parts))
  const rowBytes = widthPx * channels
  const pixels = new Uint8Array(rowBytes * heightPx)
  for (let y = 0; y < heightPx; y++) {
    const from = y * (rowBytes + 1)
    const filter = filtered[from] ?? 0
    for (let x = 0; x < rowBytes; x++) {
      const at = y * rowBytes + x
      const left = x < channels ? 0 : (pixels[at - channels] ?? 0)
      const up = y === 0 ? 0 : (pixels[at - rowBytes] ?? 0)
      const upLeft = x < channels || y === 0 ? 0 : (pixels[at - rowBytes - channels] ?? 0)
      pixels[at] = (filtered[from + 1 + x] ?? 0) + predict(filter, left, up, upLeft)
    }
  }
  return { widthPx, heightPx, channels, pixels }
}

/** The filters of PNG. @see https://www.w3.org/TR/png-3/#9Filter-types */
function predict(filter: number, left: number, up: number, upLeft: number): number {
  if (filter === 0) return 0
  if (filter === 1) return left
  if (filter === 2) return up
  if (filter === 3) return (left + up) >> 1
  const estimate = left + up - upLeft
  const [toLeft, toUp, toUpLeft] = [Math.abs(estimate - left), Math.abs(estimate - up), Math.abs(estimate - upLeft)]
  if (toLeft <= toUp && toLeft <= toUpLeft) return left
  return toUp <= toUpLeft ? up : upLeft
}
