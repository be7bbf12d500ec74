import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { audioTracksOf } from '../../src/encode/plan.ts'
import { sampleOf } from '../sample.ts'
import { encodeVideo, ffmpeg, joinRendition, newFolder, openVideo } from './videos.ts'

// Files whose sound is in more than one track, or in more or fewer channels than two. Each track has a tone of its own, so that what is
// audible of it, and in which ear, can be measured.

const VIDEO = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25:d=2']
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']
const TONE_DB = -20

type SoundFile = {
  is: string
  file: string
  /** Each a tone of so many Hz, or 0 for digital silence. */
  tracks: number[]
  encode: string[]
  /** What is done to the bytes of the file. */
  change?: (bytes: Buffer) => void
  /** How much louder each tone is left and right than in the file, in decibels; what is not named is silent. */
  audible: Audible
  /** The same of each track that a viewer can choose instead, with what the file calls it. */
  others?: { audible: Audible; language?: string; name?: string }[]
  notice?: string
  /** Where a second of it is measured. */
  fromS?: number
}

type Audible = Record<number, [number | undefined, number | undefined]>

const NOT_LOUDER: [number, number] = [0, 0]
const MAP = ['-map', '0:v', '-map', '1', '-map', '2']
const AAC = [...H264, '-c:a', 'aac', '-b:a', '96k']
const PCM = [...H264, '-c:a', 'pcm_s16le']
const BOTH_MONO = { 500: NOT_LOUDER, 1300: NOT_LOUDER }
const TRACKS: readonly SoundFile[] = [
  {
    is: 'I-02: with a default track that is not the first',
    file: 'a.mkv',
    tracks: [500, 1300],
    encode: [...MAP, ...AAC, '-disposition:a:0', '0', '-disposition:a:1', 'default'],
    audible: { 1300: NOT_LOUDER },
    others: [{ audible: { 500: NOT_LOUDER } }],
  },
  {
    is: 'I-02: without a default track',
    file: 'a.mkv',
    tracks: [500, 1300],
    encode: [...MAP, ...AAC, '-default_mode', 'infer_no_subs', '-disposition:a', '0'],
    audible: { 500: NOT_LOUDER },
    others: [{ audible: { 1300: NOT_LOUDER } }],
  },
  {
    is: 'T-01: in two languages, of which the second is the default one',
    file: 'a.mkv',
    tracks: [500, 1300],
    encode: [
      ...[...MAP, ...AAC, '-disposition:a:0', '0', '-disposition:a:1', 'default'],
      ...['-metadata:s:a:0', 'language=ger', '-metadata:s:a:1', 'language=eng', '-metadata:s:a:0', 'title=Kommentar | "Regie"'],
    ],
    audible: { 1300: NOT_LOUDER },
    others: [{ audible: { 500: NOT_LOUDER }, language: 'de', name: 'Kommentar | Regie' }],
  },
  {
    is: 'T-01: with ten tracks, of which eight are kept',
    file: 'a.mkv',
    tracks: [500, 1300, 0, 500, 1300, 500, 1300, 500, 1300, 500],
    encode: [...MAP, ...[3, 4, 5, 6, 7, 8, 9, 10].flatMap((input) => ['-map', String(input)]), ...AAC],
    audible: { 500: NOT_LOUDER },
    others: [1300, 0, 500, 1300, 500, 1300, 500].map((hz) => ({ audible: hz === 0 ? {} : { [hz]: NOT_LOUDER } })),
    notice: 'Audio tracks 1, 2, 3, 4, 5, 6, 7, and 8 of 10 are played; tracks 9 and 10 are left out.',
  },
  {
    is: 'I-03: with a first track that no decoder reads',
    file: 'a.mp4',
    tracks: [500, 1300],
    encode: [...MAP, ...AAC],
    change: (bytes) => renameCodec(bytes, 'apac', 1),
    audible: { 1300: NOT_LOUDER },
    notice: 'Audio track 2 of 2 is played; track 1 cannot be decoded.',
  },
  {
    is: 'I-03: with a codec that ffmpeg knows but has no decoder for',
    file: 'a.mp4',
    tracks: [500, 1300],
    encode: [...MAP, ...AAC],
    change: (bytes) => renameCodec(bytes, 'mhm1', 1),
    audible: { 1300: NOT_LOUDER },
    notice: 'Audio track 2 of 2 is played; track 1 cannot be decoded.',
  },
  {
    is: 'I-03: whose sound begins after the first 5 MB of an MPEG-TS',
    file: 'a.ts',
    tracks: [],
    encode: [
      ...['-itsoffset', '2.5', ...tone(500), '-f', 'lavfi', '-i', 'color=gray:s=640x360:r=25:d=4,noise=alls=100:allf=t'],
      ...['-map', '2', '-map', '1', '-c:v', 'mpeg2video', '-q:v', '2', '-c:a', 'aac'],
    ],
    audible: { 500: NOT_LOUDER },
    fromS: 2.6,
  },
  {
    is: 'I-03: of which no track can be decoded',
    file: 'a.mp4',
    tracks: [500, 1300],
    encode: [...MAP, ...AAC],
    change: (bytes) => renameCodec(bytes, 'mhm1', 2),
    audible: {},
    notice: 'The video is silent, because its sound cannot be decoded: convert the sound to AAC and upload the video again.',
  },
  {
    is: 'I-04: whose default track is digital silence, as a screen recorder writes of a muted microphone',
    file: 'a.mkv',
    tracks: [0, 500, 1300],
    encode: [...MAP, '-map', '3', ...AAC, '-metadata:s:a:0', 'title=Mic', '-metadata:s:a:1', 'title=Desktop'],
    audible: { 500: NOT_LOUDER },
    others: [{ audible: {}, name: 'Mic' }, { audible: { 1300: NOT_LOUDER } }],
    notice: 'Audio track 1 of 3 is silent: track 2 plays unless a viewer chooses another.',
  },
  ...['a.ts', 'a.asf'].map(
    (file): SoundFile => ({
      is: `I-04: whose first track is digital silence, ${file}`,
      file,
      tracks: [0, 500],
      encode: [...MAP, ...(file === 'a.ts' ? AAC : ['-c:v', 'wmv2', '-c:a', 'wmav2'])],
      audible: { 500: NOT_LOUDER },
      others: [{ audible: {} }],
      notice: 'Audio track 1 of 2 is silent: track 2 plays unless a viewer chooses another.',
    }),
  ),
  {
    is: 'I-04: whose tracks are all silent',
    file: 'a.mkv',
    tracks: [0, 0],
    encode: [...MAP, ...AAC],
    audible: {},
    others: [{ audible: {} }],
  },
  {
    is: 'I-05: with a left and a right mono track',
    file: 'a.mov',
    tracks: [500, 1300],
    encode: [
      ...['-filter_complex', '[1]pan=FL|FL=c0[l];[2]pan=FR|FR=c0[r]', '-map', '0:v', '-map', '[r]', '-map', '[l]'],
      ...[...H264, '-c:a', 'pcm_s16le'],
    ],
    audible: { 500: [0, undefined], 1300: [undefined, 0] },
  },
  {
    is: 'I-05: with two mono tracks of a camera',
    file: 'a.mov',
    tracks: [500, 1300],
    encode: [...MAP, ...PCM],
    audible: BOTH_MONO,
  },
  {
    is: 'I-05: with two mono tracks in MXF',
    file: 'a.mxf',
    tracks: [500, 1300],
    encode: [...MAP, '-c:v', 'mpeg2video', '-c:a', 'pcm_s16le'],
    audible: BOTH_MONO,
  },
  {
    is: 'I-05: with mono tracks in two languages',
    file: 'a.mov',
    tracks: [500, 1300],
    encode: [...MAP, ...PCM, '-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fra'],
    audible: { 500: NOT_LOUDER },
    others: [{ audible: { 1300: NOT_LOUDER }, language: 'fr' }],
  },
  {
    is: 'T-02: with two mono tracks that have titles',
    file: 'a.mov',
    tracks: [500, 1300],
    encode: [...MAP, ...PCM, '-metadata:s:a:0', 'title=Host', '-metadata:s:a:1', 'title=Guest'],
    audible: BOTH_MONO,
  },
  ...[9, 10, 64].map(
    (channels): SoundFile => ({
      is: `I-06: of ${channels} channels, the last with sound`,
      file: 'a.mkv',
      tracks: [500],
      encode: ['-af', `pan=${channels}C|c${channels - 1}=c0`, ...PCM],
      audible: { 500: [-3, -3] },
    }),
  ),
  {
    is: 'I-06: of six channels without a layout, the fourth with sound',
    file: 'a.mkv',
    tracks: [500],
    encode: ['-af', 'pan=6C|c3=c0', ...PCM],
    audible: { 500: [-3, -3] },
  },
  ...['FLAC of 16 bits', 'AAC'].map(
    (codec): SoundFile => ({
      is: `I-06: of 5.1 channels, ${codec}`,
      file: 'a.mkv',
      tracks: [500, 1300],
      encode: [
        ...['-filter_complex', '[1]pan=5.1|FC=c0[c];[2]pan=5.1|BR=c0[b];[c][b]amix=inputs=2:normalize=0[m]'],
        ...['-map', '0:v', '-map', '[m]', ...(codec === 'AAC' ? [...AAC, '-b:a', '384k'] : [...H264, '-c:a', 'flac'])],
      ],
      audible: { 500: [-3, -3], 1300: [undefined, -3] },
    }),
  ),
  { is: 'I-06: in mono', file: 'a.mp4', tracks: [500], encode: AAC, audible: { 500: NOT_LOUDER } },
]

test.for(sampleOf('tracks of sound', TRACKS, 4).map((sound) => [sound.is, sound] as const))(
  '%s: what is audible, and what is left out',
  async ([, sound]) => {
    const folder = await newFolder()
    const file = path.join(folder, sound.file)
    await ffmpeg(...VIDEO, ...sound.tracks.flatMap(tone), ...sound.encode, '-shortest', file)
    if (sound.change) {
      const bytes = await readFile(file)
      sound.change(bytes)
      await writeFile(file, bytes)
    }
    const video = await openVideo(file)
    expect(video.plan.notices ?? []).toEqual(sound.notice === undefined ? [] : [sound.notice])
    const tracks = audioTracksOf(video.plan)
    const { others = [] } = sound
    expect(tracks.slice(1).map(({ language, name }) => ({ language, name }))).toEqual(
      others.map(({ language, name }) => ({ language, name })),
    )
    const ears = await hear(folder, video)
    for (const [index, audible] of [sound.audible, ...others.map((other) => other.audible)].entries())
      for (const hz of [500, 1300]) {
        const [left, right] = audible[hz] ?? []
        expectLevel(levelDb(ears[index]?.left, hz, sound.fromS), left)
        expectLevel(levelDb(ears[index]?.right, hz, sound.fromS), right)
      }
  },
)

test('I-06: sound that adds up to more than there is room for has true peaks of at most -1 dB', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'loud.mkv')
  const loud = '[1]volume=18dB,pan=5.1|FL=0.99*c0|FR=0.99*c0|FC=0.99*c0|BL=0.99*c0|BR=0.99*c0[a]'
  const beeps = ['-f', 'lavfi', '-i', 'aevalsrc=0.5*sin(2*PI*1000*t)*lt(mod(t\\,1)\\,0.1):s=48000:d=2']
  await ffmpeg(...VIDEO, ...beeps, '-filter_complex', loud, '-map', '0:v', '-map', '[a]', ...PCM, file)
  const [{ left, right } = NOTHING] = await hear(folder, await openVideo(file), { oversampled: 4 })
  expect(20 * Math.log10(peakOf(left))).toBeLessThan(-1)
  expect(20 * Math.log10(peakOf(right))).toBeGreaterThan(-3)
})

function tone(hz: number): string[] {
  return ['-f', 'lavfi', '-i', hz === 0 ? 'anullsrc=r=48000:d=2' : `aevalsrc=0.1*sin(2*PI*${hz}*t):s=48000:d=2`]
}

/** Gives the first audio tracks of an MP4 a codec that they do not have. */
function renameCodec(bytes: Buffer, name: string, times: number) {
  for (let at = 0; times > 0; times--) {
    at = bytes.indexOf('mp4a', at)
    bytes.write(name, at, 'latin1')
    bytes.write('xxxx', bytes.indexOf('esds', at), 'latin1')
  }
}

type Ears = { left: Float32Array; right: Float32Array }

const NOTHING: Ears = { left: new Float32Array(1), right: new Float32Array(1) }

/** What is audible of a video's tracks, at 48 kHz; nothing of a silent one. */
async function hear(folder: string, video: Awaited<ReturnType<typeof openVideo>>, { oversampled = 1 } = {}): Promise<Ears[]> {
  const tracks = audioTracksOf(video.plan)
  if (tracks.length === 0) return []
  const encoded = await encodeVideo({ ...video, plan: { ...video.plan, videoTrack: undefined } }, { chunkSegments: 1 })
  return Promise.all(
    tracks.map(async ({ renditionId }) => {
      const file = await joinRendition(folder, encoded, renditionId)
      const rate = ['-af', 'aformat=sample_fmts=fltp', '-ar', `${oversampled * 48_000}`]
      const pcm = await ffmpeg('-i', file, ...rate, '-f', 'f32le', '-')
      const samples = new Float32Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.length))
      return { left: samples.filter((_, index) => index % 2 === 0), right: samples.filter((_, index) => index % 2 === 1) }
    }),
  )
}

function expectLevel(db: number, expectedDb: number | undefined) {
  if (expectedDb === undefined) expect(db).toBeLessThan(TONE_DB - 30)
  else expect(Math.abs(db - TONE_DB - expectedDb)).toBeLessThan(0.5)
}

/** The amplitude of a tone in a second of the sound. */
function levelDb(samples: Float32Array | undefined, hz: number, fromS = 0.8): number {
  let [re, im] = [0, 0]
  const [from, count] = [fromS * 48_000, 48_000]
  for (let i = from; i < from + count; i++) {
    const phase = (2 * Math.PI * hz * i) / 48_000
    re += (samples?.[i] ?? 0) * Math.cos(phase)
    im += (samples?.[i] ?? 0) * Math.sin(phase)
  }
  return 20 * Math.log10((2 * Math.hypot(re, im)) / count + 1e-9)
}

function peakOf(samples: Float32Array): number {
  return samples.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0)
}
