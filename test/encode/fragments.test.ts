import { expect, test } from 'vitest'
import { audioInit, audioSegment, splitAdts } from '../../src/mp4/aac.ts'
import { getBox, parseBoxes } from '../../src/mp4/boxes.ts'
import { type FragmentedPart, placeFragment, readFragment, readVideoInit, splitFragments } from '../../src/mp4/fragments.ts'
import { ffmpeg } from './videos.ts'

const VIDEO = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25:d=4', '-c:v', 'libx264', '-g', '25', '-bf', '3', '-sc_threshold', '0']
const FRAGMENTED = ['-f', 'mp4', '-movflags', '+cmaf+frag_keyframe', '-']

test.each([1, 7, 1000, 1_000_000])(
  'a stream that comes in pieces of %i bytes is split into the same init and fragments',
  async (pieceBytes) => {
    const stream = await ffmpeg(...VIDEO, ...FRAGMENTED)
    const parts = await collectParts(pieces(stream, pieceBytes))
    expect(parts.map(({ kind }) => kind)).toEqual(['init', 'fragment', 'fragment', 'fragment', 'fragment'])
    const joined = Buffer.concat(parts.map(({ bytes }) => bytes))
    expect(joined.equals(stream.subarray(0, joined.length))).toBe(true)
    expect(parseBoxes(stream, joined.length).map(({ type }) => type)).toEqual(['mfra'])
  },
)

test('a stream that is cut off gives no half fragment', async () => {
  const stream = await ffmpeg(...VIDEO, ...FRAGMENTED)
  const parts = await collectParts(pieces(stream.subarray(0, stream.length * 0.7), 4096))
  expect(parts.length).toBeGreaterThan(1)
  for (const { bytes } of parts) expect(parseBoxes(bytes).length).toBe(2)
})

test('a box that claims to be huge ends the stream before it is kept', async () => {
  const claim = Buffer.from([0x7f, 0xff, 0xff, 0xff, ...Buffer.from('mdat')])
  await expect(collectParts(pieces(Buffer.concat([claim, Buffer.alloc(100)]), 10))).rejects.toThrow(RangeError)
})

test('a fragment is put at its place in the video, and its first frame is shown exactly there', async () => {
  // Without +cmaf ffmpeg delays everything by the B-frames: the case the guard is for.
  const stream = await ffmpeg(
    ...VIDEO,
    '-f',
    'mp4',
    '-movflags',
    '+frag_keyframe+empty_moov+default_base_moof',
    '-use_editlist',
    '0',
    '-',
  )
  const parts = (await collectParts(pieces(stream, 4096))).filter(({ kind }) => kind === 'fragment')
  const [fragment = Buffer.alloc(0)] = parts.map(({ bytes }) => bytes)
  const before = readFragment(fragment)
  const shift = before.compositionOffsets?.[0] ?? 0
  expect(shift).toBeGreaterThan(0)
  placeFragment(fragment, { sequence: 42, decodeTime: 2 ** 33, compositionShift: shift })
  const after = readFragment(fragment)
  expect(after).toEqual({
    ...before,
    sequence: 42,
    decodeTime: 2 ** 33,
    compositionOffsets: before.compositionOffsets?.map((offset) => offset - shift),
  })
})

test('an init segment says size, clock and codec', async () => {
  const [init] = await collectParts(
    pieces(await ffmpeg(...VIDEO, '-profile:v', 'high', '-level', '2.1', '-pix_fmt', 'yuv420p', ...FRAGMENTED), 4096),
  )
  expect(readVideoInit(init?.bytes ?? Buffer.alloc(0))).toEqual({
    widthPx: 160,
    heightPx: 90,
    timescale: 12_800,
    codec: 'avc1.640015',
  })
})

test.each([1, 100, 1_000_000])('an ADTS stream in pieces of %i bytes gives all its frames', async (pieceBytes) => {
  const stream = await ffmpeg('-f', 'lavfi', '-i', 'sine=440:d=1', '-ar', '48000', '-c:a', 'aac', '-f', 'adts', '-')
  const frames: Buffer[] = []
  for await (const frame of splitAdts(pieces(stream, pieceBytes))) frames.push(Buffer.from(frame))
  expect(frames).toHaveLength(48)
  expect(frames.reduce((sum, frame) => sum + frame.length + 7, 0)).toBe(stream.length)
})

test('an audio segment has its frames and begins where the grid says', () => {
  const segment = audioSegment([Buffer.from('one'), Buffer.from('three')], { sequence: 3, firstFrame: 376 })
  expect(readFragment(segment)).toEqual({ sequence: 3, decodeTime: 376 * 1024, sampleCount: 2, compositionOffsets: undefined })
  const mdat = getBox(segment, ['mdat'])
  expect(segment.toString('latin1', mdat.contentStart, mdat.end)).toBe('onethree')
  expect(audioInit(128_000).equals(audioInit(128_000))).toBe(true)
})

async function* pieces(bytes: Buffer, pieceBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

async function collectParts(bytes: AsyncIterable<Buffer>): Promise<FragmentedPart[]> {
  const parts: FragmentedPart[] = []
  for await (const part of splitFragments(bytes)) parts.push(part)
  return parts
}
