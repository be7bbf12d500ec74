import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { planChunks } from '../../src/encode/chunk-plan.ts'
import { extractPostersAt } from '../../src/encode/extract-posters.ts'
import { sampleOf } from '../sample.ts'
import {
  beepsOf,
  count,
  encodeVideo,
  ffmpeg,
  joinRendition,
  makeNumberedVideo,
  newFolder,
  openVideo,
  readNumbers,
} from './videos.ts'

// Sources whose clock jumps, or that were cut off: all that is in them is shown, once and in its place.

const SMALL = { widthPx: 160, heightPx: 90, rate: '25' }
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '25']
const AAC = ['-c:a', 'aac', '-b:a', '96k']
const CLIP_S = 2
const CLIP_FRAMES = 50
const SOUND_TOLERANCE_S = 0.025

/** A clip of numbered frames that beeps as it begins. */
async function makeClip(name: string, { frames = CLIP_FRAMES, encode = [...H264, ...AAC], offsetS = 0 } = {}): Promise<string> {
  const beep = `aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,${CLIP_S}),0.08)':s=48000:d=${frames / 25}`
  const file = path.join(await newFolder(), name)
  const inputs = ['-f', 'lavfi', '-i', beep]
  const args = [...encode, '-output_ts_offset', String(offsetS)]
  return makeNumberedVideo(file, { frames, ...SMALL, inputs, encode: args })
}

async function encode(file: string) {
  const video = await openVideo(file)
  const [{ decodesFromStart = false } = {}] = planChunks(video.plan)
  const encoded = await encodeVideo(video, { chunkSegments: 999, decodesFromStart })
  const folder = await newFolder()
  const { videoTrack, audioTrack } = video.plan
  const numbers = videoTrack ? await readNumbers(await joinRendition(folder, encoded, 1)) : []
  const beeps = audioTrack ? await beepsOf(folder, encoded, audioTrack.renditionId) : []
  return { ...video, numbers, beeps }
}

function withoutRepeats(numbers: readonly number[]): number[] {
  return numbers.filter((number, frame) => number !== numbers[frame - 1])
}

const MPEG2 = ['-c:v', 'mpeg2video', '-q:v', '3', '-c:a', 'mp2']
const JOINED = [
  { what: 'both of which begin at 0', name: 'a.ts', offsets: [0, 0] },
  { what: 'the second 22 s later', name: 'a.ts', offsets: [0, 22] },
  { what: 'the second 5 000 s earlier', name: 'a.ts', offsets: [5000, 0] },
  { what: 'back and forth', name: 'a.ts', offsets: [300, 0, 40, 20] },
  { what: 'of a DVD', name: 'a.vob', offsets: [0, 0], encode: MPEG2 },
]

test.each(sampleOf('joined clips', JOINED, 1))(
  'I-10: of joined clips ($name, $what) every frame is shown once, with its sound',
  async ({ name, offsets, encode: codecs }) => {
    const clips = []
    for (const offsetS of offsets) clips.push(await readFile(await makeClip(name, { offsetS, encode: codecs })))
    const file = path.join(await newFolder(), name)
    await writeFile(file, Buffer.concat(clips))
    const { numbers, beeps, plan } = await encode(file)
    // Where the sound of a clip is longer than its frames, the last of them is held.
    expect(withoutRepeats(numbers)).toEqual(offsets.flatMap(() => count(CLIP_FRAMES)))
    expect(plan.durationS).toBeLessThan(offsets.length * (CLIP_S + 0.15))
    const begins = numbers.flatMap((number, frame) => (number === 0 && numbers[frame - 1] !== 0 ? [frame / 25] : []))
    expect(beeps).toHaveLength(begins.length)
    for (const [clip, beginS] of begins.entries()) expect(Math.abs((beeps[clip] ?? 0) - beginS)).toBeLessThan(SOUND_TOLERANCE_S)
  },
)

test('I-10: a gap of less than 10 s in an MPEG-TS is a held frame and silence', async () => {
  const clips = [await makeClip('a.ts'), await makeClip('a.ts', { offsetS: CLIP_S + 3 })]
  const file = path.join(await newFolder(), 'a.ts')
  await writeFile(file, Buffer.concat(await Promise.all(clips.map((clip) => readFile(clip)))))
  const { numbers, beeps } = await encode(file)
  expect(withoutRepeats(numbers)).toEqual([...count(CLIP_FRAMES), ...count(CLIP_FRAMES)])
  const beginS = numbers.lastIndexOf(0) / 25
  expect(Math.abs(beginS - (CLIP_S + 3))).toBeLessThan(0.05)
  expect(Math.abs((beeps[1] ?? 0) - beginS)).toBeLessThan(SOUND_TOLERANCE_S)
})

test('I-10: the poster at a time of joined clips is the frame that is shown then', async () => {
  const clip = await readFile(await makeClip('a.ts'))
  const file = path.join(await newFolder(), 'a.ts')
  await writeFile(file, Buffer.concat([clip, clip]))
  const { sandbox, source, plan } = await openVideo(file)
  const [poster] = await extractPostersAt(sandbox, source, { plan, timeS: CLIP_S + 1 })
  const jpeg = path.join(await newFolder(), 'a.jpg')
  await writeFile(jpeg, poster?.jpeg ?? '')
  expect(await readNumbers(jpeg)).toEqual([25])
})

const SLIDES = [
  { container: 'mkv', sound: false },
  { container: 'mkv', sound: true },
  { container: 'mp4', sound: false },
  { container: 'mp4', sound: true },
]

test.each(sampleOf('slides', SLIDES, 1))(
  'I-11: a last slide that is shown for 90 s ($container, with sound: $sound) is shown for 90 s',
  async ({ container, sound }) => {
    const folder = await newFolder()
    const slides = path.join(folder, 'slides.mkv')
    const args = ['-vf', "select='not(mod(n,50))'", '-fps_mode', 'vfr', ...H264]
    await makeNumberedVideo(slides, { frames: 151, ...SMALL, encode: args })
    const file = path.join(folder, `a.${container}`)
    const audio = sound ? ['-f', 'lavfi', '-i', 'sine=440:r=48000:d=96', '-map', '0', '-map', '1', '-c:a', 'aac'] : []
    const lengths = ['-bsf:v', 'setts=duration=if(eq(N\\,3)\\,90\\,2)/TB', '-video_track_timescale', '1000']
    await ffmpeg('-i', slides, ...audio, '-c:v', 'copy', ...(container === 'mp4' ? lengths : lengths.slice(0, 2)), file)
    const { numbers, plan } = await encode(file)
    const lastS = numbers.filter((number) => number === 150).length / (numbers.length / plan.durationS)
    expect(Math.abs(lastS - 90)).toBeLessThan(0.3)
  },
)

test('I-11: a Matroska whose clock begins at 5 s lasts as long as its frames', async () => {
  const { plan } = await openVideo(await makeClip('late.mkv', { offsetS: 5 }))
  expect(plan.videoTrack).toMatchObject({ frameCount: CLIP_FRAMES, heldFrames: 0 })
})

test('I-11: so does one whose sound ends before the last key frame', async () => {
  const file = path.join(await newFolder(), 'late.mkv')
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25:d=2', '-f', 'lavfi', '-i', 'sine=r=48000:d=1.7']
  await ffmpeg(...inputs, '-c:v', 'mjpeg', '-q:v', '3', '-c:a', 'flac', '-output_ts_offset', '5', file)
  const { plan } = await openVideo(file)
  expect(plan.videoTrack).toMatchObject({ frameCount: CLIP_FRAMES, heldFrames: 0 })
})

test('I-12: the last slide is shown even if its own length is less than a slot', async () => {
  const encodeArgs = ['-vf', "select='not(mod(n,50))'", '-fps_mode', 'vfr', ...H264]
  const file = path.join(await newFolder(), 'slides.mkv')
  await makeNumberedVideo(file, { frames: 151, ...SMALL, encode: encodeArgs })
  const { numbers } = await encode(file)
  expect([...new Set(numbers)]).toEqual([0, 50, 100, 150])
})

const JITTER = [
  '-vf',
  "settb=1/90000,setpts='PTS+0.008*(2*random(1)-1)/TB'",
  '-enc_time_base:v',
  '1:90000',
  '-fps_mode',
  'passthrough',
]
const WHOLE = [
  { is: 'an FLV, which states no durations', name: 'a.flv', rate: '24', encode: [...H264, ...AAC] },
  { is: 'an MP4 with jitter', name: 'a.mp4', rate: '30', encode: [...H264, ...AAC, ...JITTER, '-output_ts_offset', '0.02'] },
  {
    is: 'an MPEG-PS that ends with a frame without a time',
    name: 'a.vob',
    rate: '25',
    encode: [...MPEG2, '-g', '15', '-bf', '2'],
  },
  { is: 'an MPEG-TS with jitter, which states no average rate', name: 'a.ts', rate: '30', encode: [...H264, ...AAC, ...JITTER] },
]

test.each(sampleOf('first and last frames', WHOLE, 1))(
  'I-31, I-32, I-33: of $is every frame from the first to the last is shown once',
  async ({ name, rate, encode: codecs }) => {
    const file = path.join(await newFolder(), name)
    const inputs = ['-f', 'lavfi', '-i', 'sine=440:r=48000:d=5']
    await makeNumberedVideo(file, { frames: 90, ...SMALL, rate, inputs, encode: codecs })
    const { numbers } = await encode(file)
    expect(numbers.slice(numbers.lastIndexOf(0), numbers.indexOf(89) + 1)).toEqual(count(90))
  },
)

const CUT = [
  { cut: 'an AVI without its index', name: 'a.avi', encode: ['-c:v', 'mpeg4', '-q:v', '4', '-c:a', 'libmp3lame'], leaves: 0.5 },
  { cut: 'an MP4 to nine tenths', name: 'a.mp4', encode: [...H264, ...AAC, '-movflags', '+faststart'], leaves: 0.9 },
  { cut: 'an MP4 by 20 bytes', name: 'a.mp4', encode: [...H264, ...AAC, '-movflags', '+faststart'], lacks: 20 },
  { cut: 'an MP4 by 1 kB', name: 'a.mp4', encode: [...H264, ...AAC, '-movflags', '+faststart'], lacks: 1000 },
  { cut: 'fragments of MP4', name: 'a.mp4', encode: [...H264, ...AAC, '-movflags', '+frag_keyframe+empty_moov'], leaves: 0.6 },
  { cut: 'a Matroska', name: 'a.mkv', encode: [...H264, ...AAC], leaves: 0.5 },
  { cut: 'an FLV', name: 'a.flv', encode: [...H264, ...AAC], leaves: 0.5 },
]

test.each(sampleOf('files that were cut off', CUT, 1))(
  'I-13: a file that was cut off ($cut) plays as far as it goes, and its owner reads that',
  async ({ name, encode: codecs, leaves = 1, lacks = 0 }) => {
    const whole = await readFile(await makeClip(name, { frames: 100, encode: codecs }))
    const file = path.join(await newFolder(), name)
    await writeFile(file, whole.subarray(0, Math.floor(whole.length * leaves) - lacks))
    const { numbers, beeps, plan } = await encode(file)
    const frames = new Set(numbers).size
    expect(frames).toBeGreaterThan(100 * leaves - 12)
    expect(frames).toBeLessThanOrEqual(100)
    // The frames before a lost one may repeat it.
    expect(withoutRepeats(numbers).slice(0, frames - 2)).toEqual(count(frames - 2))
    expect(beeps[0]).toBeLessThan(SOUND_TOLERANCE_S)
    expect(plan.notices).toEqual([
      expect.stringMatching(/^The file breaks off at 0:0[1234]( of 0:04)?: it was cut off\. To have all/),
    ])
  },
)

test('I-13: of a whole file nothing is said', async () => {
  for (const name of ['a.mkv', 'a.mp4']) expect((await openVideo(await makeClip(name))).plan.notices).toBe(undefined)
})

const BELOW_ZERO = [
  { what: 'with B-frames and Vorbis', rate: '20', sound: ['-c:a', 'libvorbis', '-ac', '6'] },
  { what: 'with a rate of television', rate: '24000/1001', sound: AAC },
  { what: 'with MP3', rate: '20', sound: ['-c:a', 'libmp3lame'] },
]

test.each(sampleOf('Matroska below zero', BELOW_ZERO, 1))(
  'I-38: of a Matroska that begins below zero every frame is shown once and every beep is in its place, $what',
  async ({ rate, sound }) => {
    const file = path.join(await newFolder(), 'below.mkv')
    const beep = `aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t,${CLIP_S}),0.08)':s=48000:d=5`
    const below = ['-output_ts_offset', '-1', '-avoid_negative_ts', 'disabled']
    const video = {
      frames: 90,
      ...SMALL,
      rate,
      inputs: ['-f', 'lavfi', '-i', beep],
      encode: [...H264, '-bf', '2', ...sound, ...below],
    }
    const { numbers, beeps } = await encode(await makeNumberedVideo(file, video))
    expect(withoutRepeats(numbers)).toEqual(count(90))
    expect(beeps.length).toBe(3)
    for (const [index, beep] of beeps.entries()) expect(Math.abs(beep - index * CLIP_S)).toBeLessThan(SOUND_TOLERANCE_S)
  },
)
