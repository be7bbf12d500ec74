import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { MediaFailure } from '../../src/encode/media-failure.ts'
import { probeSource } from '../../src/encode/probe.ts'
import { encodeBox, parseBoxes, u16, u32 } from '../../src/mp4/boxes.ts'
import { sampleOf } from '../sample.ts'
import { openCanary } from './canary.ts'
import { ffmpeg, newFolder, openDefaultSandbox, openVideo, seal, withoutBubblewrap } from './videos.ts'

const SIBLING = 'sibling.ts'
const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast']
let sibling: string
beforeAll(async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'reelgate-sibling-'))
  sibling = path.join(folder, SIBLING)
  await ffmpeg('-f', 'lavfi', '-i', 'color=red:s=160x90:d=5', sibling)
  return () => rm(folder, { recursive: true })
})

const hls = (...lines: string[]) =>
  ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-TARGETDURATION:5', ...lines, '#EXT-X-ENDLIST', ''].join('\n')

const HOSTILE: readonly (readonly [name: string, text: string])[] = [
  ['M01: a playlist that names a neighbour', hls('#EXTINF:5,', SIBLING)],
  ['M02: a playlist that names an absolute path', hls('#EXTINF:5,', '/etc/passwd')],
  ['M02: a playlist with file:', hls('#EXTINF:5,', 'file:///etc/passwd')],
  ['M02: a playlist with subfile', hls('#EXTINF:5,', 'subfile,,start,0,end,64,,:/etc/passwd')],
  ['M02: a playlist with crypto:', hls('#EXTINF:5,', 'crypto:/etc/passwd')],
  ['M02: a playlist with data:', hls('#EXTINF:5,', 'data:video/mp2t;base64,R0AREABC')],
  ['M03: a playlist whose segment is a URL', hls('#EXTINF:5,', 'http://CANARY/seg.ts')],
  ['M03: a playlist whose key is a URL', hls('#EXT-X-KEY:METHOD=AES-128,URI="http://CANARY/k"', '#EXTINF:5,', SIBLING)],
  ['M03: a playlist whose init segment is a URL', hls('#EXT-X-MAP:URI="http://CANARY/init"', '#EXTINF:5,', SIBLING)],
  ['M04: a concat script with a neighbour', `ffconcat version 1.0\nfile ${SIBLING}\n`],
  ['M04: a concat script with an absolute path', 'ffconcat version 1.0\nfile /etc/passwd\n'],
  ['M04: a concat script with a URL', 'ffconcat version 1.0\nfile http://CANARY/a.ts\n'],
  ['M05: a DASH manifest', mpd('<BaseURL>http://CANARY/</BaseURL>')],
  [
    'M05: a DASH manifest with an external entity',
    `<!DOCTYPE x [<!ENTITY e SYSTEM "http://CANARY/e">]>${mpd('<BaseURL>&e;</BaseURL>')}`,
  ],
  ['M05: a DASH manifest with entities that explode', `<!DOCTYPE x [${explosion()}]>${mpd('<BaseURL>&e9;</BaseURL>')}`],
  [
    'M06: an SDP text',
    'v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video CANARYPORT RTP/AVP 96\na=rtpmap:96 H264/90000\n',
  ],
  [
    'M08: an SVG with an outside image',
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="http://CANARY/i"/></svg>',
  ],
  ['U20: a text', 'Dear diary, this is not a video. '.repeat(100)],
  ['U20: one byte', 'x'],
  ['U20: nothing at all', ''],
]

test.each(sampleOf('texts that are no video', HOSTILE, 4))(
  '%s is refused with a reason, and nothing is opened',
  async (_, text) => {
    const canary = await openCanary()
    const folder = await newFolder()
    await copyFile(sibling, path.join(folder, SIBLING))
    const file = path.join(folder, 'video.mp4')
    await writeFile(file, text.replaceAll('CANARYPORT', String(canary.port)).replaceAll('CANARY', `127.0.0.1:${canary.port}`))
    const source = await seal(file)
    const sandbox = await openDefaultSandbox()
    for (const means of [sandbox, withoutBubblewrap(sandbox)]) {
      const probed = probeSource(means, source)
      await expect(probed).rejects.toBeInstanceOf(MediaFailure)
      await expect(probed).rejects.toMatchObject({
        status: 'Not a media file',
        message: expect.stringMatching(/^The file .*\.$/),
      })
    }
    expect(canary.calls()).toBe(0)
  },
)

test('M09: a video whose data lie in another file is refused', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mov')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25:d=2', ...H264, file)
  await writeFile(file, pointElsewhere(await readFile(file), '/etc/passwd'))
  await expect(openVideo(file)).rejects.toMatchObject({
    status: 'Not a media file',
    message: expect.stringContaining('refers to another file'),
  })
})

test('M11: an image of more than 40 megapixels is rejected before it is decoded', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mp4')
  await ffmpeg('-f', 'lavfi', '-i', 'color=gray:s=8000x6000:r=5', '-frames:v', '1', ...H264, file)
  const sandbox = await openDefaultSandbox()
  // One decoded picture would be 72 MB more.
  await expect(probeSource(sandbox, await seal(file))).rejects.toThrow(
    'The video is 8000×6000 pixels; at most 40 megapixels are accepted.',
  )
})

test('an image file is not a video', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.png')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=160x90', '-frames:v', '1', file)
  await expect(openVideo(file)).rejects.toThrow(
    'The file is of the kind "png_pipe", which is not read here. Videos are read in MP4',
  )
})

test('a Matroska video that was cut off is as long as what arrived', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mkv')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25:d=8', ...H264, '-g', '25', file)
  const whole = await readFile(file)
  await writeFile(file, whole.subarray(0, whole.length / 2))
  const { plan } = await openVideo(file)
  expect(plan.durationS).toBeGreaterThan(2)
  expect(plan.durationS).toBeLessThan(6)
})

test('M13: a video longer than a day is refused', async () => {
  const folder = await newFolder()
  const file = path.join(folder, 'video.mkv')
  await ffmpeg('-f', 'lavfi', '-i', 'color=s=16x16:r=1/3600:d=100000', ...H264, file)
  await expect(openVideo(file)).rejects.toThrow('The video is 28 hours long; at most 24 hours are accepted.')
})

function mpd(content: string) {
  const set = `<AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">${content}</Representation></AdaptationSet>`
  return `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT9S"><Period>${set}</Period></MPD>`
}

function explosion() {
  const levels = Array.from({ length: 9 }, (_, n) => `<!ENTITY e${n + 1} "${`&e${n};`.repeat(10)}">`)
  return `<!ENTITY e0 "aaaaaaaaaa">${levels.join('')}`
}

/** Rewrites a video's data reference into a Macintosh alias with an absolute path, as ffmpeg reads it. */
function pointElsewhere(video: Buffer, elsewhere: string): Buffer {
  const parents = ['moov', 'trak', 'mdia', 'minf', 'dinf']
  const parts = parseBoxes(video).map(({ type, start, contentStart, end }) => {
    if (type === 'dref') return encodeBox(type, video.subarray(contentStart, contentStart + 8), alias(elsewhere))
    return parents.includes(type)
      ? encodeBox(type, pointElsewhere(video.subarray(contentStart, end), elsewhere))
      : video.subarray(start, end)
  })
  return Buffer.concat(parts)
}

function alias(file: string): Buffer {
  const text = (value: string, bytes: number) =>
    Buffer.concat([Buffer.from([value.length]), Buffer.from(value.padEnd(bytes, '\0'))])
  const name = path.basename(file)
  const absolutePath = Buffer.concat([u16(2, file.length), Buffer.from(file), Buffer.alloc(file.length % 2)])
  const end = Buffer.concat([u16(0xffff, 0), Buffer.alloc(40)])
  const levels = Buffer.concat([Buffer.alloc(16), u16(1, 1), Buffer.alloc(16)])
  return encodeBox(
    'alis',
    u32(0),
    Buffer.alloc(10),
    text('disk', 27),
    Buffer.alloc(12),
    text(name, 63),
    levels,
    absolutePath,
    end,
  )
}
