import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type EmbeddedSource, makeEmbedded } from '../assets/embedded-sources.ts'
import { keepVideo } from '../videos.ts'
import { ffmpeg, newFolder } from './videos.ts'

// Files with every kind of sound that owners are known to bring, made by ffmpeg. Each track is a tone, or several.

type Track = {
  /** 0: digital silence. */
  hz: number
  language?: string
  title?: string
  isDefault?: boolean
  /** Of ffmpeg's `pan`, such as `mono|c0=c0`. */
  pan?: string
  codec?: string
  /** How loud, relative to the others, in decibels. */
  louderDb?: number
  fromS?: number
  toS?: number
}

export type AudioSource = {
  is: string
  /** Its container is what the name ends in. */
  file: string
  tracks: Track[]
  /** False: sound alone. */
  hasPicture?: boolean
  /** What is put into it besides. */
  text?: Pick<EmbeddedSource, 'tracks' | 'chapters'>
  /** How many of its first tracks get a codec that no decoder reads. */
  unreadable?: number
  /** How much of the made file is left. */
  leaves?: number
  /** The tracks of what follows it in the same file. */
  followedBy?: Track[]
}

const SECONDS = 6
export const TONES_HZ = [500, 700, 900, 1100, 1300, 1700, 2100, 2500, 2900, 3300] as const
const [A, B, C] = TONES_HZ
const LANGUAGES = ['eng', 'ger', 'fre', 'spa', 'ita', 'dut', 'pol', 'jpn', 'kor', 'por']
const manyTracks = (count: number): Track[] => TONES_HZ.slice(0, count).map((hz, n) => ({ hz, language: LANGUAGES[n] }))
const MONO = 'mono|c0=c0'
const PCM = 'pcm_s16le'
const camera = (hz: number): Track => ({ hz, pan: MONO, codec: PCM })
const CUES = '1\n00:00:01,000 --> 00:00:02,500\nOne\n\n2\n00:00:04,000 --> 00:00:05,000\nTwo\n'
const inTwoLanguages = (codec: string) => [
  { name: 'a.srt', text: CUES, codec, language: 'ger' },
  { name: 'b.srt', text: CUES, codec, language: 'eng', title: 'Signs' },
]
const TWO_CHAPTERS: EmbeddedSource['chapters'] = [
  [0, 3000, 'One'],
  [3000, 6000, 'Two'],
]

export const AUDIO_SOURCES: readonly AudioSource[] = [
  { is: 'no sound', file: 'a.mp4', tracks: [] },
  { is: 'one track', file: 'a.mp4', tracks: [{ hz: A }] },
  { is: 'one track with language and title', file: 'a.mkv', tracks: [{ hz: A, language: 'ger', title: 'Vortrag' }] },
  { is: 'two languages', file: 'a.mp4', tracks: manyTracks(2) },
  {
    is: 'two languages, the second one default',
    file: 'a.mkv',
    tracks: [
      { hz: A, language: 'ger' },
      { hz: B, language: 'eng', isDefault: true },
    ],
  },
  {
    is: 'two tracks of one language',
    file: 'a.mkv',
    tracks: [
      { hz: A, language: 'eng' },
      { hz: B, language: 'eng', title: 'Commentary | "Director"' },
    ],
  },
  { is: 'two tracks without a language', file: 'a.mkv', tracks: [{ hz: A }, { hz: B }] },
  { is: 'three languages', file: 'a.ts', tracks: manyTracks(3) },
  { is: 'two languages', file: 'a.webm', tracks: manyTracks(2).map((track) => ({ ...track, codec: 'libopus' })) },
  { is: 'two languages', file: 'a.avi', tracks: manyTracks(2).map((track) => ({ ...track, codec: 'libmp3lame' })) },
  { is: 'eight languages', file: 'a.mkv', tracks: manyTracks(8) },
  { is: 'ten languages', file: 'a.mkv', tracks: manyTracks(10) },
  { is: 'mono', file: 'a.mp4', tracks: [{ hz: A, pan: MONO }] },
  { is: 'in one ear', file: 'a.mp4', tracks: [{ hz: A, pan: 'stereo|c0=c0' }] },
  { is: '5.1, in the middle', file: 'a.mkv', tracks: [{ hz: A, pan: '5.1|FC=c0' }] },
  {
    is: '5.1 next to stereo',
    file: 'a.mkv',
    tracks: [
      { hz: A, language: 'eng', pan: '5.1|BL=c0', codec: 'flac' },
      { hz: B, language: 'eng' },
    ],
  },
  { is: '7.1, on the right side', file: 'a.mkv', tracks: [{ hz: A, pan: '7.1|SR=c0', codec: PCM }] },
  { is: 'two mono tracks of a camera', file: 'a.mov', tracks: [A, B].map(camera) },
  { is: 'four mono tracks of a camera, two of them silent', file: 'a.mov', tracks: [A, B, 0, 0].map(camera) },
  {
    is: 'two mono tracks with titles',
    file: 'a.mkv',
    tracks: [
      { ...camera(A), title: 'Host' },
      { ...camera(B), title: 'Guest' },
    ],
  },
  {
    is: 'two mono tracks in two languages',
    file: 'a.mov',
    tracks: [
      { ...camera(A), language: 'eng' },
      { ...camera(B), language: 'fra' },
    ],
  },
  {
    is: 'a silent track before another',
    file: 'a.mkv',
    tracks: [
      { hz: 0, title: 'Mic' },
      { hz: B, title: 'Desktop' },
    ],
  },
  { is: 'two silent tracks', file: 'a.mkv', tracks: [{ hz: 0 }, { hz: 0 }] },
  {
    is: 'a quiet and a loud track',
    file: 'a.mkv',
    tracks: [
      { hz: A, louderDb: -15 },
      { hz: B, louderDb: 15 },
    ],
  },
  { is: 'a first track that no decoder reads', file: 'a.mp4', tracks: manyTracks(2), unreadable: 1 },
  { is: 'two tracks that no decoder reads', file: 'a.mp4', tracks: manyTracks(2), unreadable: 2 },
  { is: 'a second track that begins late', file: 'a.mkv', tracks: [{ hz: A }, { hz: B, fromS: 2 }] },
  { is: 'a second track that ends early', file: 'a.mkv', tracks: [{ hz: A }, { hz: B, toS: 3 }] },
  { is: 'a track from the third to the fourth second', file: 'a.mp4', tracks: [{ hz: A, fromS: 2, toS: 4 }] },
  { is: 'stereo, then mono of another rate', file: 'a.ts', tracks: [{ hz: A }], followedBy: [{ hz: C, pan: MONO }] },
  { is: 'cut off in the middle', file: 'a.mkv', tracks: manyTracks(2), leaves: 0.6 },
  { is: 'sound alone in two languages', file: 'a.mka', tracks: manyTracks(2), hasPicture: false },
  {
    is: 'two languages, captions, chapters',
    file: 'a.mp4',
    tracks: manyTracks(2),
    text: { tracks: inTwoLanguages('mov_text'), chapters: TWO_CHAPTERS },
  },
  {
    is: 'three languages, captions, chapters',
    file: 'a.mkv',
    tracks: manyTracks(3),
    text: { tracks: inTwoLanguages('copy'), chapters: TWO_CHAPTERS },
  },
]

/** @returns the path of the made file, which only the first run of the tests makes */
export async function makeAudioSource(source: AudioSource): Promise<string> {
  const { is, file, text } = source
  const made = await keepVideo(JSON.stringify(source), path.extname(file), (kept) => make(source, kept))
  return text ? makeEmbedded({ is, file, around: made, ...text }) : made
}

async function make({ file, tracks, followedBy, hasPicture = true, unreadable = 0, leaves = 1 }: AudioSource, made: string) {
  await makeTracks(file, tracks, hasPicture, [], made)
  let bytes = await readFile(made)
  if (followedBy) {
    const second = path.join(await newFolder(), file)
    const rate = ['-ar', '32000', '-output_ts_offset', String(SECONDS)]
    await makeTracks(file, followedBy, hasPicture, rate, second)
    bytes = Buffer.concat([bytes, await readFile(second)])
  }
  for (let at = 0, left = unreadable; left > 0; left--) {
    at = bytes.indexOf('mp4a', at)
    bytes.write('apac', at, 'latin1')
    bytes.write('xxxx', bytes.indexOf('esds', at), 'latin1')
  }
  await writeFile(made, bytes.subarray(0, bytes.length * leaves))
}

async function makeTracks(file: string, tracks: readonly Track[], hasPicture: boolean, more: string[], made: string) {
  const isWebM = file.endsWith('.webm')
  const picture = isWebM
    ? ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8']
    : ['-c:v', 'libx264', '-preset', 'ultrafast']
  const video = ['-f', 'lavfi', '-i', `testsrc2=s=96x64:r=25:d=${SECONDS}`]
  await ffmpeg(
    ...(hasPicture ? video : []),
    ...tracks.flatMap(({ hz, fromS = 0, toS = SECONDS, louderDb = 0 }) => {
      const level = 0.1 * 10 ** (louderDb / 20)
      const tone = hz === 0 ? `anullsrc=r=48000:cl=mono:d=${toS}` : `aevalsrc=${level}*sin(2*PI*${hz}*t):s=48000:d=${toS - fromS}`
      return ['-itsoffset', String(fromS), '-f', 'lavfi', '-i', tone]
    }),
    ...(hasPicture ? ['-map', '0', ...picture, '-pix_fmt', 'yuv420p', '-g', '25'] : []),
    ...tracks.flatMap(({ language, title, isDefault, pan = 'stereo|c0=c0|c1=c0', codec = 'aac' }, n) => [
      ...['-map', String(n + Number(hasPicture)), `-c:a:${n}`, codec, `-filter:a:${n}`, `pan=${pan}`],
      ...(language ? [`-metadata:s:a:${n}`, `language=${language}`] : []),
      ...(title ? [`-metadata:s:a:${n}`, `title=${title}`] : []),
      ...(tracks.some((track) => track.isDefault) ? [`-disposition:a:${n}`, isDefault ? 'default' : '0'] : []),
    ]),
    ...more,
    made,
  )
}
