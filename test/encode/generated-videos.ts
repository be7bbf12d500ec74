import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { samplesOf } from '../pipeline/audio-samples.ts'
import type { Chance } from '../seeded-random.ts'
import { COLORS } from './color-matrix.ts'
import { count, type EncodedVideo, ffmpeg, joinRendition } from './videos.ts'

// Videos drawn by chance over container, codecs, frame rate, first timestamp, jitter, channels, order of tracks and color tags. What is
// in them is known because it was drawn: each frame shows its number, flat colors, and every two seconds a flash with a beep.

export type GeneratedVideo = {
  is: string
  /** What the file's name ends in. */
  ends: string
  rate: string
  frames: number
  /** When the picture and the sound begin, in seconds of the drawing. */
  pictureS: number
  soundS: number
  beeps: readonly Beep[]
  args: readonly string[]
}

/** @property ears where it is audible */
export type Beep = { atS: number; ears: 'left' | 'right' | 'both'; hz: number }
type DrawnBeep = Beep & { channel: number }

const RATES = ['24000/1001', '24', '25', '30000/1001', '30', '50', '60000/1001', '60']
const ODD_RATES = [...RATES, '10', '12', '25/2', '15', '15000/1001', '20', '48']
type Tags = 'none' | 'any' | 'limited range' | 'RGB' | 'full range by default'
/** @property isSteady whether its encoder counts whole frames: no jitter, and no picture that is late by a part of one */
type VideoCodec = { encode: string[]; rates?: string[]; tags?: Tags; format?: string; isSteady?: boolean }
const GOP = ['-g', '50']
const X265 = 'crf=6:keyint=50:log-level=none'
const VIDEO = {
  h264: { encode: ['-c:v', 'libx264', '-preset', 'ultrafast', '-qp', '4', '-bf', '2', ...GOP], tags: 'any' },
  'h264 without B-frames': { encode: ['-c:v', 'libx264', '-preset', 'ultrafast', '-qp', '4', ...GOP], tags: 'any' },
  'h264 of RGB': { encode: ['-c:v', 'libx264rgb', '-preset', 'ultrafast', '-qp', '4', ...GOP], tags: 'RGB', format: 'gbrp' },
  hevc: { encode: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', X265], tags: 'any' },
  vp8: { encode: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '9M', '-qmax', '8', ...GOP] },
  vp9: {
    encode: ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-crf', '4', '-b:v', '0', ...GOP],
    tags: 'any',
  },
  av1: { encode: ['-c:v', 'libsvtav1', '-preset', '12', '-qp', '8', ...GOP] },
  mpeg4: { encode: ['-c:v', 'mpeg4', '-q:v', '2', ...GOP], isSteady: true },
  msmpeg4: { encode: ['-c:v', 'msmpeg4', '-q:v', '2', ...GOP] },
  mpeg2: {
    encode: ['-c:v', 'mpeg2video', '-q:v', '2', '-bf', '2', '-g', '15'],
    rates: RATES,
    tags: 'limited range',
    isSteady: true,
  },
  mjpeg: { encode: ['-c:v', 'mjpeg', '-q:v', '2'], tags: 'full range by default', format: 'yuvj420p' },
  prores: { encode: ['-c:v', 'prores_ks', '-profile:v', '1'], tags: 'limited range', format: 'yuv422p10le' },
  ffv1: { encode: ['-c:v', 'ffv1'], tags: 'limited range' },
  qtrle: { encode: ['-c:v', 'qtrle'], tags: 'RGB', format: 'rgb24' },
  png: { encode: ['-c:v', 'png'], tags: 'RGB', format: 'rgb24' },
  flv1: { encode: ['-c:v', 'flv', '-q:v', '2', ...GOP] },
  flashsv: { encode: ['-c:v', 'flashsv', ...GOP], tags: 'RGB', format: 'bgr24' },
  theora: { encode: ['-c:v', 'libtheora', '-q:v', '10', ...GOP] },
  wmv2: { encode: ['-c:v', 'wmv2', '-q:v', '2', ...GOP] },
} satisfies { [name: string]: VideoCodec }

/** Channels and where each is audible; nothing is expected of the one for low frequencies. */
const LAYOUTS = {
  mono: ['both'],
  stereo: ['left', 'right'],
  '3.0': ['left', 'right', 'both'],
  '5.1': ['left', 'right', 'both', undefined, 'left', 'right'],
  '7.1': ['left', 'right', 'both', undefined, 'left', 'right', 'left', 'right'],
} satisfies { [layout: string]: (Beep['ears'] | undefined)[] }
type Layout = keyof typeof LAYOUTS
type AudioCodec = { encode: string[]; layouts: Layout[]; hz: number[] }
const SIMPLE: Layout[] = ['mono', 'stereo']
const ALL: Layout[] = ['mono', 'stereo', '3.0', '5.1', '7.1']
const AUDIO = {
  aac: {
    encode: ['-c:a', 'aac', '-b:a', '384k'],
    layouts: ['mono', 'stereo', '3.0', '5.1'],
    hz: [22_050, 32_000, 44_100, 48_000],
  },
  mp3: { encode: ['-c:a', 'libmp3lame', '-b:a', '160k'], layouts: SIMPLE, hz: [22_050, 44_100, 48_000] },
  mp2: { encode: ['-c:a', 'mp2', '-b:a', '160k'], layouts: SIMPLE, hz: [44_100, 48_000] },
  ac3: { encode: ['-c:a', 'ac3', '-b:a', '448k'], layouts: ['mono', 'stereo', '5.1'], hz: [44_100, 48_000] },
  alac: { encode: ['-c:a', 'alac'], layouts: SIMPLE, hz: [44_100, 96_000] },
  flac: { encode: ['-c:a', 'flac', '-strict', '-2'], layouts: ALL, hz: [22_050, 44_100, 96_000] },
  opus: { encode: ['-c:a', 'libopus', '-b:a', '256k'], layouts: ['mono', 'stereo', '5.1', '7.1'], hz: [48_000] },
  vorbis: { encode: ['-c:a', 'libvorbis', '-q:a', '6'], layouts: ['mono', 'stereo', '5.1'], hz: [44_100, 48_000] },
  pcm: { encode: ['-c:a', 'pcm_s16le'], layouts: ALL, hz: [8000, 44_100, 48_000] },
  'pcm of 24 bits': { encode: ['-c:a', 'pcm_s24be'], layouts: ALL, hz: [44_100, 96_000] },
  'pcm at 48 kHz': { encode: ['-c:a', 'pcm_s16le'], layouts: SIMPLE, hz: [48_000] },
  wma: { encode: ['-c:a', 'wmav2', '-b:a', '192k'], layouts: SIMPLE, hz: [44_100, 48_000] },
} satisfies { [name: string]: AudioCodec }

/** A file name's ending, what may be in it, and whether its times are free: jitter, any first time, tracks that begin at different times. */
type Container = {
  is: string
  ends: string
  video: (keyof typeof VIDEO)[]
  audio: (keyof typeof AUDIO)[]
  args?: string[]
  rates?: string[]
  isFree?: boolean
}
const CONTAINERS: readonly Container[] = [
  {
    is: 'mp4',
    ends: 'mp4',
    video: ['h264', 'h264 without B-frames', 'hevc', 'av1', 'mpeg4', 'vp9'],
    audio: ['aac', 'mp3', 'ac3', 'alac', 'flac', 'opus'],
    isFree: true,
  },
  {
    is: 'fragmented mp4',
    ends: 'mp4',
    video: ['h264', 'hevc', 'av1'],
    audio: ['aac', 'opus', 'flac'],
    args: ['-movflags', '+frag_keyframe+delay_moov'],
  },
  {
    is: 'mov',
    ends: 'mov',
    video: ['h264', 'hevc', 'prores', 'mjpeg', 'qtrle', 'png'],
    audio: ['aac', 'alac', 'pcm', 'pcm of 24 bits'],
    isFree: true,
  },
  {
    is: 'mkv',
    ends: 'mkv',
    video: ['h264', 'h264 without B-frames', 'h264 of RGB', 'hevc', 'vp9', 'av1', 'mpeg4', 'mpeg2', 'ffv1', 'prores', 'mjpeg'],
    audio: ['aac', 'mp3', 'ac3', 'flac', 'opus', 'vorbis', 'pcm'],
    isFree: true,
  },
  {
    is: 'mkv from a stream',
    ends: 'mkv',
    video: ['h264', 'h264 without B-frames', 'vp9'],
    audio: ['aac', 'opus', 'flac'],
    args: ['-f', 'matroska', '-live', '1'],
    isFree: true,
  },
  { is: 'webm', ends: 'webm', video: ['vp8', 'vp9', 'av1'], audio: ['opus', 'vorbis'], isFree: true },
  // Not with MP3: an AVI cannot state for how long its encoder waits, up to 50 ms.
  { is: 'avi', ends: 'avi', video: ['mpeg4', 'h264 without B-frames', 'mjpeg', 'msmpeg4'], audio: ['pcm', 'ac3'] },
  { is: 'flv', ends: 'flv', video: ['h264', 'h264 without B-frames', 'flv1', 'flashsv'], audio: ['aac', 'mp3'], isFree: true },
  {
    is: 'mpegts',
    ends: 'ts',
    video: ['h264', 'h264 without B-frames', 'hevc', 'mpeg2'],
    audio: ['aac', 'mp2', 'ac3', 'mp3'],
    isFree: true,
  },
  { is: 'mpeg-ps', ends: 'vob', video: ['mpeg2'], audio: ['mp2', 'ac3'], args: ['-f', 'vob'] },
  { is: 'ogg', ends: 'ogv', video: ['theora'], audio: ['vorbis', 'flac', 'opus'] },
  { is: 'wmv', ends: 'wmv', video: ['wmv2', 'msmpeg4'], audio: ['wma'] },
  { is: 'mxf', ends: 'mxf', video: ['mpeg2'], audio: ['pcm at 48 kHz'], rates: ['25', '30000/1001', '24000/1001'] },
]

/** Their first timestamps begin anywhere: seconds that are added to all times. */
const STARTS = [0, 0, 0.021, 0.5, 10, 3600]
const STARTS_OF: { [container: string]: number[] } = { mkv: [...STARTS, -1], mpegts: [...STARTS, 95_439.5] }
const LENGTH_S = 5
const HD_LENGTH_S = 1
const FIRST_BEEP_S = 0.5
const PERIOD_S = 2
const SIGN_S = 0.1
const MAX_JITTER_FRAMES = 0.2

/** Draws the recipe of a video. @param index each container has its turn */
export function drawVideo(chance: Chance, index: number): GeneratedVideo {
  const pick = <T>(from: readonly T[]): T => elementAt(from, Math.floor(chance.next() * from.length))
  const container = elementAt(CONTAINERS, index % CONTAINERS.length)
  const { is, ends, isFree = false } = container
  const [videoName, audioName] = [pick(container.video), pick(container.audio)]
  const [video, audio]: [VideoCodec, AudioCodec] = [VIDEO[videoName], AUDIO[audioName]]
  const rate = pick(container.rates ?? video.rates ?? ODD_RATES)
  const size = chance.next() < 0.2 ? HD : SD
  const lengthS = size === HD ? HD_LENGTH_S : LENGTH_S
  const layout = pick(audio.layouts)
  const sampleHz = pick(is === 'flv' && audioName === 'mp3' ? [22_050, 44_100] : audio.hz)
  const color = pick(colorsFor(video.tags ?? 'none', size))
  const startS = isFree ? pick(STARTS_OF[is] ?? STARTS) : 0
  // Frames of a Matroska before zero have no times of their own.
  const hasJitter = isFree && !video.isSteady && startS >= 0
  const jitterS = hasJitter ? Math.min(pick([0, 0, 0.001, 0.004, 0.008]), MAX_JITTER_FRAMES / hzOf(rate)) : 0
  const lateS = isFree ? pick([0, 0, chance.between(0, 0.1), chance.between(0.1, lengthS / 4)]) : 0
  const [latePictureS, soundS] = chance.next() < 0.5 ? [0, lateS] : [lateS, 0]
  const countsFrames = video.isSteady || !isFree
  const lateFrames = Math.round(latePictureS * hzOf(rate))
  const pictureS = countsFrames ? lateFrames / hzOf(rate) : latePictureS
  const isSoundFirst = chance.next() < 0.5 && is !== 'mxf'
  const endS = pictureS + lengthS
  const beeps = beepsBetween(soundS, endS, layout, Math.floor(chance.next() * 8))
  const filters = [
    countsFrames ? `setpts=PTS+${lateFrames}` : `settb=1/90000,setpts='PTS+(${pictureS}+${2 * jitterS}*random(1))/TB'`,
    ...['format=gbrp', `scale=${size.join(':')}:flags=neighbor`, 'format=gbrp', color.filters(video.format ?? 'yuv420p')],
  ]
  return {
    ends,
    is: [
      ...[is, `${videoName} ${rate} fps, ${size.join('×')}`, `${audioName} ${layout} ${sampleHz} Hz`, `colors ${color.is}`],
      ...(startS === 0 ? [] : [`from ${startS} s`]),
      ...(soundS > 0 ? [`sound ${soundS.toFixed(3)} s late`] : []),
      ...(pictureS > 0 ? [`picture ${pictureS.toFixed(3)} s late`] : []),
      ...(jitterS === 0 ? [] : [`jitter ${(jitterS * 1000).toFixed(1)} ms`]),
      ...(isSoundFirst ? ['sound first'] : []),
    ].join(', '),
    rate,
    frames: Math.round(lengthS * hzOf(rate)),
    pictureS,
    soundS,
    beeps,
    args: [
      ...CELLS,
      ...['-framerate', rate, '-i', 'pipe:0'],
      ...['-itsoffset', soundS.toFixed(3), '-f', 'lavfi', '-i', drawSound(beeps, layout, [soundS, endS], sampleHz)],
      ...['-map', isSoundFirst ? '1' : '0', '-map', isSoundFirst ? '0' : '1', '-vf', filters.join(','), ...video.encode],
      ...(countsFrames ? [] : ['-enc_time_base:v', '1:90000']),
      ...['-fps_mode', 'passthrough', ...audio.encode, ...(container.args ?? [])],
      ...(videoName === 'hevc' && ends !== 'ts' && ends !== 'mkv' ? ['-tag:v', 'hvc1'] : []),
      ...(startS === 0 ? [] : ['-output_ts_offset', String(startS)]),
      ...(startS < 0 ? ['-avoid_negative_ts', 'disabled'] : []),
    ],
  }
}

function elementAt<T>(all: readonly T[], index: number): T {
  const [element] = all.slice(index, index + 1)
  if (element === undefined) throw new Error(`there is no element ${index}`)
  return element
}

const SD = [512, 288] as const
const HD = [1280, 720] as const

type DrawnColor = { is: string; filters: (format: string) => string }

/** The ways in which a codec can have the same colors. Without tags they mean what players assume of them by their size. */
function colorsFor(tags: Tags, size: typeof SD | typeof HD): DrawnColor[] {
  const toYuv =
    (matrix: string, range: string, [colorspace, primaries, transfer]: string[], tagged = range) =>
    (format: string) =>
      `scale=flags=${EXACT}:out_color_matrix=${matrix}:out_range=${range},format=${format},setparams=colorspace=${colorspace}:color_primaries=${primaries}:color_trc=${transfer}:range=${tagged}`
  const unknown = ['unknown', 'unknown', 'unknown']
  const none = { is: 'without tags', filters: toYuv(size === HD ? 'bt709' : 'bt601', 'tv', unknown, 'unknown') }
  const limited = [
    { is: 'of BT.709', filters: toYuv('bt709', 'tv', ['bt709', 'bt709', 'bt709']) },
    { is: 'of SMPTE 170M', filters: toYuv('bt601', 'tv', ['smpte170m', 'smpte170m', 'smpte170m']) },
    { is: 'of PAL', filters: toYuv('bt601', 'tv', ['bt470bg', 'bt470bg', 'smpte170m']) },
  ]
  const full = { is: 'of full range', filters: toYuv('bt709', 'pc', ['bt709', 'bt709', 'bt709']) }
  const ways: { [tags in Tags]: DrawnColor[] } = {
    none: [none],
    any: [none, ...limited, full],
    'limited range': [none, ...limited],
    RGB: [{ is: 'of RGB', filters: (format) => `format=${format}` }],
    'full range by default': [{ is: 'of JPEG', filters: toYuv('bt601', 'pc', unknown, 'pc') }],
  }
  return ways[tags]
}

/** The beeps between two times of the drawing, each whole: each in the next channel, with a tone of its own. */
function beepsBetween(fromS: number, toS: number, layout: Layout, firstChannel: number): DrawnBeep[] {
  const audible = audibleChannels(layout)
  return count(Math.ceil(toS / PERIOD_S)).flatMap((index) => {
    const atS = FIRST_BEEP_S + index * PERIOD_S
    const channel = audible[(index + firstChannel) % audible.length] ?? 0
    const ears = LAYOUTS[layout][channel] ?? 'both'
    return atS < fromS || atS + SIGN_S > toS ? [] : [{ atS, channel, ears, hz: 500 + 200 * channel }]
  })
}

function audibleChannels(layout: Layout): number[] {
  return LAYOUTS[layout].flatMap((ears, channel) => (ears ? [channel] : []))
}

/** ffmpeg's source of the beeps, of a sound that begins and ends at times of the drawing. */
function drawSound(beeps: readonly DrawnBeep[], layout: Layout, [fromS, toS]: [number, number], sampleHz: number): string {
  const channels = LAYOUTS[layout].map((_, channel) => {
    const own = beeps.filter((beep) => beep.channel === channel)
    const waves = own.map(({ atS, hz }) => {
      const time = `(t-${(atS - fromS).toFixed(3)})`
      return `0.5*sin(2*PI*${hz}*${time})*between(${time},0,${SIGN_S})`
    })
    return waves.join('+') || '0'
  })
  return `aevalsrc='${channels.join('|')}':c=${layout}:s=${sampleHz}:d=${(toS - fromS).toFixed(3)}`
}

/** Without it, ffmpeg's scaler is off by up to five levels. */
const EXACT = 'accurate_rnd+full_chroma_int+full_chroma_inp'
const BITS = 12
// Cells: in the first row twelve bars of two columns; below five colors and the flash, of four columns each.
const [COLUMNS, ROWS, PATCH] = [24, 6, 4] as const
const CELLS = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', '-s', `${COLUMNS}x${ROWS}`]
const [BARS_ROW, PATCHES_ROW] = [0, 3] as const
const [WHITE, BLACK] = [
  [255, 255, 255],
  [0, 0, 0],
] as const

export async function makeGeneratedVideo(video: GeneratedVideo, file: string): Promise<void> {
  const child = spawn('ffmpeg', ['-hide_banner', '-v', 'error', '-y', ...video.args, file], { stdio: ['pipe', 'ignore', 'pipe'] })
  const errors: Buffer[] = []
  child.stderr.on('data', (bytes) => errors.push(bytes))
  const exited = once(child, 'close')
  await pipeline(Readable.from(drawFrames(video)), child.stdin).catch(() => undefined)
  const [code] = await exited
  if (code !== 0) throw new Error(`ffmpeg could not make ${video.is}: ${Buffer.concat(errors)}`)
}

function* drawFrames({ frames, rate, pictureS }: GeneratedVideo): Generator<Buffer> {
  for (const frame of count(frames)) {
    const bars = count(COLUMNS).flatMap((column) => ((frame >> Math.floor((column * BITS) / COLUMNS)) & 1 ? WHITE : BLACK))
    const flash = isFlash(pictureS + frame / hzOf(rate)) ? WHITE : BLACK
    const patches = [...COLORS, flash].flatMap((color) => count(PATCH).flatMap(() => color))
    yield Buffer.from([...bars, ...count(ROWS - 1).flatMap(() => patches)])
  }
}

/** Whether a frame at a time of the drawing is one with a flash: its beep is audible while it is shown. */
export function isFlash(timeS: number): boolean {
  return timeS >= FIRST_BEEP_S && (timeS - FIRST_BEEP_S) % PERIOD_S < SIGN_S
}

export function hzOf(rate: string): number {
  const [num = 0, den = 1] = rate.split('/').map(Number)
  return num / den
}

/** What a frame of an encoded video shows. */
export type SeenFrame = { number: number; colors: number[][]; isFlash: boolean }

/** The frames of a rendition in order of presentation, by the tags of its colors. */
export async function readFrames(file: string): Promise<SeenFrame[]> {
  const convert = `scale=${COLUMNS}:${ROWS}:flags=area+${EXACT}:in_color_matrix=auto,format=rgb24`
  const pixels = await ffmpeg('-i', file, '-map', '0:v', '-vf', convert, '-fps_mode', 'passthrough', '-f', 'rawvideo', '-')
  const frameBytes = COLUMNS * ROWS * 3
  return count(pixels.length / frameBytes).map((frame) => {
    const cell = (column: number, row: number) => {
      const at = frame * frameBytes + (row * COLUMNS + column) * 3
      return [...pixels.subarray(at, at + 3)]
    }
    const isBright = ([, green = 0]: number[]) => green > 125
    const bits = count(BITS).map((bit) => (isBright(cell((bit * COLUMNS) / BITS, BARS_ROW)) ? 2 ** bit : 0))
    const patches = count(COLUMNS / PATCH).map((patch) => cell(patch * PATCH + 1, PATCHES_ROW))
    return {
      number: bits.reduce((sum, bit) => sum + bit, 0),
      colors: patches.slice(0, COLORS.length),
      isFlash: isBright(patches.at(-1) ?? []),
    }
  })
}

/** The beeps of an encoded video. */
export async function readBeeps(folder: string, video: EncodedVideo, renditionId: number): Promise<Beep[]> {
  const hz = 48_000
  const file = await joinRendition(folder, video, renditionId)
  const samples = samplesOf(await ffmpeg('-i', file, '-map', '0:a', '-ar', String(hz), '-ac', '2', '-f', 's16le', '-'))
  const left = samples.filter((_, index) => index % 2 === 0)
  const right = samples.filter((_, index) => index % 2 === 1)
  const beeps: Beep[] = []
  for (let at = 0; at < left.length; at++) {
    if (Math.max(Math.abs(left[at] ?? 0), Math.abs(right[at] ?? 0)) < 0.1 * 32_768) continue
    const middle = (ear: Int16Array) => ear.subarray(at + 0.02 * hz, at + 0.08 * hz)
    const [leftRms, rightRms] = [rms(middle(left)), rms(middle(right))]
    const ears = leftRms > 3 * rightRms ? 'left' : rightRms > 3 * leftRms ? 'right' : 'both'
    beeps.push({ atS: at / hz, ears, hz: Math.round(risesIn(middle(leftRms > rightRms ? left : right)) / 0.06 / 20) * 20 })
    at += hz // far past its end
  }
  return beeps
}

function rms(samples: Int16Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length)
}

/** How often the samples rise through zero. */
function risesIn(samples: Int16Array): number {
  return samples.filter((sample, index) => sample >= 0 && (samples[index - 1] ?? 0) < 0).length
}
