import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { keepFirst } from '../videos.ts'
import { count, DRAWING, drawNumberedVideo, ffmpeg } from './videos.ts'

// Videos of every shape that owners are known to bring, each a few seconds long, with what must become of it.

export type OddVideo = {
  is: string
  /** Its container is what the name ends in. */
  file: string
  /** 10 s of them by default; 0 for a video of sound only. */
  frames?: number
  rate?: string
  size?: [number, number]
  /** Width ÷ height of one sample. */
  sar?: number
  /** Seconds of sound: beeps on every odd second; 0 for none. */
  audioS?: number
  encode: string[]
  /** What is done to the encoded file, step by step, without decoding it. */
  changes?: Change[]
  becomes: {
    /** Sizes of the ladder, the highest first. */
    rungs: string
    /** As drawn, by default. */
    rate?: string
    frames?: number
    /** How often the first frame is shown once more, because the file has its picture begin that much later than its sound. */
    waits?: number
    /** The number that frame i shows; by default i less what it waits, and the last one for ever. */
    shows?: (frame: number) => number
    audioS?: number
    /** By how much the file itself has its sound late. */
    audioLateS?: number
    /** How many beeps are audible; by default one for each odd second of sound. */
    beeps?: number
  }
  /** Filters that lay what is shown down again as it was drawn. */
  turn?: string
  /** A seek in it is not exact: all of it is made in one go. */
  inSequence?: boolean
}

/** Arguments of ffmpeg between the video so far and the new one, or how much of the file is left, or the size that it continues in. */
type Change = { copied: string[]; from?: string[] } | { leaves: number } | { goesOnIn: [number, number] }

const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '3', '-g', '250', '-pix_fmt', 'yuv420p']
const AAC = ['-c:a', 'aac', '-b:a', '96k']
const MPEG2 = ['-c:v', 'mpeg2video', '-q:v', '3', '-bf', '2', '-c:a', 'mp2']
const ALL = ['-map', '0']
// Of the video twice: its first copy is what is read with `from`.
const PICTURE_THEN_SOUND = ['-map', '1:v', '-map', '0:a']
const SOUND_THEN_PICTURE = ['-map', '0:v', '-map', '1:a']
const FULL = '320×180'

export const ODD_VIDEOS: readonly OddVideo[] = [
  { is: 'landscape', file: 'a.mp4', size: [640, 360], encode: [...H264, ...AAC], becomes: { rungs: '640×360 426×240' } },
  {
    is: 'portrait',
    file: 'a.mp4',
    rate: '30/1',
    size: [288, 512],
    encode: [...H264, ...AAC],
    becomes: { rungs: '288×512 240×426' },
  },
  ...[90, 180, 270].map(
    (degrees): OddVideo => ({
      is: `lying on its side, with a rotation of ${degrees}°`,
      file: 'a.mp4',
      rate: '30/1',
      encode: [...H264, ...AAC],
      changes: [{ copied: [...ALL, '-metadata:s:v', `rotate=${degrees}`] }],
      becomes: { rungs: degrees === 180 ? FULL : '180×320' },
      turn: { 90: 'transpose=1', 180: 'hflip,vflip', 270: 'transpose=2' }[degrees],
    }),
  ),
  {
    is: 'anamorphic, 4:3 samples',
    file: 'a.mp4',
    size: [320, 240],
    sar: 4 / 3,
    encode: [...H264, '-vf', 'setsar=4/3', ...AAC],
    becomes: { rungs: '426×240' },
  },
  {
    is: 'anamorphic and lying on its side',
    file: 'a.mov',
    size: [180, 180],
    sar: 16 / 9,
    encode: [...H264, '-vf', 'setsar=16/9', ...AAC],
    changes: [{ copied: [...ALL, '-metadata:s:v', 'rotate=270'] }],
    becomes: { rungs: '180×320' },
    turn: 'transpose=2',
  },
  {
    is: 'squeezed upright, 1:2 samples',
    file: 'a.mkv',
    size: [320, 240],
    sar: 1 / 2,
    encode: [...H264, '-vf', 'setsar=1/2', ...AAC],
    becomes: { rungs: '160×240' },
  },
  {
    is: 'of odd sides, 4:4:4',
    file: 'a.mp4',
    size: [321, 181],
    encode: [...H264, '-pix_fmt', 'yuv444p', ...AAC],
    becomes: { rungs: FULL },
  },
  { is: 'a narrow strip', file: 'a.mp4', size: [600, 62], audioS: 0, encode: H264, becomes: { rungs: '600×62' } },
  {
    is: 'interlaced, upper field first',
    file: 'a.mp4',
    encode: [...H264, '-vf', 'setfield=tff', '-flags', '+ildct+ilme', ...AAC],
    becomes: { rungs: FULL },
  },
  {
    is: 'interlaced, lower field first, anamorphic',
    file: 'a.mkv',
    rate: '30000/1001',
    size: [320, 240],
    sar: 32 / 27,
    encode: [...H264, '-vf', 'setsar=32/27,setfield=bff', '-flags', '+ildct+ilme', ...AAC],
    becomes: { rungs: '378×240' },
  },
  ...['24000/1001', '24/1', '30000/1001', '50/1', '60000/1001', '60/1'].map(
    (rate): OddVideo => ({
      is: `of ${rate} frames a second`,
      file: 'a.mp4',
      rate,
      encode: [...H264, ...AAC],
      becomes: { rungs: FULL, rate },
    }),
  ),
  // Their clock counts milliseconds, and the sound begins 21 to 23 ms before the picture: about half a frame.
  ...['24000/1001', '24/1', '30000/1001', '50/1', '60/1'].map(
    (rate): OddVideo => ({
      is: `of ${rate} frames a second, Matroska`,
      file: 'a.mkv',
      rate,
      encode: [...H264, ...AAC],
      becomes: { rungs: FULL, rate },
    }),
  ),
  {
    is: 'of 30 frames a second, FLV with MP3',
    file: 'a.flv',
    rate: '30/1',
    encode: ['-c:v', 'flashsv2', '-c:a', 'libmp3lame', '-ar', '22050'],
    becomes: { rungs: FULL },
  },
  {
    is: 'of 15000/1001 frames a second',
    file: 'a.mov',
    rate: '15000/1001',
    encode: [...H264, ...AAC],
    becomes: { rungs: FULL },
  },
  {
    is: 'of 120 frames a second, Matroska',
    file: 'a.mkv',
    rate: '120/1',
    frames: 720,
    audioS: 6,
    encode: [...H264, ...AAC],
    becomes: { rungs: FULL, rate: '60/1', frames: 360, shows: (frame) => 2 * frame },
  },
  {
    is: 'a screen share of two frames a second, with a burst of 30',
    file: 'a.mp4',
    rate: '30/1',
    frames: 600,
    encode: [...H264, '-vf', `select='between(t,8,10)+not(mod(n,15))'`, '-fps_mode', 'vfr', ...AAC],
    becomes: {
      rungs: FULL,
      rate: '30/1',
      frames: 586, // the last one has no length of its own
      shows: (frame) => (frame >= 240 && frame <= 300 ? frame : frame - (frame % 15)),
    },
  },
  {
    is: 'of 120 frames a second',
    file: 'a.mp4',
    rate: '120/1',
    frames: 720,
    audioS: 6,
    encode: [...H264, ...AAC],
    becomes: { rungs: FULL, rate: '60/1', frames: 360, shows: (frame) => 2 * frame },
  },
  {
    is: 'of 15 frames a second, AVI with B-frames and MP3',
    file: 'a.avi',
    rate: '15/1',
    frames: 150,
    encode: ['-c:v', 'mpeg4', '-q:v', '3', '-bf', '2', '-c:a', 'libmp3lame'],
    becomes: { rungs: FULL, frames: 151, waits: 1, audioS: 10.05, audioLateS: -0.047 },
  },
  {
    is: 'of a varying rate, as phones make them',
    file: 'a.mp4',
    rate: '30/1',
    frames: 330,
    // 30 frames a second, then 15, then 10.
    encode: [
      ...H264,
      '-vf',
      `select='lt(n,120)+between(n,120,229)*not(mod(n,2))+gte(n,230)*not(mod(n-230,3))'`,
      '-fps_mode',
      'vfr',
      ...AAC,
    ],
    becomes: {
      rungs: FULL,
      rate: '30/1',
      shows: (frame) => (frame < 120 ? frame : frame < 230 ? frame - (frame % 2) : frame - ((frame - 230) % 3)),
    },
  },
  {
    is: 'beginning at 5 s, MP4',
    file: 'a.mp4',
    encode: [...H264, ...AAC, '-output_ts_offset', '5'],
    becomes: { rungs: FULL },
  },
  {
    is: 'beginning at 5 s, Matroska',
    file: 'a.mkv',
    encode: [...H264, ...AAC, '-output_ts_offset', '5'],
    becomes: { rungs: FULL },
  },
  {
    is: 'with sound that begins 1.5 s late',
    file: 'a.mp4',
    encode: [...H264, ...AAC],
    changes: [{ copied: PICTURE_THEN_SOUND, from: ['-itsoffset', '1.5'] }],
    becomes: { rungs: FULL, frames: 288, audioS: 11.5, audioLateS: 1.5 },
  },
  {
    is: 'with a picture that begins 1.5 s late',
    file: 'a.mp4',
    encode: [...H264, ...AAC],
    changes: [{ copied: SOUND_THEN_PICTURE, from: ['-itsoffset', '1.5'] }],
    becomes: { rungs: FULL, frames: 287, waits: 37, audioS: 11.48, audioLateS: -1.5 },
  },
  { is: 'without sound', file: 'a.mp4', audioS: 0, encode: H264, becomes: { rungs: FULL } },
  { is: 'of sound only, AAC', file: 'a.m4a', frames: 0, encode: ['-vn', ...AAC], becomes: { rungs: '', audioS: 10 } },
  {
    is: 'of sound only, MP3',
    file: 'a.mp3',
    frames: 0,
    encode: ['-vn', '-c:a', 'libmp3lame'],
    becomes: { rungs: '', audioS: 10 },
    inSequence: true,
  },
  {
    is: 'of sound only, Ogg Vorbis',
    file: 'a.ogg',
    frames: 0,
    encode: ['-vn', '-c:a', 'libvorbis'],
    becomes: { rungs: '', audioS: 10 },
    inSequence: true,
  },
  {
    is: 'whose audio lasts 6 s longer',
    file: 'a.mp4',
    frames: 150,
    audioS: 12,
    encode: [...H264, ...AAC],
    becomes: { rungs: FULL, frames: 300, audioS: 12 },
  },
  {
    is: 'whose sound ends 8 s early',
    file: 'a.mp4',
    audioS: 4,
    frames: 300,
    encode: [...H264, ...AAC],
    becomes: { rungs: FULL, audioS: 12 },
  },
  {
    is: 'whose sound ends 8 s early, Matroska',
    file: 'a.mkv',
    audioS: 4,
    frames: 300,
    encode: [...H264, ...AAC],
    becomes: { rungs: FULL, audioS: 12 },
  },
  { is: 'of one frame', file: 'a.mp4', frames: 1, audioS: 0, encode: H264, becomes: { rungs: FULL } },
  { is: 'of 0.2 s', file: 'a.mp4', frames: 6, rate: '30/1', audioS: 0.2, encode: [...H264, ...AAC], becomes: { rungs: FULL } },
  {
    is: 'with one key frame in 14 s',
    file: 'a.mp4',
    frames: 350,
    encode: [...H264, '-g', '9999', ...AAC],
    becomes: { rungs: FULL },
  },
  {
    is: 'with open GOPs',
    file: 'a.mp4',
    encode: [...H264, '-preset', 'veryfast', '-g', '60', '-x264-params', 'open-gop=1', ...AAC],
    becomes: { rungs: FULL },
  },
  {
    is: 'HEVC of 10 bits with open GOPs',
    file: 'a.mp4',
    rate: '30/1',
    encode: [
      '-c:v',
      'libx265',
      '-preset',
      'ultrafast',
      '-pix_fmt',
      'yuv420p10le',
      '-x265-params',
      'keyint=60:open-gop=1:bframes=3:log-level=none',
      '-tag:v',
      'hvc1',
      ...AAC,
    ],
    becomes: { rungs: FULL },
  },
  {
    is: 'ProRes',
    file: 'a.mov',
    encode: ['-c:v', 'prores_ks', '-profile:v', '0', '-c:a', 'pcm_s16le'],
    becomes: { rungs: FULL },
  },
  {
    is: 'VP9 and Opus in WebM',
    file: 'a.webm',
    rate: '30/1',
    encode: ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-g', '90', '-b:v', '300k', '-c:a', 'libopus'],
    becomes: { rungs: FULL },
  },
  { is: 'FLV', file: 'a.flv', encode: [...H264, ...AAC], becomes: { rungs: FULL } },
  {
    is: 'FLV recorded live, which does not know how long it is',
    file: 'a.flv',
    encode: [...H264, ...AAC, '-flvflags', 'no_duration_filesize'],
    becomes: { rungs: FULL },
  },
  {
    is: 'with one channel of sound at 22 kHz',
    file: 'a.mp4',
    encode: [...H264, ...AAC, '-ac', '1', '-ar', '22050'],
    becomes: { rungs: FULL },
  },
  {
    is: 'with six channels of sound at 96 kHz',
    file: 'a.mkv',
    encode: [...H264, '-c:a', 'flac', '-ac', '6', '-ar', '96000'],
    becomes: { rungs: FULL },
  },
  {
    is: 'Matroska without cues, written as a stream',
    file: 'a.mkv',
    encode: [...H264, ...AAC, '-f', 'matroska', '-live', '1'],
    becomes: { rungs: FULL },
  },
  {
    is: 'fragmented MP4',
    file: 'a.mp4',
    encode: [...H264, '-g', '50', ...AAC, '-movflags', '+frag_keyframe+empty_moov'],
    becomes: { rungs: FULL, frames: 252, waits: 2, audioS: 10.09 },
  },
  {
    is: 'cut out of an MP4 without encoding',
    file: 'a.mp4',
    frames: 300,
    encode: [...H264, ...AAC],
    changes: [{ copied: ALL, from: ['-ss', '3.2'] }],
    becomes: { rungs: FULL, frames: 220, shows: (frame) => frame + 80, audioS: 8.8, beeps: 3 },
  },
  {
    is: 'MPEG-TS',
    file: 'a.ts',
    encode: [...H264, '-g', '50', ...AAC],
    becomes: { rungs: FULL },
    inSequence: true,
  },
  {
    is: 'MPEG-TS whose picture begins 0.8 s after its sound',
    file: 'a.ts',
    encode: [...H264, '-g', '50', ...AAC],
    changes: [{ copied: SOUND_THEN_PICTURE, from: ['-itsoffset', '0.8'] }],
    becomes: { rungs: FULL, frames: 270, waits: 20, audioS: 10.8, audioLateS: -0.8 },
    inSequence: true,
  },
  {
    is: 'MPEG-TS whose clock wraps',
    file: 'a.ts',
    encode: [...H264, '-g', '50', ...AAC, '-output_ts_offset', '95439.5'],
    becomes: { rungs: FULL },
    inSequence: true,
  },
  {
    is: 'a DVD’s MPEG-PS, interlaced and anamorphic',
    file: 'a.vob',
    size: [352, 288],
    sar: 16 / 11,
    encode: [...MPEG2, '-vf', 'setsar=16/11,setfield=tff', '-flags', '+ildct+ilme', '-f', 'vob'],
    becomes: { rungs: '512×288 426×240' },
    inSequence: true,
  },
  {
    is: 'Windows Media',
    file: 'a.wmv',
    encode: ['-c:v', 'wmv2', '-q:v', '3', '-c:a', 'wmav2'],
    becomes: { rungs: FULL },
    inSequence: true,
  },
  {
    is: 'Ogg Theora',
    file: 'a.ogv',
    encode: ['-c:v', 'libtheora', '-q:v', '7', '-c:a', 'libvorbis'],
    becomes: { rungs: FULL },
    inSequence: true,
  },
  {
    is: 'MXF',
    file: 'a.mxf',
    encode: [...MPEG2.slice(0, -2), '-c:a', 'pcm_s16le', '-ar', '48000'],
    becomes: { rungs: FULL },
    inSequence: true,
  },
  {
    is: 'a Matroska video of which half arrived',
    file: 'a.mkv',
    frames: 300,
    encode: [...H264, '-g', '50', ...AAC],
    changes: [{ leaves: 0.5 }],
    becomes: {
      rungs: FULL,
      frames: 137,
      // Of its last pictures every second one did not arrive.
      shows: (frame) => (frame < 133 ? frame : 2 * Math.floor(frame / 2)),
      audioS: 5.5,
      beeps: 3,
    },
  },
  {
    is: 'HDR (perceptual quantiser)',
    file: 'a.mp4',
    frames: 150,
    audioS: 6,
    encode: [
      '-c:v',
      'libx265',
      '-preset',
      'ultrafast',
      '-pix_fmt',
      'yuv420p10le',
      '-x265-params',
      'log-level=none',
      ...hdr(),
      ...AAC,
    ],
    becomes: { rungs: FULL },
  },
  {
    is: 'growing in mid-video',
    file: 'a.ts',
    frames: 100,
    audioS: 0,
    encode: [...H264, '-bf', '0'],
    changes: [{ goesOnIn: [640, 360] }],
    becomes: { rungs: FULL, frames: 200, shows: (frame) => frame % 100 },
    inSequence: true,
  },
  {
    is: 'shrinking in mid-video, interlaced',
    file: 'a.ts',
    frames: 100,
    size: [352, 288],
    audioS: 0,
    encode: [...MPEG2.slice(0, 4), '-vf', 'setfield=tff', '-flags', '+ildct+ilme'],
    changes: [{ goesOnIn: [176, 144] }],
    // The decoder itself forgets the last picture before the change.
    becomes: { rungs: '352×288 294×240', frames: 199, shows: (frame) => (frame < 99 ? frame : frame - 99) },
    inSequence: true,
  },
]

function hdr(): string[] {
  return ['-color_primaries', 'bt2020', '-color_trc', 'smpte2084', '-colorspace', 'bt2020nc']
}

/** Videos are kept under the hash of what made them, so that only the first run of the tests makes them. */
const FOLDER = path.join(import.meta.dirname, '../../.cache/odd-videos')

/** Makes the video, or finds it made. */
export async function makeOddVideo(video: OddVideo): Promise<string> {
  const { is: _, becomes: __, turn: ___, inSequence: ____, ...made } = video
  const hash = createHash('sha256')
    .update(JSON.stringify([DRAWING, made]))
    .digest('hex')
    .slice(0, 16)
  const kept = path.join(FOLDER, `${hash}${path.extname(video.file)}`)
  if (existsSync(kept)) return kept
  const work = path.join(FOLDER, `${hash}.${randomBytes(4).toString('hex')}`)
  await mkdir(work, { recursive: true })
  let file = await draw(video, path.join(work, `0-${video.file}`))
  for (const [index, change] of (video.changes ?? []).entries())
    file = await apply(change, video, file, path.join(work, `${index + 1}-${video.file}`))
  await keepFirst(file, kept)
  await rm(work, { recursive: true })
  return kept
}

function draw(video: OddVideo, to: string, size = video.size ?? [320, 180], more: string[] = []): Promise<string> {
  const [widthPx = 0, heightPx = 0] = size
  const inputs = video.audioS === 0 ? [] : beeps(video.audioS ?? 10)
  // A video of sound only is drawn as one picture, which is left out.
  const frames = Math.max(1, framesOf(video))
  const encode = [...video.encode, ...more]
  return drawNumberedVideo(to, { frames, rate: drawnRate(video), widthPx, heightPx, squareAt: video.sar ?? 1, inputs, encode })
}

async function apply(change: Change, video: OddVideo, from: string, to: string): Promise<string> {
  if ('copied' in change) {
    const both = change.copied === ALL || change.copied.includes('-metadata:s:v') ? [] : ['-i', from]
    await ffmpeg(...(change.from ?? []), '-i', from, ...both, ...change.copied, '-c', 'copy', to)
  } else if ('leaves' in change) {
    const whole = await readFile(from)
    await writeFile(to, whole.subarray(0, whole.length * change.leaves))
  } else {
    const lengthS = framesOf(video) / drawnHz(video)
    const other = await draw(video, `${to}.other${path.extname(video.file)}`, change.goesOnIn, [
      '-output_ts_offset',
      String(lengthS),
    ])
    await ffmpeg('-i', `concat:${from}|${other}`, '-c', 'copy', to)
  }
  return to
}

/** How many frames are drawn. */
export function framesOf(video: OddVideo): number {
  return video.frames ?? Math.round(10 * drawnHz(video))
}

/** As a fraction, such as 25/1. */
export function drawnRate({ rate = '25/1' }: OddVideo): string {
  return rate
}

export function drawnHz(video: OddVideo): number {
  const [num = 0, den = 1] = drawnRate(video).split('/').map(Number)
  return num / den
}

const BEEP_S = 0.08

/** A beep of 1 kHz at each odd second. */
function beeps(seconds: number): string[] {
  return ['-f', 'lavfi', '-i', `aevalsrc='0.5*sin(2*PI*1000*t)*lt(mod(t+1,2),${BEEP_S})':s=44100:d=${seconds}`]
}

/** The numbers that each frame should show. */
export function numbersOf(video: OddVideo, frameCount: number): number[] {
  const { shows, waits = 0 } = video.becomes
  const last = framesOf(video) - 1
  return count(frameCount).map(shows ?? ((frame) => Math.min(Math.max(0, frame - waits), last)))
}
