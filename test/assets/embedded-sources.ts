import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ffmpeg } from '../encode/videos.ts'
import { keepVideo } from '../videos.ts'

// Files with captions and chapters inside, of every kind that owners are known to bring, made by ffmpeg.

/** One subtitle track: a file as it is put in, and how. */
type TrackSource = {
  name: string
  text: string | Buffer
  /** Of ffmpeg; by default it is copied. */
  codec?: string
  language?: string
  title?: string
  /** Arguments before its input. */
  input?: string[]
}

export type EmbeddedSource = {
  is: string
  /** Its container is what the name ends in. */
  file: string
  /** The video that they are put into; by default a test picture of 8 s without sound. */
  around?: string
  tracks?: TrackSource[]
  /** Chapters as `[start, end, title]` in milliseconds. */
  chapters?: [number, number, string?][]
  /** Output options. */
  args?: string[]
  /** How much of the made file is left. */
  leaves?: number
}

const SECONDS = 8
const time = (atS: number, point = ',') => `00:00:${(atS < 10 ? '0' : '') + atS.toFixed(3).replace('.', point)}`
const srt = (...cues: [number, number, string][]) =>
  cues.map(([fromS, toS, text], n) => `${n + 1}\n${time(fromS)} --> ${time(toS)}\n${text}\n`).join('\n')
const HELLO = srt([1, 2, 'Hello <i>there</i> & all'], [3.5, 5, 'Two\nlines'])

/** In Windows-1251, which is not Unicode. */
const CYRILLIC = Buffer.concat([
  Buffer.from('1\n00:00:01,000 --> 00:00:03,000\n'),
  Buffer.from([
    0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2, 0x2c, 0x20, 0xec, 0xe8, 0xf0, 0x20, 0xe8, 0x20, 0xe4, 0xf0, 0xf3, 0xe7, 0xfc, 0xff,
  ]),
  Buffer.from('\n'),
])

const ASS = `[Script Info]
ScriptType: v4.00+
[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding
Style: Default,Arial,16,&Hffffff,&Hffffff,&H0,&H0,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,0
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.50,0:00:02.50,Default,,0,0,0,,{\\b1}Bold{\\b0} {\\c&H0000FF&\\pos(10,10)\\fad(100,100)}red{\\r}\\Nsecond <script>line
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,{\\p1}m 0 0 l 100 0 100 100{\\p0}
Comment: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,a note
`

/** A picture of Blu-ray captions: one packet that ends an epoch is enough to be a stream. */
const PGS = Buffer.concat(
  [1, 3].flatMap((atS) => {
    const segment = (type: number, payload: Buffer) => {
      const head = Buffer.alloc(13)
      head.write('PG')
      head.writeUInt32BE(atS * 90_000, 2)
      head.writeUInt8(type, 10)
      head.writeUInt16BE(payload.length, 11)
      return Buffer.concat([head, payload])
    }
    return [segment(0x16, Buffer.from('00600040100001800000000000', 'hex').subarray(0, 11)), segment(0x80, Buffer.alloc(0))]
  }),
)

const LONG_TITLE = 'A long title '.repeat(30)

export const EMBEDDED_SOURCES: readonly EmbeddedSource[] = [
  { is: 'text in MP4', file: 'a.mp4', tracks: [{ name: 'a.srt', text: HELLO, codec: 'mov_text', language: 'eng' }] },
  { is: 'SubRip in Matroska', file: 'b.mkv', tracks: [{ name: 'a.srt', text: HELLO, language: 'ger', title: 'Full' }] },
  { is: 'WebVTT in WebM', file: 'c.webm', tracks: [{ name: 'a.srt', text: HELLO, codec: 'webvtt', language: 'fre' }] },
  { is: 'styled ASS with a drawing', file: 'd.mkv', tracks: [{ name: 'a.ass', text: ASS, language: 'eng' }] },
  {
    is: 'SubRip in Windows-1251',
    file: 'e.mkv',
    tracks: [{ name: 'a.srt', text: CYRILLIC, language: 'rus' }],
  },
  {
    is: 'SubRip in an encoding that cannot be known',
    file: 'f.mkv',
    tracks: [{ name: 'a.srt', text: CYRILLIC, language: 'eng' }],
  },
  {
    is: 'two of one language, one without a language',
    file: 'g.mkv',
    tracks: [
      { name: 'a.srt', text: HELLO, language: 'eng' },
      { name: 'b.srt', text: srt([2, 3, '[door slams]']), language: 'eng', title: 'For the\u0007 hard\nof hearing' },
      { name: 'c.srt', text: HELLO },
    ],
  },
  { is: 'pictures as captions', file: 'h.mkv', tracks: [{ name: 'a.sup', text: PGS, language: 'dut' }] },
  {
    is: '22 tracks',
    file: 'i.mkv',
    tracks: Array.from({ length: 22 }, (_, n) => ({ name: `${n}.srt`, text: HELLO, language: 'eng', title: `Track ${n}` })),
  },
  {
    is: 'cues that overlap, or begin before the video',
    file: 'j.mkv',
    tracks: [
      {
        name: 'a.srt',
        text: srt([0.2, 0.8, 'Gone'], [0.5, 3, 'Cut'], [2, 4, 'One'], [2, 4, 'Other']),
        input: ['-itsoffset', '-1'],
        language: 'eng',
      },
    ],
  },
  {
    is: 'a clock that begins at 10 s',
    file: 'k.mkv',
    tracks: [{ name: 'a.srt', text: HELLO, language: 'eng' }],
    chapters: [
      [10_000, 14_000, 'One'],
      [14_000, 18_000, 'Two'],
    ],
    args: ['-output_ts_offset', '10'],
  },
  {
    is: 'an empty track next to another',
    file: 'l.mkv',
    tracks: [
      { name: 'a.ass', text: ASS.replace(/^(Dialogue|Comment).*\n/gm, ''), language: 'ita' },
      { name: 'b.srt', text: HELLO, language: 'eng' },
    ],
  },
  {
    is: 'captions of more than 5 MiB',
    file: 'm.mkv',
    tracks: [
      {
        name: 'a.srt',
        text: srt(...Array.from({ length: 60 }, (_, n): [number, number, string] => [n / 10, n / 10 + 1, 'x'.repeat(100_000)])),
        language: 'eng',
      },
    ],
  },
  {
    is: 'cut off in the middle',
    file: 'n.mkv',
    tracks: [{ name: 'a.srt', text: HELLO, language: 'eng' }],
    chapters: [
      [0, 4000, 'One'],
      [7900, 8000, 'Behind the cut'],
    ],
    leaves: 0.6,
  },
  {
    is: 'chapters in MP4',
    file: 'o.mp4',
    chapters: [
      [0, 4000, 'One | two = three \\\\ 4'],
      [4000, 8000, '<b>Ende & Schluß'],
    ],
  },
  {
    is: 'chapters in Matroska',
    file: 'p.mkv',
    chapters: [
      [500, 4000, 'One'],
      [4000, 8000, 'Two'],
    ],
  },
  {
    is: 'broken chapters',
    file: 'q.mkv',
    chapters: [
      [0, 2000],
      [2000, 3000, LONG_TITLE],
      [2000, 4000, 'At the same time'],
      [60_000, 61_000, 'Behind the end'],
    ],
  },
  {
    is: 'a chapter without a title, in MP4',
    file: 't.mp4',
    chapters: [
      [0, 2000, 'One'],
      [2000, 4000],
      [4000, 8000, 'Three'],
    ],
  },
  { is: '400 chapters', file: 'r.mkv', chapters: Array.from({ length: 400 }, (_, n) => [n * 20, n * 20 + 20, `Part ${n}`]) },
  { is: 'no captions and no chapters', file: 's.mkv' },
]

/** @returns the path of the made file, which only the first run of the tests makes */
export function makeEmbedded(source: EmbeddedSource): Promise<string> {
  return keepVideo(JSON.stringify(source), path.extname(source.file), (made) =>
    withFolder((folder) => make(source, folder, made)),
  )
}

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'reelgate-embedded-'))
  await use(folder).finally(() => rm(folder, { recursive: true }))
}

async function make(
  { file, around, tracks = [], chapters, args = [], leaves }: EmbeddedSource,
  folder: string,
  made: string,
): Promise<void> {
  const inputs: string[] = []
  const options: string[] = []
  for (const [index, { name, text, codec = 'copy', language, title, input = [] }] of tracks.entries()) {
    const trackFile = path.join(folder, name)
    await writeFile(trackFile, text)
    inputs.push(...input, '-i', trackFile)
    options.push('-map', String(index + 1), `-c:s:${index}`, codec)
    if (language) options.push(`-metadata:s:s:${index}`, `language=${language}`)
    if (title) options.push(`-metadata:s:s:${index}`, `title=${title}`)
  }
  if (chapters) {
    await writeFile(path.join(folder, 'chapters'), `;FFMETADATA1\n${chapters.map(chapterText).join('')}`)
    inputs.push('-f', 'ffmetadata', '-i', path.join(folder, 'chapters'))
    options.push('-map_chapters', String(tracks.length + 1))
  }
  const video = around ?? (await makePicture(file.endsWith('.webm')))
  await ffmpeg('-i', video, ...inputs, '-map', '0', '-c:v', 'copy', '-c:a', 'copy', ...options, ...args, made)
  if (leaves === undefined) return
  const bytes = await readFile(made)
  await writeFile(made, bytes.subarray(0, bytes.length * leaves))
}

function chapterText([fromMs, toMs, title]: [number, number, string?]): string {
  const lines = ['[CHAPTER]', 'TIMEBASE=1/1000', `START=${fromMs}`, `END=${toMs}`]
  return [...lines, ...(title ? [`title=${title.replace(/[=;#]/g, '\\$&')}`] : []), ''].join('\n')
}

function makePicture(isWebM: boolean): Promise<string> {
  const encode = isWebM
    ? ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8']
    : ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25']
  const args = ['-f', 'lavfi', '-i', `testsrc2=size=96x64:rate=25:duration=${SECONDS}`, ...encode]
  return keepVideo(args.join(' '), isWebM ? '.webm' : '.mkv', (file) => ffmpeg(...args, file))
}
