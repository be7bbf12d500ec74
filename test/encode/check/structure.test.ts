import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { checkResult } from '../../../src/encode/check/check-result.ts'
import type { Result, ResultSegment } from '../../../src/encode/check/result.ts'
import { findVideoInits } from '../../../src/encode/check/video-inits.ts'
import { encoderFingerprint, videoEncoderArgs } from '../../../src/encode/encoder.ts'
import { encodeBox, getBox, u32 } from '../../../src/mp4/boxes.ts'
import { placeFragment } from '../../../src/mp4/fragments.ts'
import { makeVideo } from '../../videos.ts'
import { ffmpeg, openVideo } from '../videos.ts'
import { encodeResult, replace, toSegment } from './results.ts'

// What a worker sends is read before anything decodes it. Here nothing is compared with the source.

let video: Result
let audio: Result

beforeAll(async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'reelgate-check-'))
  const opened = await openVideo(await makeVideo({ seconds: 9, size: '128x128' }), folder)
  const chunk = { firstSegment: 1, segmentCount: 2, decodesFromStart: false }
  video = await encodeResult(opened, { ...chunk, kind: 'video' })
  audio = await encodeResult(opened, { ...chunk, kind: 'audio' })
  return () => rm(folder, { recursive: true })
})

/** The reason why a result is refused; undefined: it is not. */
async function refusal(result: Result): Promise<string | undefined> {
  const verdict = await checkResult(result, { compared: [] })
  return verdict.ok ? undefined : verdict.reason
}

test('J26: the segments of our own encoder have the structure that a worker’s must have', async () => {
  expect(await refusal(video)).toBeUndefined()
  expect(await refusal(audio)).toBeUndefined()
})

const at = (bytes: Buffer, ...path: string[]) => getBox(bytes, path).contentStart
const insert = (bytes: Buffer, place: number, more: Uint8Array) =>
  Buffer.concat([bytes.subarray(0, place), more, bytes.subarray(place)])
function write(bytes: Buffer, place: number, value: number): Buffer {
  bytes.writeUInt32BE(value, place)
  return bytes
}
/** Changes the first byte of a NAL unit of the first frame whose kind is `from`. */
function changeUnit(bytes: Buffer, from: number, to: number): Buffer {
  for (let unit = at(bytes, 'mdat'); ; unit += 4 + bytes.readUInt32BE(unit))
    if ((bytes.readUInt8(unit + 4) & 0x1f) === from) {
      bytes.writeUInt8(to, unit + 4)
      return bytes
    }
}

const CHANGES: { is: string; kind?: 'video' | 'audio'; change(bytes: Buffer): Buffer }[] = [
  { is: 'nothing', change: () => Buffer.alloc(0) },
  { is: 'a text', change: () => Buffer.from('<!doctype html><script>alert(1)</script>') },
  { is: 'zeros', change: (bytes) => Buffer.alloc(bytes.length) },
  { is: 'cut off', change: (bytes) => bytes.subarray(0, bytes.length - 1) },
  { is: 'followed by a byte', change: (bytes) => Buffer.concat([bytes, Buffer.alloc(1)]) },
  { is: 'followed by an empty box', change: (bytes) => Buffer.concat([bytes, encodeBox('free')]) },
  { is: 'preceded by a box', change: (bytes) => Buffer.concat([encodeBox('styp', Buffer.from('msdh')), bytes]) },
  { is: 'twice the same', change: (bytes) => Buffer.concat([bytes, bytes]) },
  {
    is: 'an event message in its header',
    change: (bytes) => insert(write(bytes, 0, bytes.readUInt32BE(0) + 8), 8, encodeBox('emsg')),
  },
  { is: 'a box larger than all', change: (bytes) => write(bytes, 0, 0xffff_ffff) },
  { is: 'a box of no size', change: (bytes) => write(bytes, 0, 0) },
  { is: 'another sequence number', change: (bytes) => write(bytes, at(bytes, 'moof', 'mfhd') + 4, 7) },
  { is: 'another track', change: (bytes) => write(bytes, at(bytes, 'moof', 'traf', 'tfhd') + 4, 2) },
  { is: 'another time', change: (bytes) => write(bytes, at(bytes, 'moof', 'traf', 'tfdt') + 8, 1) },
  { is: 'a time of centuries', change: (bytes) => write(bytes, at(bytes, 'moof', 'traf', 'tfdt') + 4, 0x7fff_ffff) },
  { is: 'four milliard frames', change: (bytes) => write(bytes, at(bytes, 'moof', 'traf', 'trun') + 4, 0xffff_ffff) },
  {
    is: 'a frame less',
    change: (bytes) =>
      write(bytes, at(bytes, 'moof', 'traf', 'trun') + 4, bytes.readUInt32BE(at(bytes, 'moof', 'traf', 'trun') + 4) - 1),
  },
  { is: 'samples in another place', change: (bytes) => write(bytes, at(bytes, 'moof', 'traf', 'trun') + 8, 8) },
  { is: 'parameter sets of its own', kind: 'video', change: (bytes) => changeUnit(bytes, 5, 0x67) },
  { is: 'a first frame that is no key frame', kind: 'video', change: (bytes) => changeUnit(bytes, 5, 0x41) },
  { is: 'a unit without a kind', kind: 'video', change: (bytes) => changeUnit(bytes, 5, 0x60) },
  { is: 'a unit that is longer than its frame', kind: 'video', change: (bytes) => write(bytes, at(bytes, 'mdat'), 0x7fff_ffff) },
  { is: 'a unit without content', kind: 'video', change: (bytes) => write(bytes, at(bytes, 'mdat'), 0) },
]

test.each(['video', 'audio'] as const)('J26: a segment of %s that has anything else in it is refused', async (kind) => {
  const honest = kind === 'video' ? video : audio
  const accepted: string[] = []
  for (const { is, change } of CHANGES.filter((row) => (row.kind ?? kind) === kind)) {
    const changed = await replace(honest, ({ number }, bytes) => (number === 2 ? change(bytes) : undefined))
    if ((await refusal(changed)) === undefined) accepted.push(is)
  }
  expect(accepted).toEqual([])
})

test('J26: two segments in each other’s place are refused, and so is one that is missing, twice there or of another rendition', async () => {
  for (const result of [video, audio]) {
    const [first, second] = result.segments as [ResultSegment, ResultSegment]
    const swapped = [first, second].map(({ renditionId }, index) => ({
      ...([second, first][index] as ResultSegment),
      renditionId,
      number: index + 1,
    }))
    for (const segments of [
      swapped,
      [first],
      [first, first],
      [first, second, second],
      [first, { ...second, renditionId: 99 }],
      [],
    ])
      expect(await refusal({ ...result, segments })).toBeDefined()
  }
})

test('J27: a segment that is larger than its bitrate allows is refused before it is read', async () => {
  for (const result of [video, audio]) {
    const [first] = result.segments
    const bomb: ResultSegment = {
      renditionId: first?.renditionId ?? 0,
      number: 2,
      sizeBytes: 2 ** 40,
      read: () => Promise.reject(new Error('it was read')),
    }
    const segments = result.segments.map((segment) => (segment.number === 2 ? bomb : segment))
    expect(await refusal({ ...result, segments })).toContain('bytes')
  }
})

test('J27: a frame of a million tiny NAL units, or with a megabyte of other data, is refused', async () => {
  const withFirstFrame = (bytes: Buffer, frame: Buffer) => {
    const trun = at(bytes, 'moof', 'traf', 'trun')
    const mdat = at(bytes, 'mdat')
    const [sizeAt] = [bytes.readUInt32BE(trun) & 0x4 ? trun + 16 : trun + 12]
    const oldBytes = bytes.readUInt32BE(sizeAt)
    bytes.writeUInt32BE(frame.length, sizeAt)
    const content = Buffer.concat([frame, bytes.subarray(mdat + oldBytes)])
    return Buffer.concat([bytes.subarray(0, mdat - 8), encodeBox('mdat', content)])
  }
  const unit = (...bytes: number[]) => Buffer.concat([u32(bytes.length), Buffer.from(bytes)])
  const units = Buffer.concat(Array.from({ length: 40_000 }, () => unit(0x65, 0x88)))
  const data = Buffer.concat([u32(100_000), Buffer.from([0x06, 0x05]), Buffer.alloc(99_998, 255)])
  for (const frame of [units, data, unit(0x06, 0x01, 0x01, 0x00, 0x80), unit(0x06)])
    expect(
      await refusal(await replace(video, ({ number }, bytes) => (number === 2 ? withFirstFrame(bytes, frame) : undefined))),
    ).toContain('segment 2')
})

test('J28: another init segment than the server’s own is refused, and so are none and one more', async () => {
  for (const result of [video, audio]) {
    const [[id, init]] = [...result.inits] as [[number, Buffer]]
    const changed = Buffer.from(init)
    changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1)
    for (const inits of [
      [],
      [[id, changed]],
      [[id, Buffer.alloc(0)]],
      [
        [id, init],
        [99, init],
      ],
    ] as [number, Buffer][][])
      expect(await refusal({ ...result, inits: new Map(inits) })).toContain('init segment')
  }
})

test('J34: of another encoder an init segment may have other parameters, and never another size, level or colors; nothing else of it is published', async () => {
  const { color: _, ...track } = video.plan.videoTrack ?? expect.fail()
  const [rendition] = track.renditions
  if (!rendition) throw new Error('the plan has no rendition')
  const result = { ...video, plan: { ...video.plan, videoTrack: track } }
  const own = (await findVideoInits(video.sandbox, track)).get(rendition.id) ?? expect.fail()
  async function encodeInit(...changes: string[]): Promise<Buffer> {
    const size = `testsrc=s=${rendition?.widthPx}x${rendition?.heightPx}:r=${track.rateNum}/${track.rateDen}`
    const args = [...videoEncoderArgs(track, rendition ?? expect.fail()), '-refs', '4', '-x264-params', 'open-gop=0:cabac=0']
    const bytes = await ffmpeg(
      '-f',
      'lavfi',
      '-i',
      size,
      '-vf',
      'format=yuv420p,setsar=1',
      '-frames:v',
      '5',
      ...args,
      ...changes,
      'pipe:1',
    )
    return bytes.subarray(0, getBox(bytes, ['moov']).end)
  }
  const check = (init: Buffer, encoder = 'another') =>
    checkResult({ ...result, encoder, inits: new Map([[rendition.id, init]]) }, { compared: [] })
  expect(await check(own)).toEqual({ ok: true, inits: new Map([[rendition.id, own]]) })
  const init = await encodeInit()
  expect(init.equals(own)).toBe(false)
  expect(await check(init)).toEqual({ ok: true, inits: new Map([[rendition.id, init]]) })
  expect(await check(await encodeInit('-metadata', 'title=more'))).toEqual({ ok: true, inits: new Map([[rendition.id, init]]) })
  expect(await check(init, encoderFingerprint(video.sandbox))).toMatchObject({ ok: false })
  const colors = 'format=yuv420p,setsar=1,setparams=colorspace=bt470bg:color_primaries=bt470bg:color_trc=smpte170m'
  for (const changes of [
    ['-s', '64x64'],
    ['-level:v', '5.1'],
    ['-profile:v', 'main'],
    ['-vf', colors],
  ]) {
    const verdict = await check(await encodeInit(...changes))
    expect(verdict, changes.join(' ')).toMatchObject({ ok: false, reason: expect.stringContaining('init segment') })
  }
})

test('J26: frames that are shown in another order than one after another are refused', async () => {
  const changed = await replace(video, ({ number }, bytes) => {
    if (number === 1) placeFragment(bytes, { sequence: 2, decodeTime: 100 * 3600, compositionShift: 3600 })
    return number === 1 ? bytes : undefined
  })
  expect(await refusal(changed)).toContain('shown')
  expect(
    await refusal({
      ...video,
      segments: video.segments.map((segment) => toSegment(segment.renditionId, segment.number, Buffer.alloc(9))),
    }),
  ).toBeDefined()
})
