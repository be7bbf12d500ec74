import { execFile, spawn } from 'node:child_process'
import { createCipheriv, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { encodeAudioChunk } from '../../src/encode/audio-chunk.ts'
import { type ChunkSink, encodeVideoChunk } from '../../src/encode/chunk.ts'
import { planChunks, sequentialChunk } from '../../src/encode/chunk-plan.ts'
import { planVideo } from '../../src/encode/grid.ts'
import { InexactSeek } from '../../src/encode/media-failure.ts'
import { audioSegmentCount, type Plan, videoSegmentCount } from '../../src/encode/plan.ts'
import { probeSource } from '../../src/encode/probe.ts'
import { readFragment } from '../../src/mp4/fragments.ts'
import { openSandbox, type Sandbox } from '../../src/sandbox/bubblewrap.ts'
import type { SealedSource } from '../../src/sandbox/media-run.ts'
import { samplesOf } from '../pipeline/audio-samples.ts'
import { keepVideo } from '../videos.ts'
import { sealedSource } from './sealed-source.ts'

const run = promisify(execFile)

/** A folder of the test's own, gone after it. */
export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'reelgate-encode-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

let defaultSandbox: Promise<Sandbox> | undefined

/** One for all tests of a process that do not change it: opening it starts ffmpeg four times. */
export function openDefaultSandbox(): Promise<Sandbox> {
  defaultSandbox ??= openSandbox({ sandbox: 'weak' })
  return defaultSandbox
}

/** ffmpeg outside the sandbox, to make videos and to look at what came out. */
export async function ffmpeg(...args: string[]): Promise<Buffer> {
  const options = { encoding: 'buffer', maxBuffer: 2 ** 30 } as const
  const { stdout } = await run('ffmpeg', ['-nostdin', '-hide_banner', '-v', 'error', '-y', ...args], options)
  return stdout
}

/** Stores a file as a source is: sealed with a key of its own. @param folder by default one that is gone after the test */
export async function seal(file: string, folder?: string): Promise<SealedSource> {
  const key = randomBytes(16)
  const iv = randomBytes(16)
  const cipher = createCipheriv('aes-128-cbc', key, iv)
  const sealed = path.join(folder ?? (await newFolder()), `source-${randomBytes(4).toString('hex')}`)
  const clear = await readFile(file)
  await writeFile(sealed, Buffer.concat([cipher.update(clear), cipher.final()]))
  return sealedSource(sealed, { key, iv }, clear.length)
}

const BITS = 12

export type NumberedVideo = {
  frames: number
  rate: string
  widthPx: number
  heightPx: number
  encode: string[]
  inputs?: string[]
  /** Sample aspect ratio for which the lower half of the picture shows a square; without it the bars go down to the bottom. */
  squareAt?: number
}

/** Raise it when the drawing of numbered videos changes: those of an earlier one are not used any more. */
export const DRAWING = 1

/** Makes a video in which every frame shows its own number, as twelve black or white bars; later runs get a copy of it. */
export async function makeNumberedVideo(file: string, video: NumberedVideo): Promise<string> {
  const recipe = JSON.stringify([DRAWING, video])
  await copyFile(await keepVideo(recipe, path.extname(file), (kept) => drawNumberedVideo(kept, video)), file)
  return file
}

export async function drawNumberedVideo(file: string, video: NumberedVideo): Promise<string> {
  const args = [
    '-f',
    'rawvideo',
    '-pix_fmt',
    'gray',
    '-s',
    `${video.widthPx}x${video.heightPx}`,
    '-r',
    video.rate,
    '-i',
    'pipe:0',
  ]
  const child = spawn('ffmpeg', ['-hide_banner', '-v', 'error', '-y', ...args, ...(video.inputs ?? []), ...video.encode, file], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  await pipeline(Readable.from(numberedFrames(video)), child.stdin)
  const [code] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode]
  if (code !== 0) throw new Error(`ffmpeg could not make ${file}: ${code}`)
  return file
}

function* numberedFrames({ frames, widthPx, heightPx, squareAt }: NumberedVideo) {
  const barsPx = squareAt === undefined ? heightPx : Math.ceil(heightPx / 2)
  const below = squareAt === undefined ? Buffer.alloc(0) : squareBelow(widthPx, heightPx - barsPx, squareAt)
  for (let frame = 0; frame < frames; frame++) {
    const row = Buffer.alloc(widthPx)
    for (let x = 0; x < widthPx; x++) row[x] = (frame >> Math.floor((x * BITS) / widthPx)) & 1 ? 235 : 16
    yield Buffer.concat([...Array.from({ length: barsPx }, () => row), below])
  }
}

/** A white square on dark ground, as high as half of what it stands on and as wide as that is once it is shown. */
function squareBelow(widthPx: number, heightPx: number, sampleAspectRatio: number): Buffer {
  const pixels = Buffer.alloc(widthPx * heightPx, 40)
  const [halfWidth, halfHeight] = [heightPx / 4 / sampleAspectRatio, heightPx / 4]
  for (let y = 0; y < heightPx; y++)
    for (let x = 0; x < widthPx; x++)
      if (Math.abs(x + 0.5 - widthPx / 2) < halfWidth && Math.abs(y + 0.5 - heightPx / 2) < halfHeight)
        pixels[y * widthPx + x] = 235
  return pixels
}

/** Width, height and sample aspect ratio of a video, as a player finds them. */
export async function readShape(file: string): Promise<string> {
  const shown = ['-show_entries', 'stream=width,height,sample_aspect_ratio', '-of', 'csv=p=0:s=x']
  return (await run('ffprobe', ['-v', 'error', '-select_streams', 'v:0', ...shown, file])).stdout.trim()
}

/** How wide and how high the square of a video's first picture is, in pixels. */
export async function measureSquare(file: string, turn = 'null'): Promise<{ widthPx: number; heightPx: number }> {
  const graph = `${turn},crop=iw:floor(ih/2):0:ceil(ih/2):exact=1,format=gray`
  const sides = await Promise.all(
    // A strip through the middle of the square, along and across.
    [
      `${graph},crop=iw:2:0:ih/2-1:exact=1,scale=iw:1:flags=area`,
      `${graph},crop=2:ih:iw/2-1:0:exact=1,scale=1:ih:flags=area`,
    ].map(async (strip) => {
      const pixels = await ffmpeg('-i', file, '-map', '0:v', '-vf', strip, '-frames:v', '1', '-f', 'rawvideo', '-')
      // Blurred edges count for what they cover.
      return pixels.reduce((sum, level) => sum + Math.min(1, Math.max(0, (level - 40) / (235 - 40))), 0)
    }),
  )
  const [widthPx = 0, heightPx = 0] = sides
  return { widthPx, heightPx }
}

/** The numbers that the frames of a video show, in the order of presentation; `turn` lays it down first. */
export async function readNumbers(file: string, turn = 'null'): Promise<number[]> {
  const [widthPx, heightPx] = [BITS * 8, 2]
  const pixels = await ffmpeg(
    ...['-i', file, '-map', '0:v', '-vf', `${turn},scale=${widthPx}:${heightPx}:flags=area,format=gray`],
    ...['-fps_mode', 'passthrough', '-f', 'rawvideo', '-'],
  )
  const frameBytes = widthPx * heightPx
  return Array.from({ length: pixels.length / frameBytes }, (_, frame) =>
    Array.from({ length: BITS }, (_, bit) => ((pixels[frame * frameBytes + bit * 8 + 4] ?? 0) > 125 ? 2 ** bit : 0)).reduce(
      (a, b) => a + b,
      0,
    ),
  )
}

/** Overwrites the packets of these times. */
export async function losePackets(file: string, stream: 'v' | 'a', timesS: readonly number[]): Promise<void> {
  const shown = ['-show_entries', 'packet=pts_time,pos,size', '-of', 'csv=p=0']
  const { stdout } = await promisify(execFile)('ffprobe', ['-v', 'error', '-select_streams', stream, ...shown, file])
  const packets = stdout
    .trim()
    .split('\n')
    .map((line) => line.split(',').map(Number))
  await using handle = await open(file, 'r+')
  for (const atS of timesS) {
    const [, size = 0, position = 0] = packets.find(([time = 0]) => time >= atS) ?? []
    if (size <= 20) throw new Error(`no packet of more than 20 bytes at ${atS} s`)
    await handle.write(Buffer.alloc(size - 10), 0, size - 10, position + 10)
  }
}

export type EncodedVideo = { inits: Map<number, Buffer[]>; segments: Map<number, Map<number, Buffer>> }

export function newSink(): EncodedVideo & ChunkSink {
  const inits = new Map<number, Buffer[]>()
  const segments = new Map<number, Map<number, Buffer>>()
  return {
    inits,
    segments,
    onInit: (id, bytes) => {
      inits.set(id, [...(inits.get(id) ?? []), bytes])
    },
    onSegment: (id, segment, bytes) => {
      segments.set(id, new Map(segments.get(id)).set(segment, bytes))
    },
  }
}

/** The sandbox of a machine without bubblewrap whose owner has allowed that. */
export function withoutBubblewrap(sandbox: Sandbox): Sandbox {
  return { ...sandbox, folders: [], tools: { ...sandbox.tools, bwrap: undefined }, bubblewrap: false, weak: true }
}

export type OpenVideo = { sandbox: Sandbox; source: SealedSource; plan: Plan }

/** @param folder where it is sealed; by default one that is gone after the test */
export async function openVideo(file: string, folder?: string): Promise<OpenVideo> {
  const sandbox = await openDefaultSandbox()
  const source = await seal(file, folder)
  return { sandbox, source, plan: planVideo(await probeSource(sandbox, source)) }
}

/** Encodes a whole video in chunks of some segments; `decodesFromStart` with a huge number of them is one unbroken pass. */
export async function encodeVideo(
  video: { sandbox: Sandbox; source: SealedSource; plan: Plan; gainDb?: number },
  { chunkSegments, decodesFromStart = false }: { chunkSegments: number; decodesFromStart?: boolean },
): Promise<EncodedVideo> {
  const sink = newSink()
  const spans = (segments: number) =>
    Array.from({ length: Math.ceil(segments / chunkSegments) }, (_, i) => ({
      firstSegment: i * chunkSegments,
      segmentCount: chunkSegments,
      decodesFromStart,
    }))
  for (const chunk of video.plan.videoTrack ? spans(videoSegmentCount(video.plan.videoTrack)) : []) {
    await encodeVideoChunk({ ...video, chunk, threads: 'auto' }, sink)
  }
  for (const chunk of video.plan.audioTrack ? spans(audioSegmentCount(video.plan.audioTrack)) : [])
    await encodeAudioChunk({ ...video, chunk, findGain: async () => video.gainDb }, sink)
  return sink
}

/** A video as the service encodes it: chunk by chunk, and in sequence from where a seek was not clean. @param only one of its tracks */
export async function encodeAsServed(video: OpenVideo, only?: 'video' | 'audio'): Promise<EncodedVideo> {
  const served = newSink()
  let waiting = planChunks(video.plan).filter(({ kind }) => kind === (only ?? kind))
  for (let chunk = waiting.shift(); chunk; chunk = waiting.shift()) {
    const { kind } = chunk
    const own = newSink()
    try {
      if (kind === 'audio') await encodeAudioChunk({ ...video, chunk }, own)
      else await encodeVideoChunk({ ...video, chunk, threads: 1 }, own)
    } catch (error) {
      if (!(error instanceof InexactSeek)) throw error
      const rest = sequentialChunk([chunk, ...waiting.filter((other) => other.kind === kind)])
      waiting = [rest, ...waiting.filter((other) => other.kind !== kind)]
      continue
    }
    for (const [id, inits] of own.inits) for (const init of inits) served.onInit(id, init)
    for (const [id, segments] of own.segments) for (const [segment, bytes] of segments) served.onSegment(id, segment, bytes)
  }
  return served
}

/** A rendition as a player joins it: its init segment, then its segments in order. */
export async function joinRendition(folder: string, video: EncodedVideo, renditionId: number, only?: number): Promise<string> {
  const [init = Buffer.alloc(0)] = video.inits.get(renditionId) ?? []
  const segments = [...(video.segments.get(renditionId) ?? [])]
    .sort(([a], [b]) => a - b)
    .filter(([segment]) => only === undefined || segment === only)
  const file = path.join(folder, `${renditionId}-${only ?? 'all'}-${randomBytes(4).toString('hex')}.mp4`)
  await writeFile(file, Buffer.concat([init, ...segments.map(([, bytes]) => bytes)]))
  return file
}

/** When each sample is shown, in ticks, by the boxes alone and in order of presentation. */
export function presentationTimes(video: EncodedVideo, renditionId: number, sampleTicks: number): number[] {
  const segments = [...(video.segments.get(renditionId) ?? [])].sort(([a], [b]) => a - b)
  const times = segments.flatMap(([, bytes]) => {
    const { decodeTime, sampleCount, compositionOffsets } = readFragment(bytes)
    return Array.from({ length: sampleCount }, (_, i) => decodeTime + i * sampleTicks + (compositionOffsets?.[i] ?? 0))
  })
  return times.sort((a, b) => a - b)
}

export function count(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i)
}

/** When the beeps of an encoded video begin, in seconds. */
export async function beepsOf(folder: string, video: EncodedVideo, renditionId: number): Promise<number[]> {
  const file = await joinRendition(folder, video, renditionId)
  return findBeeps(samplesOf(await ffmpeg('-i', file, '-map', '0:a', '-ar', '48000', '-ac', '1', '-f', 's16le', '-')))
}

/** When the beeps of a sound at 48 kHz begin, in seconds. */
function findBeeps(samples: Int16Array): number[] {
  const loud = 0.1 * 32_768
  const starts: number[] = []
  for (let at = 0; at < samples.length; at++) {
    if (Math.abs(samples[at] ?? 0) < loud) continue
    starts.push(at / 48_000)
    at += 48_000 // far past its end
  }
  return starts
}
