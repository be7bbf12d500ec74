import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { crc32, deflateSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parseInWorker } from '../../src/assets/caption.ts'
import { toSafeWebVtt } from '../../src/assets/safe-webvtt.ts'
import { removeImage, renderPosterSizes, sealImage } from '../../src/encode/image.ts'
import { openSandbox } from '../../src/sandbox/bubblewrap.ts'
import { makeImage, SRT } from './sample-files.ts'

// What owners' users send as captions and posters.

const cue = (text: string) => `WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n${text}\n`
const safe = (text: string | Buffer) => toSafeWebVtt(Buffer.from(text), 'en')

describe('M28: captions', () => {
  test.each([
    ['scripts', '1\n00:00:01,000 --> 00:00:02,000\n<script>alert(1)</script>x<img src=x onerror=y>', cue('alert(1)x')],
    [
      'styles, regions and notes',
      `WEBVTT\n\nSTYLE\n::cue { background: url(http://x) }\n\nREGION\nid:a\n\nNOTE a\n\n00:01.000 --> 00:02.000 region:a\nx`,
      cue('x'),
    ],
    ['drawing of ASS', '1\n00:00:01,000 --> 00:00:02,000\n{\\p1}{\\an8}x', cue('x')],
    ['tags left open, or closed twice', '1\n00:01 --> 00:02\n<b><i>x</b></i></u>', cue('<b><i>x</i></b>')],
    ['what only looks like a tag', '1\n00:01 --> 00:02\nI <3 you & me', cue('I &lt;3 you &amp; me')],
  ])('lose %s', (_, given, wanted) => expect(safe(given)).toBe(wanted))

  test.each([
    ['a byte order mark', Buffer.from(`\ufeff${SRT}`)],
    ['UTF-16', Buffer.from(`\ufeff${SRT}`, 'utf16le')],
    ['UTF-16 without a mark', Buffer.from(SRT, 'utf16le')],
    ['bare line feeds and no end of the last line', Buffer.from(SRT.replaceAll('\r\n', '\n').trimEnd())],
    ['points and no hours', Buffer.from('1\n00:00.500 --> 00:02.5\nA first <b>line</b> & more')],
  ])('are read with %s', (_, bytes) => expect(toSafeWebVtt(bytes, 'en')).toBe(safe(SRT)))

  test('whose text begins with a time of day keep it', () => {
    const text = '12:30 to 14:45'
    expect(safe(`1\n00:00:01,000 --> 00:00:02,000\n${text}\n\n7:15`)).toBe(cue(`${text}\n7:15`))
  })

  test('whose times are followed by malformed text are parsed in linear time, however long they are', () => {
    const spaces = ' '.repeat(4 * 2 ** 20)
    expect(safe(`WEBVTT\n\n00:00:01.000 --> 00:00:02.000${spaces}x\u2028\nHi`)).toBe(cue('Hi'))
  })

  test('are read while everything else continues, however long they are', async () => {
    const longest = `1\n00:00:01,000 --> 00:00:02,000\n${'&lt;'.repeat(1_200_000)}`
    let turns = 0
    const counting = setInterval(() => turns++, 1)
    const read = await parseInWorker(Buffer.from(longest), 'en')
    clearInterval(counting)
    expect(turns).toBeGreaterThan(3)
    expect(read.toString()).toBe(safe(longest))
    await expect(parseInWorker(Buffer.from(`${longest}\n\n1\n00:01 --> 00:00\nx`), 'en')).rejects.toThrow(/^Line 6 /)
  })

  test.each([
    ['an SVG', '<svg xmlns="http://www.w3.org/2000/svg"/>', /Line 1 /],
    ['a zip', Buffer.from('504b030414000000', 'hex'), /not readable text/],
    ['ASS', '[Script Info]\nTitle: x', /Line 1 /],
    ['nothing', '', /no captions/],
    ['a time that is none', '1\n00:00:01,000 --> 00:00:0x\nx', /Line 2 /],
    ['an end before its beginning', 'WEBVTT\n\n00:02.000 --> 00:01.000\nx', /Line 3 /],
    [
      'a time with another arrow',
      '1\n00:00:01,000 --> 00:00:02,000\nx\n\n2\n00:00:03,000 -> 00:00:04,000\ny',
      'Line 6 of the captions is "00:00:03,000 -> 00:00:04,000", but times are expected, written as 00:01:02.500 --> 00:01:04.000. Correct it and send the file again.',
    ],
    ['an arrow cut off', 'WEBVTT\n\na\n00:01.000 --\nx', /^Line 4 .*"00:01\.000 --", but times are expected/],
    ['seconds that no minute has', '1\n00:00:01,000 --> 00:00:75,000\nx', /^Line 2 .*0 to 59/],
    [
      'a caption without an empty line before it',
      '1\n00:00:01,000 --> 00:00:02,000\nx\n2\n00:00:03,000 --> 00:00:04,000\ny',
      /^Line 5 .*an empty line is expected/,
    ],
    ['a caption without text, and nothing else', '1\n00:00:01,000 --> 00:00:02,000\n', /^Line 2 .*text is expected/],
    ['too many tags', `1\n00:01 --> 00:02\n${'<b>'.repeat(200_000)}`, /at most/],
  ])('that are %s are refused, with the line', (_, given, wanted) => expect(() => safe(given)).toThrow(wanted))
})

describe('F01: a poster', () => {
  async function draw(bytes: Buffer) {
    const tmp = await mkdtemp(join(tmpdir(), 'reelgate-picture-'))
    onTestFinished(() => rm(tmp, { recursive: true }))
    const image = await sealImage(tmp, Readable.from([bytes]))
    try {
      return await renderPosterSizes(await openSandbox({ sandbox: 'weak' }), image)
    } finally {
      await removeImage(image)
      expect(await readdir(tmp)).toEqual([])
    }
  }

  test.each([
    ['M08: an SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1:1/x"/></svg>')],
    ['a zip', Buffer.from('504b030414000000', 'hex')],
    ['HTML', Buffer.from('<!doctype html><script>alert(1)</script>')],
    ['a GIF of 65535²', Buffer.from('474946383961ffffffff800000ffffff00000021', 'hex')],
    ['a PNG that is cut off', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')],
    ['M12: a PNG of 30000²', flatPng(30_000)],
    ['M12: a PNG of 15000²', flatPng(15_000)],
  ])('that is %s is refused', async (_, bytes) => {
    await expect(draw(bytes)).rejects.toMatchObject({ kind: 'invalid' })
  })

  test('contains nothing of its file but the picture', async () => {
    const jpeg = await makeImage('640x360', 'mjpeg')
    const secret = '<script>alert("here")</script>'
    const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0, secret.length + 2]), Buffer.from(secret)])
    const made = await draw(Buffer.concat([jpeg.subarray(0, 2), comment, jpeg.subarray(2), Buffer.from(secret)]))
    expect(made.map(({ widthPx, heightPx }) => [widthPx, heightPx])).toEqual([
      [640, 360],
      [427, 240],
    ])
    for (const poster of made) expect(poster.jpeg.includes('script')).toBe(false)
  })
})

/** A black PNG whose pixels compress to next to nothing. */
function flatPng(sidePx: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    size.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(body))
    return Buffer.concat([size, body, sum])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(sidePx, 0)
  header.writeUInt32BE(sidePx, 4)
  header[8] = 1
  const pixels = deflateSync(Buffer.alloc(sidePx * (Math.ceil(sidePx / 8) + 1)))
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  return Buffer.concat([signature, chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))])
}
