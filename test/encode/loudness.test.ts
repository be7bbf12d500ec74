import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { gainFor, MAX_GAIN_DB, measureGain } from '../../src/encode/loudness.ts'
import { AAC_FRAMES_PER_SEGMENT } from '../../src/encode/plan.ts'
import { AAC_FRAME_SAMPLES } from '../../src/mp4/aac.ts'
import { footage } from '../footage.ts'
import { differenceRms, findLag, samplesOf } from '../pipeline/audio-samples.ts'
import { sampleOf } from '../sample.ts'
import { count, encodeVideo, ffmpeg, joinRendition, newFolder, type OpenVideo, openVideo } from './videos.ts'

type Speech = {
  is: string
  /** Of a voice at about −21 LUFS, with music under it. */
  filters: string
  lengthS?: number
  encode?: string[]
  file?: string
}

const AAC = ['-c:a', 'aac', '-b:a', '160k']
const louder = (db: number) => `volume=${db}dB`

const SPEECH: readonly Speech[] = [
  { is: 'at −40 LUFS', filters: louder(-21.6) },
  { is: 'at −30 LUFS', filters: louder(-11.6) },
  { is: 'at −16 LUFS', filters: `${louder(2.4)},alimiter=limit=0.9:level=0` },
  { is: 'at −6 LUFS', filters: `${louder(23)},alimiter=limit=0.95:level=0` },
  { is: 'that clips', filters: louder(24), file: 'a.wav', encode: ['-c:a', 'pcm_s16le'] },
  { is: 'in mono', filters: 'volume=-12dB,pan=mono|c0=0.5*c0+0.5*c1' },
  { is: 'in 5.1 channels', filters: 'volume=-12dB,pan=5.1|FC=0.5*c0+0.5*c1', file: 'a.mkv', encode: ['-c:a', 'flac'] },
  { is: 'in one ear', filters: 'volume=-12dB,pan=stereo|c0=c0' },
  { is: 'with long pauses', filters: `${louder(-9)},volume=volume='lt(mod(t,6),2)':eval=frame` },
  { is: 'in MPEG-TS', filters: louder(-9), file: 'a.ts' },
  { is: 'in AVI', filters: louder(-9), file: 'a.avi', encode: ['-c:a', 'libmp3lame', '-b:a', '192k'] },
]

test.for(sampleOf('loudness of speech', SPEECH, 1).map((speech) => [speech.is, speech] as const))(
  'L-01: speech %s plays at −16 LUFS ± 2, with a true peak of at most −1.5 dB',
  async ([, speech]) => {
    const { file, folder } = await makeSpeech(speech)
    const video = await openVideo(file)
    const played = await play(folder, { ...video, gainDb: await gainOf(video) })
    const after = await measure(played)
    expect(Math.abs(after.lufs + 16)).toBeLessThan(2)
    expect(after.truePeakDb).toBeLessThanOrEqual(-1.5)
  },
)

test('L-02: silence gets no gain, and what is nearly silent or short no enormous one', async () => {
  const folder = await newFolder()
  const gains = []
  for (const [name, sound] of Object.entries({
    silence: 'anullsrc=r=48000:d=2',
    nearly: 'anoisesrc=amplitude=0.0007:r=48000:d=40:seed=1',
    tenth: 'sine=800:r=48000:d=0.1',
    short: 'sine=800:r=48000:d=0.8',
  })) {
    const file = path.join(folder, `${name}.m4a`)
    await ffmpeg('-f', 'lavfi', '-i', sound, '-c:a', 'aac', file)
    const video = await openVideo(file)
    const gainDb = await gainOf(video)
    gains.push(gainDb)
    expect((await play(folder, { ...video, gainDb })).length).toBeGreaterThan(0)
  }
  expect(gains).toEqual([0, MAX_GAIN_DB, 0, expect.closeTo(2.5, 0)])
  expect([-Infinity, -70, -66, -41, -16, -6].map(gainFor)).toEqual([0, 0, 25, 25, 0, -10])
})

test('L-03: sound with a gain has no clicks where chunks meet, and is the source’s within 25 ms', async () => {
  const { file, folder } = await makeSpeech({ filters: louder(-20), lengthS: 18 })
  const video = { ...(await openVideo(file)), gainDb: 21 }
  const [source, apart, unbroken] = [
    file,
    await play(folder, video, { chunkSegments: 1 }),
    await play(folder, video, { chunkSegments: 99, decodesFromStart: true }),
  ]
  const [expected, audible, whole] = await Promise.all([source, apart, unbroken].map(readSamples))
  if (!expected || !audible || !whole) throw new Error('unreachable')
  const border = AAC_FRAMES_PER_SEGMENT * AAC_FRAME_SAMPLES
  const gained = expected.map((sample) => sample * 10 ** (video.gainDb / 20))
  const borders = count(Math.floor(whole.length / border) - 1).map((n) => (n + 1) * border)
  for (const at of borders) expect(Math.abs(findLag(audible, expected, at, 4096, 1200) ?? 0)).toBeLessThan(0.025 * 48_000)
  const errorAtBorders = (played: Int16Array) =>
    borders.reduce((sum, at) => sum + differenceRms(played, gained, at - 512, at + 512), 0) / borders.length
  expect(borders.length).toBeGreaterThan(2)
  expect(errorAtBorders(audible)).toBeLessThan(1.2 * errorAtBorders(whole))
})

async function makeSpeech({ filters, lengthS = 32, file = 'a.m4a', encode = AAC }: Omit<Speech, 'is'>) {
  const folder = await newFolder()
  const made = path.join(folder, file)
  await ffmpeg(
    '-ss',
    '20',
    '-t',
    `${lengthS}`,
    '-i',
    footage.wannaworktogether,
    '-vn',
    '-af',
    filters,
    '-ar',
    '48000',
    ...encode,
    made,
  )
  return { folder, file: made }
}

/** The file that a player joins. */
async function play(
  folder: string,
  video: OpenVideo & { gainDb: number },
  how: Parameters<typeof encodeVideo>[1] = { chunkSegments: 4 },
) {
  return joinRendition(folder, await encodeVideo(video, how), video.plan.audioTrack?.renditionId ?? 0)
}

async function readSamples(file: string): Promise<Int16Array> {
  return samplesOf(await ffmpeg('-i', file, '-map', '0:a', '-ar', '48000', '-ac', '1', '-f', 's16le', '-'))
}

function gainOf({ sandbox, source, plan }: OpenVideo): Promise<number> {
  if (!plan.audioTrack) throw new Error('the video is silent')
  return measureGain(sandbox, source, { plan, audioTrack: plan.audioTrack })
}

/** As ffmpeg's own meter has it. */
async function measure(file: string): Promise<{ lufs: number; truePeakDb: number }> {
  const args = [
    '-nostdin',
    '-hide_banner',
    '-i',
    file,
    '-map',
    '0:a',
    '-af',
    'ebur128=peak=true:framelog=verbose',
    '-f',
    'null',
    '-',
  ]
  const { stderr } = await promisify(execFile)('ffmpeg', args)
  const read = (name: string) => Number(stderr.match(new RegExp(`${name}: +(-?[\\d.]+|-inf)`))?.[1]?.replace('inf', 'Infinity'))
  return { lufs: read('I'), truePeakDb: read('Peak') }
}
