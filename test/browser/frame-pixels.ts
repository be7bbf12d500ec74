import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
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
        const likeness = (number: number) => measureSsim(file, frames.get(number) ?? '', frame)
        return { timeS: frame.mediaTimeS, source: await likeness(own), neighbour: await likeness(other) }
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

async function measureSsim(shown: string, source: string, { widthPx, heightPx }: ShownFrame): Promise<number> {
  const graph = `[0]format=gbrp[a];[1]scale=${widthPx}:${heightPx}:flags=bicubic,format=gbrp[b];[a][b]ssim`
  const { stderr } = await run('ffmpeg', ['-nostdin', '-i', shown, '-i', source, '-lavfi', graph, '-f', 'null', '-'])
  return Number(/SSIM .*All:([\d.]+)/.exec(stderr)?.[1])
}

export type Rgb = readonly [red: number, green: number, blue: number]
export type Spot = { pixels: number; leftPx: number; topPx: number; rightPx: number; bottomPx: number }

/** Where a screenshot shows a colour, give or take the blending at a letter's edge. */
export async function findColour(png: Buffer, colour: Rgb): Promise<Spot> {
  const [widthPx, heightPx] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const pixels = await decodePng(png)
  const spot = { pixels: 0, leftPx: widthPx, topPx: heightPx, rightPx: 0, bottomPx: 0 }
  for (let at = 0; at < widthPx * heightPx; at++) {
    if (!colour.every((value, channel) => Math.abs((pixels[at * 3 + channel] ?? 0) - value) < 48)) continue
    const [x, y] = [at % widthPx, Math.floor(at / widthPx)]
    spot.pixels++
    spot.leftPx = Math.min(spot.leftPx, x)
    spot.topPx = Math.min(spot.topPx, y)
    spot.rightPx = Math.max(spot.rightPx, x)
    spot.bottomPx = Math.max(spot.bottomPx, y)
  }
  return spot
}

async function decodePng(png: Buffer): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-picture-'))
  try {
    await writeFile(join(folder, 'picture.png'), png)
    await run('ffmpeg', [
      '-nostdin',
      '-v',
      'error',
      '-i',
      join(folder, 'picture.png'),
      '-f',
      'rawvideo',
      '-pix_fmt',
      'rgb24',
      join(folder, 'picture.rgb'),
    ])
    return await readFile(join(folder, 'picture.rgb'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
