import { AAC_FRAME_SAMPLES, AAC_RATE_HZ, audioSegment } from '../../mp4/aac.ts'
import { RUN_FIELDS } from '../../mp4/fragments.ts'
import { AAC_FRAMES_PER_SEGMENT, type AudioTrackPlan, type VideoRendition, type VideoTrackPlan } from '../plan.ts'
import { removeEscapes } from './nal-unit.ts'
import { Refusal } from './refusal.ts'

// A segment that another machine has made is read in one pass, in the order in which our encoder writes it: nothing else has a place.

const TRACK_ID = 1
// 14496-12, 8.6.4: needs no other sample; needs others and is no place to start.
const KEY_SAMPLE = 0x0200_0000
const OTHER_SAMPLE = 0x0101_0000
/** Of tfhd: offsets count from moof; the description of the samples, and what all have in common. */
const DEFAULTS_IN_FRAGMENT = 0x2_003a
const SAMPLE_FIELDS = [RUN_FIELDS.duration, RUN_FIELDS.size, RUN_FIELDS.flags, RUN_FIELDS.composition] as const

// Kinds of NAL units, 14496-10 table 7-1.
const SLICE = 1
const KEY_SLICE = 5
const SEI = 6
// Kinds of SEI: captions of the source, and the encoder's name, once.
const CAPTIONS = 4
const ENCODER_NAME = 5
const MAX_SEI_BYTES = 4096
/** A picture has one slice; a few more would still be a picture. */
const MAX_UNITS = 16

/** The cap of a rendition holds over its buffer of two seconds. One GOP may exceed it, and quiet ones have a little that does not depend on it. */
const MAX_EXCESS = 2
const BUFFER_S = 2
const ANY_SEGMENT_BYTES = 256 * 1024

/** More than a segment of video ever has, in bytes. */
export function maxVideoSegmentBytes(videoTrack: VideoTrackPlan, { maxBitrateBps }: VideoRendition): number {
  const lengthS = (videoTrack.gopFrames * videoTrack.rateDen) / videoTrack.rateNum
  return Math.ceil((MAX_EXCESS * maxBitrateBps * (lengthS + BUFFER_S)) / 8) + ANY_SEGMENT_BYTES
}

/** More than a segment of audio ever has, in bytes: its frames have nearly one size. */
export function maxAudioSegmentBytes({ bitrateBps }: AudioTrackPlan): number {
  const lengthS = (AAC_FRAMES_PER_SEGMENT * AAC_FRAME_SAMPLES) / AAC_RATE_HZ
  return Math.ceil((MAX_EXCESS * bitrateBps * lengthS) / 8) + 8192
}

/**
 * Checks that a segment of video is one closed GOP of H.264, in its place of the grid, and contains nothing else.
 * @throws Refusal; RangeError where a field is outside of the segment
 */
export function checkVideoSegment(bytes: Buffer, videoTrack: VideoTrackPlan, number: number): void {
  const { gopFrames, frameCount, timescale, rateDen, rateNum } = videoTrack
  const ticks = (timescale * rateDen) / rateNum
  const sampleCount = Math.min(gopFrames, frameCount - number * gopFrames)
  const { header, content } = readSegment(bytes)
  const defaults = readHeader(header, { number, decodeTime: number * gopFrames * ticks })
  const samples = readRun(header, defaults, sampleCount)
  if (defaults.sizeBytes !== samples[0]?.sizeBytes || defaults.flags !== OTHER_SAMPLE)
    throw new Refusal('its defaults are not those of such a segment')
  if (samples.some(({ duration }) => duration !== ticks))
    throw new Refusal('a frame is shown for more or less than a slot of the grid')
  checkOrder(samples.map(({ composition }, index) => index + composition / ticks))
  let at = content
  for (const [index, { sizeBytes, flags }] of samples.entries()) {
    if (flags !== (index === 0 ? KEY_SAMPLE : OTHER_SAMPLE)) throw new Refusal('not the first frame alone is a key frame')
    checkUnits(bytes, at, at + sizeBytes, index === 0)
    at += sizeBytes
  }
  if (at !== bytes.length) throw new Refusal('its samples do not fill it')
}

/** Checks that a segment of audio is what this server would make of its AAC frames. @throws Refusal; RangeError */
export function checkAudioSegment(bytes: Buffer, { frameCount }: AudioTrackPlan, number: number): void {
  const firstFrame = number * AAC_FRAMES_PER_SEGMENT
  const count = Math.min(AAC_FRAMES_PER_SEGMENT, frameCount - firstFrame)
  const position = { sequence: number + 1, firstFrame }
  const headerBytes = audioSegment(
    Array.from({ length: count }, () => Buffer.alloc(0)),
    position,
  ).length
  const frames: Buffer[] = []
  let at = headerBytes
  for (let frame = 0; frame < count; frame++) {
    const sizeBytes = bytes.readUInt32BE(headerBytes - 8 + 4 * (frame - count))
    if (sizeBytes === 0 || at + sizeBytes > bytes.length) throw new Refusal('an AAC frame is empty or outside of the segment')
    frames.push(bytes.subarray(at, at + sizeBytes))
    at += sizeBytes
  }
  if (!audioSegment(frames, position).equals(bytes)) throw new Refusal('its boxes are not those of such a segment')
}

/** Reads fields of a box one after another. */
type Cursor = { bytes: Buffer; at: number; end: number }

/** The one fragment that a segment consists of, and where its samples begin. */
function readSegment(bytes: Buffer): { header: Cursor; content: number } {
  const whole = { bytes, at: 0, end: bytes.length }
  const header = enterBox(whole, 'moof')
  const { at, end } = enterBox({ ...whole, at: header.end }, 'mdat')
  if (end !== bytes.length) throw new Refusal('there are bytes after its samples')
  return { header, content: at }
}

type Defaults = { duration: number; sizeBytes: number; flags: number }

/** Reads what comes before the run of samples, which the cursor then points to. */
function readHeader(header: Cursor, { number, decodeTime }: { number: number; decodeTime: number }): Defaults {
  const sequence = enterBox(header, 'mfhd')
  expect(sequence, 'version and flags of mfhd', 0)
  expect(sequence, 'sequence number', number + 1)
  leave(header, sequence)
  const fragment = enterBox(header, 'traf')
  if (fragment.end !== header.end) throw new Refusal('there is something after its track')
  Object.assign(header, fragment)
  const track = enterBox(header, 'tfhd')
  expect(track, 'version and flags of tfhd', DEFAULTS_IN_FRAGMENT)
  expect(track, 'number of the track', TRACK_ID)
  expect(track, 'description of the samples', 1)
  const defaults = { duration: next(track), sizeBytes: next(track), flags: next(track) }
  leave(header, track)
  const time = enterBox(header, 'tfdt')
  expect(time, 'version and flags of tfdt', 0x100_0000)
  if (next(time) * 2 ** 32 + next(time) !== decodeTime) throw new Refusal('its time is not that of its place in the grid')
  leave(header, time)
  return defaults
}

type Sample = Defaults & { composition: number }

function readRun(header: Cursor, defaults: Defaults, sampleCount: number): Sample[] {
  const moofBytes = header.end
  const run = enterBox(header, 'trun')
  if (run.end !== header.end) throw new Refusal('there is something after its run of samples')
  const versionAndFlags = next(run)
  const version = versionAndFlags >>> 24
  const present = versionAndFlags & 0xff_ffff
  const known = SAMPLE_FIELDS.reduce((all, field) => all | field, RUN_FIELDS.dataOffset | RUN_FIELDS.firstFlags)
  if (version > 1 || (present & ~known) !== 0 || !(present & RUN_FIELDS.dataOffset)) throw new Refusal('an unknown kind of run')
  expect(run, 'number of frames', sampleCount)
  expect(run, 'place of the samples', moofBytes + 8)
  const firstFlags = present & RUN_FIELDS.firstFlags ? next(run) : undefined
  const samples = Array.from({ length: sampleCount }, (_, index) => {
    const duration = present & RUN_FIELDS.duration ? next(run) : defaults.duration
    const sizeBytes = present & RUN_FIELDS.size ? next(run) : defaults.sizeBytes
    const flags = present & RUN_FIELDS.flags ? next(run) : index === 0 && firstFlags !== undefined ? firstFlags : defaults.flags
    return { duration, sizeBytes, flags, composition: present & RUN_FIELDS.composition ? next(run) | 0 : 0 }
  })
  leave(header, run)
  return samples
}

/** @param slots when each sample is shown, in frames after the first */
function checkOrder(slots: readonly number[]): void {
  const shown = new Set(slots)
  const areAllShown = slots.every((slot) => Number.isInteger(slot) && slot >= 0 && slot < slots.length)
  if (slots[0] !== 0 || shown.size !== slots.length || !areAllShown)
    throw new Refusal('its frames are not shown one after another from its first')
}

/** Walks over the NAL units of a sample, each with its length before it. */
function checkUnits(bytes: Buffer, start: number, end: number, isKey: boolean): void {
  if (end > bytes.length) throw new Refusal('a frame is outside of the segment')
  let slices = 0
  let units = 0
  for (let at = start; at < end; ) {
    const sizeBytes = bytes.readUInt32BE(at)
    const content = at + 4
    at = content + sizeBytes
    if (sizeBytes < 2 || at > end || ++units > MAX_UNITS) throw new Refusal('a frame does not consist of NAL units')
    const kind = bytes.readUInt8(content)
    if (kind & 0x80) throw new Refusal('a NAL unit is marked as damaged')
    if ((kind & 0x1f) === SEI) checkSei(bytes.subarray(content + 1, at), isKey)
    else if ((kind & 0x1f) === (isKey ? KEY_SLICE : SLICE)) slices++
    else throw new Refusal(`a NAL unit of kind ${kind & 0x1f}`)
  }
  if (slices === 0) throw new Refusal('a frame without a slice')
}

function checkSei(escaped: Buffer, isKey: boolean): void {
  if (escaped.length > MAX_SEI_BYTES) throw new Refusal('a long SEI')
  const bytes = removeEscapes(escaped)
  let at = 0
  const readNumber = () => {
    let value = 0
    for (let byte = 255; byte === 255; value += byte) byte = bytes.readUInt8(at++)
    return value
  }
  do {
    const kind = readNumber()
    if (kind !== CAPTIONS && !(kind === ENCODER_NAME && isKey)) throw new Refusal(`an SEI of kind ${kind}`)
    const sizeBytes = readNumber()
    at += sizeBytes
  } while (at < bytes.length - 1)
  if (bytes[at] !== 0x80 || at !== bytes.length - 1) throw new Refusal('an SEI with something after it')
}

/** The content of the box at the cursor, which must be of a kind and end within its parent. */
function enterBox({ bytes, at, end }: Cursor, type: string): Cursor {
  const sizeBytes = bytes.readUInt32BE(at)
  const found = bytes.toString('latin1', at + 4, at + 8)
  if (found !== type) throw new Refusal(`a box that is not ${type}`)
  if (sizeBytes < 8 || at + sizeBytes > end) throw new Refusal(`a box ${type} that does not fit`)
  return { bytes, at: at + 8, end: at + sizeBytes }
}

/** Goes on after a box that was read to its end. */
function leave(parent: Cursor, child: Cursor): void {
  if (child.at !== child.end) throw new Refusal('a box has more or less in it than it should')
  parent.at = child.end
}

function next(cursor: Cursor): number {
  const value = cursor.bytes.readUInt32BE(cursor.at)
  cursor.at += 4
  return value
}

function expect(cursor: Cursor, what: string, value: number): void {
  const found = next(cursor)
  if (found !== value) throw new Refusal(`${what}: ${found} instead of ${value}`)
}
