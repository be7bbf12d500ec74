import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { crc32, deflateSync } from 'node:zlib'
import { expect } from 'vitest'
import { reencodeImage } from '../../src/encode/image.ts'
import { MediaFailure } from '../../src/encode/media-failure.ts'
import { encodeBox, parseBoxes, u32 } from '../../src/mp4/boxes.ts'
import { sampledTests } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { openCanary } from './canary.ts'
import {
  count,
  type EncodedVideo,
  encodeVideo,
  ffmpeg,
  joinRendition,
  newFolder,
  openDefaultSandbox,
  openVideo,
  readShape,
} from './videos.ts'

const { test, draw } = sampledTests('hostile media', 3)

// Files that are videos, or nearly, and made to harm their reader.

const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']
const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=s=64x36:r=25:d=2']
const TONE = ['-f', 'lavfi', '-i', 'sine=440:d=2']

test('M07: a playlist in the subtitles of an AVI is not followed: what is seen is the same as without', async () => {
  const canary = await openCanary()
  const playlist = `#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1.0,\nhttp://127.0.0.1:${canary.port}/x\n#EXTINF:1.0,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n`
  const jpegs = await ffmpeg(...PICTURE, '-c:v', 'mjpeg', '-f', 'image2pipe', '-')
  const [harmless, hostile] = [
    await encode(await write('a.avi', avi(jpegs))),
    await encode(await write('b.avi', avi(jpegs, playlist))),
  ]
  expect(allBytes(hostile).equals(allBytes(harmless))).toBe(true)
  expect(canary.calls()).toBe(0)
})

test('M10: a Matroska video with four thousand streams is refused; five thousand attachments are of no account', async () => {
  const png = blackPng(16)
  await expect(openVideo(await write('a.mkv', matroska({ png, streams: 4000 })))).rejects.toThrow(
    'The file has more streams than a video can have.',
  )
  expect((await encode(await write('b.mkv', matroska({ png, attachments: 5000 })))).segments.get(1)?.size).toBe(1)
})

test('M10: ten thousand chapters are of no account', async () => {
  const folder = await newFolder()
  const chapters = count(10_000).map((n) => `[CHAPTER]\nTIMEBASE=1/10000\nSTART=${n}\nEND=${n + 1}\ntitle=Chapter ${n}\n`)
  const list = path.join(folder, 'chapters')
  await writeFile(list, `;FFMETADATA1\n${chapters.join('')}`)
  const file = path.join(folder, 'a.mkv')
  await ffmpeg(...PICTURE, '-i', list, '-map_chapters', '1', ...H264, file)
  expect((await encode(file)).segments.get(1)?.size).toBe(1)
})

test.each([15_000, 16_000, 16_383, 30_000])(
  'M12: a PNG of %i pixels a side is refused before it is drawn, as a picture and as a video',
  async (sidePx) => {
    const png = blackPng(sidePx)
    expect(png.length).toBeLessThan(200_000)
    await expect(reencodeImage(await openDefaultSandbox(), await newFolder(), png)).rejects.toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining('too many pixels'),
    })
    await expect(openVideo(await write('a.mkv', matroska({ png, sidePx })))).rejects.toMatchObject({
      message: `The video is ${sidePx}×${sidePx} pixels; at most 40 megapixels are accepted.`,
    })
  },
)

test('M14: a million frames a second become as many as can be seen', async () => {
  const file = await make(
    'a.mp4',
    ...PICTURE,
    '-vf',
    'setpts=N/1000000/TB',
    '-enc_time_base',
    '1/1000000',
    '-fps_mode',
    'passthrough',
    '-video_track_timescale',
    '1000000',
    ...H264,
  )
  const { plan } = await openVideo(file)
  expect(plan.videoTrack?.frameCount).toBeLessThan(3)
  await encode(file)
})

test('M14: a frame each million seconds is refused for its length', async () => {
  const file = await make('a.mkv', '-f', 'lavfi', '-i', 'testsrc2=s=64x36:r=1/1000000', '-frames:v', '2', ...H264)
  await expect(openVideo(file)).rejects.toThrow(/hours long; at most 24 hours are accepted\.$/)
})

test('M14: a video whose clock has no ticks, or whose times are before zero, comes out bounded or is refused', async () => {
  const whole = await readFile(await make('a.mp4', ...PICTURE, ...TONE, ...H264, '-c:a', 'aac'))
  const early = await make(
    'b.mkv',
    ...PICTURE,
    ...TONE,
    ...H264,
    '-c:a',
    'aac',
    '-output_ts_offset',
    '-1.5',
    '-avoid_negative_ts',
    'disabled',
  )
  for (const file of [await write('c.mp4', stopClock(whole)), early]) {
    const encoded = await encode(file).catch(mediaFailure)
    if (encoded) expect(encoded.segments.get(1)?.size).toBeLessThan(3)
  }
})

test.each([
  { size: '1x1', sar: '1/1', shape: '2x2' },
  { size: '2x2', sar: '1/1', shape: '2x2' },
  { size: '3x4097', sar: '1/1', shape: '2x4096' },
  { size: '64x36', sar: '1/65535', shape: '64x36' },
  { size: '64x36', sar: '65535/1', shape: '64x36' },
])('M15: a picture of $size with samples of $sar becomes one of $shape', async ({ size, sar, shape }) => {
  const file = await make(
    'a.mkv',
    '-f',
    'lavfi',
    '-i',
    `color=gray:s=64x4097:r=25:d=1,format=yuv444p,crop=${size.replace('x', ':')}:0:0:1,setsar=${sar}:max=65535`,
    '-c:v',
    'ffv1',
    '-pix_fmt',
    'yuv444p',
  )
  const encoded = await encode(file)
  expect(await readShape(await joinRendition(await newFolder(), encoded, 1))).toBe(`${shape}x1:1`)
})

test('M16: of 256 audio tracks the first is used', async () => {
  const audioTrack = await make('a.m4a', ...TONE, '-c:a', 'aac')
  const file = await make(
    'b.mp4',
    ...PICTURE,
    '-i',
    audioTrack,
    '-map',
    '0:v',
    ...count(256).flatMap(() => ['-map', '1:a']),
    ...H264,
    '-c:a',
    'copy',
  )
  expect((await openVideo(file)).plan.audioTrack).toMatchObject({ renditionId: 2 })
  expect((await encode(file)).segments.get(2)?.size).toBe(1)
})

const chance = newChance('harmed videos')

test.each(['mp4', 'mkv', 'ts'])(
  'M17: a video (%s) that was cut or changed anywhere comes out or is refused, and nothing else happens',
  async (container) => {
    const whole = await readFile(await make(`a.${container}`, ...PICTURE, ...TONE, ...H264, '-c:a', 'aac'))
    const cuts = count(19)
      .toSorted(() => chance.next() - 0.5)
      .slice(0, rounds(2, 19))
      .map((n) => whole.subarray(0, (whole.length * (n + 1)) / 20))
    const flips = count(rounds(4, 170)).map(() => {
      const changed = Buffer.from(whole)
      const at = Math.floor(chance.between(0, whole.length))
      changed.writeUInt8(changed.readUInt8(at) ^ (1 << Math.floor(chance.between(0, 8))), at)
      return changed
    })
    for (const bytes of [...cuts, ...flips]) await encode(await write(`b.${container}`, bytes)).catch(mediaFailure)
  },
  600_000,
)

test.each([
  { what: 'boxes ten thousand deep', file: (moov: Buffer) => count(10_000).reduce((inner) => encodeBox('moov', inner), moov) },
  { what: 'an index of many megabytes of nothing', file: () => encodeBox('moov', Buffer.alloc(rounds(32, 500) * 2 ** 20)) },
  {
    what: 'many megabytes of nothing before its index',
    file: (moov: Buffer) => Buffer.concat([encodeBox('mdat', Buffer.alloc(rounds(64, 500) * 2 ** 20)), moov]),
  },
])(
  'M18: an MP4 with $what is read within its bounds and refused',
  async ({ file }) => {
    const video = await readFile(await make('a.mp4', ...PICTURE, ...H264))
    const moov = parseBoxes(video).find(({ type }) => type === 'moov')
    if (!moov) throw new Error('no moov')
    const ftyp = video.subarray(0, video.readUInt32BE(0))
    const hostile = Buffer.concat([ftyp, file(video.subarray(moov.start, moov.end))])
    await encode(await write('b.mp4', hostile)).then(() => Promise.reject(new Error('it came out')), mediaFailure)
  },
  120_000,
)

test.each([
  { kind: 'ZIP', begins: 'PK\x03\x04\x14\0\0\0' },
  { kind: 'TAR', begins: `video.mp4${'\0'.repeat(249)}ustar\x0000` },
  { kind: 'EXE', begins: 'MZ\x90\0\x03\0\0\0' },
  { kind: 'HTML', begins: '<!doctype html><script>alert(1)</script>' },
  { kind: 'PDF', begins: '%PDF-1.7\n' },
])('M19: a $kind file that is called video.mp4 is refused', async ({ begins }) => {
  const file = await write('video.mp4', Buffer.concat([Buffer.from(begins, 'latin1'), Buffer.alloc(5000, 'reelgate ')]))
  await expect(openVideo(file)).rejects.toMatchObject({ status: 'Not a media file' })
})

const SCRIPT = '<script>alert("reelgate")</script>'

test('M19: of a video that is also a web page, only the video goes out', async () => {
  const video = await readFile(await make('a.mp4', ...PICTURE, ...H264, '-movflags', '+faststart'))
  const ftypEnd = video.readUInt32BE(0)
  const page = encodeBox('free', Buffer.from(`\n--><!doctype html>${SCRIPT}`.repeat(20)))
  // Behind everything that is pointed to, and where a browser would look for what it is.
  const both = Buffer.concat([video.subarray(0, ftypEnd), video.subarray(ftypEnd), page])
  expect(allBytes(await encode(await write('b.mp4', both))).includes(SCRIPT)).toBe(false)
})

test('M20: what a video says of itself does not go out with it', async () => {
  const says = `${SCRIPT}\x1b[31m\r\n`
  const tags = ['title', 'artist', 'encoder', 'handler_name'].flatMap((name) => [
    '-metadata',
    `${name}=${says}`,
    '-metadata:s',
    `${name}=${says}`,
  ])
  const long = ['-metadata', `comment=${SCRIPT.repeat(3500)}`]
  for (const name of ['a.mp4', 'a.mkv']) {
    const file = await make(name, ...PICTURE, ...TONE, ...H264, '-c:a', 'aac', ...tags, ...long)
    expect((await readFile(file)).includes(SCRIPT)).toBe(true)
    expect(allBytes(await encode(file)).includes(SCRIPT)).toBe(false)
  }
})

async function make(name: string, ...args: string[]): Promise<string> {
  const file = path.join(await newFolder(), name)
  await ffmpeg(...args, file)
  return file
}

async function write(name: string, bytes: Buffer): Promise<string> {
  const file = path.join(await newFolder(), name)
  await writeFile(file, bytes)
  return file
}

async function encode(file: string): Promise<EncodedVideo> {
  return encodeVideo(await openVideo(file), { chunkSegments: 1000, decodesFromStart: true })
}

/** What may be said of a video; everything else is a fault of ours. */
function mediaFailure(error: unknown): undefined {
  if (!(error instanceof MediaFailure)) throw error
  expect(error.message).toMatch(/^[^\p{C}]+[.\p{L}\d)]$/u)
}

function allBytes(video: EncodedVideo): Buffer {
  const segments = [...video.segments.values()].flatMap((rendition) => [...rendition.values()])
  return Buffer.concat([...[...video.inits.values()].flat(), ...segments])
}

/** An AVI of JPEGs; with a text, also a track of subtitles that holds it as a file. */
function avi(jpegs: Buffer, text?: string): Buffer {
  const le = (...values: number[]) => {
    const bytes = Buffer.alloc(4 * values.length)
    values.forEach((value, index) => void bytes.writeUInt32LE(value, 4 * index))
    return bytes
  }
  const chunk = (id: string, ...parts: Buffer[]) => {
    const content = Buffer.concat(parts)
    return Buffer.concat([Buffer.from(id), le(content.length), content, Buffer.alloc(content.length % 2)])
  }
  const list = (type: string, ...parts: Buffer[]) => chunk('LIST', Buffer.from(type), ...parts)
  const frames = jpegs
    .toString('latin1')
    .split(/(?=\xff\xd8\xff)/)
    .map((jpeg) => Buffer.from(jpeg, 'latin1'))
  const header = (type: string, handler: string, length: number) =>
    chunk('strh', Buffer.from(type + handler), le(0, 0, 0, 1, 25, 0, length, 0, 0xffff_ffff, 0, 0, 0))
  const bitmap = chunk('strf', le(40, 64, 36, 0x18_0001), Buffer.from('MJPG'), le(64 * 36 * 3, 0, 0, 0, 0))
  const image = list('strl', header('vids', 'MJPG', frames.length), bitmap)
  const subtitles = text === undefined ? [] : [list('strl', header('txts', '\0\0\0\0', 1), chunk('strf'))]
  const main = chunk('avih', le(40_000, 0, 0, 0, frames.length, 0, 1 + subtitles.length, 0, 64, 36, 0, 0, 0, 0))
  const block = Buffer.concat([
    Buffer.from('GAB2\0\x02\0'),
    le(2),
    Buffer.from('x\0'),
    Buffer.from([4, 0]),
    le(text?.length ?? 0),
    Buffer.from(text ?? ''),
  ])
  const movie = list(
    'movi',
    ...(text === undefined ? [] : [chunk('01tx', block)]),
    ...frames.map((frame) => chunk('00dc', frame)),
  )
  return chunk('RIFF', Buffer.from('AVI '), list('hdrl', main, image, ...subtitles), movie)
}

type HandMade = { png: Buffer; sidePx?: number; streams?: number; attachments?: number }

/** A Matroska video of one second made by hand: a PNG three times, and as much else as is asked for. */
function matroska({ png, sidePx = 16, streams = 1, attachments = 0 }: HandMade): Buffer {
  const element = (id: string, ...parts: Buffer[]) => {
    const content = Buffer.concat(parts)
    const size = Buffer.alloc(8)
    size.writeBigUInt64BE(BigInt(content.length) | (1n << 56n))
    return Buffer.concat([Buffer.from(id, 'hex'), size, content])
  }
  const number = (id: string, value: number) => element(id, u32(value))
  const text = (id: string, value: string) => element(id, Buffer.from(value))
  const le32 = (value: number) => Buffer.from([value, value >> 8, value >> 16, value >> 24])
  const bitmap = Buffer.concat([le32(40), le32(sidePx), le32(sidePx), le32(0x18_0001), Buffer.from('MPNG'), Buffer.alloc(20)])
  const track = (n: number) =>
    element(
      'ae',
      number('d7', n),
      number('73c5', n),
      number('83', 1),
      text('86', 'V_MS/VFW/FOURCC'),
      element('63a2', bitmap),
      element('e0', number('b0', sidePx), number('ba', sidePx)),
    )
  const attachment = (n: number) =>
    element('61a7', text('466e', `${n}.ttf`), text('4660', 'font/ttf'), element('465c', Buffer.from('x')), number('46ae', n + 1))
  const block = (n: number) => element('a3', Buffer.from([0x81, n >> 8, n & 0xff, 0x80]), png)
  return Buffer.concat([
    element('1a45dfa3', text('4282', 'matroska'), number('4287', 4), number('4285', 2)),
    element(
      '18538067',
      element('1549a966', number('2ad7b1', 1_000_000)),
      element('1654ae6b', ...count(streams).map((n) => track(n + 1))),
      ...(attachments > 0 ? [element('1941a469', ...count(attachments).map(attachment))] : []),
      element('1f43b675', number('e7', 0), ...[0, 500, 1000].map(block)),
    ),
  ])
}

/** A black square of one bit a pixel. */
function blackPng(sidePx: number): Buffer {
  const chunk = (type: string, content: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), content])
    return Buffer.concat([u32(content.length), named, u32(crc32(named))])
  }
  const rows = Buffer.alloc((1 + Math.ceil(sidePx / 8)) * sidePx)
  const header = Buffer.concat([u32(sidePx, sidePx), Buffer.from([1, 0, 0, 0, 0])])
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Sets the ticks a second of every track to none. */
function stopClock(video: Buffer): Buffer {
  const stopped = Buffer.from(video)
  for (let at = stopped.indexOf('mdhd'); at >= 0; at = stopped.indexOf('mdhd', at + 4)) stopped.writeUInt32BE(0, at + 4 + 12)
  return stopped
}

draw()
