import { getBox } from './boxes.ts'

/** The parts of a fragmented MP4: one init segment, then media segments of one moof and its mdat. */
export type FragmentedPart = { kind: 'init'; bytes: Buffer } | { kind: 'fragment'; bytes: Buffer }

// One GOP of the highest rung is below 3 MB; more than this is not what we asked for.
const MAX_BOX_BYTES = 128 * 2 ** 20

/**
 * Splits fragmented MP4 while it streams in. A part is yielded when it is complete, so a killed encoder never leaves half a
 * segment; at most one part is in memory. Boxes between the parts (mfra, sidx) are dropped.
 */
export async function* splitFragments(bytes: AsyncIterable<Buffer>): AsyncGenerator<FragmentedPart> {
  let prefix: Buffer[] = []
  for await (const { type, box } of splitBoxes(bytes)) {
    if (type === 'ftyp' || type === 'moof') prefix = [box]
    else if (type === 'moov') yield { kind: 'init', bytes: Buffer.concat([...prefix, box]) }
    else if (type === 'mdat') yield { kind: 'fragment', bytes: Buffer.concat([...prefix, box]) }
  }
}

async function* splitBoxes(bytes: AsyncIterable<Buffer>): AsyncGenerator<{ type: string; box: Buffer }> {
  let buffered: Buffer[] = []
  let bufferedBytes = 0
  let neededBytes = 8
  for await (const part of bytes) {
    buffered.push(part)
    bufferedBytes += part.length
    while (bufferedBytes >= neededBytes) {
      const joined = Buffer.concat(buffered)
      const sizeBytes = joined.readUInt32BE(0)
      if (sizeBytes < 8 || sizeBytes > MAX_BOX_BYTES) throw new RangeError(`a box of ${sizeBytes} bytes`)
      const isWhole = joined.length >= sizeBytes
      if (isWhole) yield { type: joined.toString('latin1', 4, 8), box: joined.subarray(0, sizeBytes) }
      const rest = isWhole ? joined.subarray(sizeBytes) : joined
      buffered = [rest]
      bufferedBytes = rest.length
      neededBytes = isWhole ? 8 : sizeBytes
    }
  }
}

/** The fields of a segment. Composition offsets are undefined where it has none (no B-frames, audio). */
type FragmentInfo = {
  sequence: number
  /** Of its first sample, in ticks of the track. */
  decodeTime: number
  sampleCount: number
  compositionOffsets: number[] | undefined
}

/** Reads a segment of one track with one run of samples. */
export function readFragment(fragment: Buffer): FragmentInfo {
  const { sampleCount, firstSample, sampleBytes, compositionAt } = readRun(fragment)
  const samples = Array.from({ length: sampleCount }, (_, index) => firstSample + index * sampleBytes)
  return {
    sequence: fragment.readUInt32BE(getBox(fragment, ['moof', 'mfhd']).contentStart + 4),
    decodeTime: Number(fragment.readBigUInt64BE(getDecodeTime(fragment))),
    sampleCount,
    compositionOffsets: compositionAt === undefined ? undefined : samples.map((at) => fragment.readInt32BE(at + compositionAt)),
  }
}

/**
 * Writes a segment's position in the video into it. Each chunk's encoder begins at 0; the video has one timeline.
 * @param position.compositionShift subtracted from every composition offset, so that frame 0 is shown at exactly 0: ffmpeg 5.1 already
 *   writes 0 with `+cmaf`, older versions delay by the B-frames
 */
export function placeFragment(fragment: Buffer, position: { sequence: number; decodeTime: number; compositionShift: number }) {
  fragment.writeUInt32BE(position.sequence, getBox(fragment, ['moof', 'mfhd']).contentStart + 4)
  fragment.writeBigUInt64BE(BigInt(position.decodeTime), getDecodeTime(fragment))
  const { compositionAt, firstSample, sampleBytes, sampleCount } = readRun(fragment)
  if (position.compositionShift === 0 || compositionAt === undefined) return
  for (let index = 0; index < sampleCount; index++) {
    const at = firstSample + index * sampleBytes + compositionAt
    fragment.writeInt32BE(fragment.readInt32BE(at) - position.compositionShift, at)
  }
}

/** The properties of an H.264 init segment. */
export function readVideoInit(init: Buffer) {
  const entry = getBox(init, ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', 'avc1']).contentStart
  const avcC = getBox(init, ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', 'avc1', 'avcC']).contentStart
  return {
    widthPx: init.readUInt16BE(entry + 24),
    heightPx: init.readUInt16BE(entry + 26),
    timescale: init.readUInt32BE(getBox(init, ['moov', 'trak', 'mdia', 'mdhd']).contentStart + 12),
    /** RFC 6381, as a playlist names it. */
    codec: `avc1.${init.toString('hex', avcC + 1, avcC + 4)}`,
  }
}

/** Clears the constraint flags of an H.264 init segment: they promise decoders what a stream does not use, and need not be set. */
export function dropConstraints(init: Buffer): void {
  const content = getBox(init, ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', 'avc1', 'avcC']).contentStart
  // 14496-15, 5.3.3.1: after version and profile; then, after the length of the set and the kind and profile of its unit, once more.
  init.writeUInt8(0, content + 2)
  init.writeUInt8(0, content + 10)
}

function getDecodeTime(fragment: Buffer): number {
  const tfdt = getBox(fragment, ['moof', 'traf', 'tfdt']).contentStart
  if (fragment[tfdt] !== 1) throw new RangeError('a tfdt box of 32 bits')
  return tfdt + 4
}

// Optional fields of trun, by its flags (14496-12, 8.8.8): two before the samples, four in each.
export const RUN_FIELDS = {
  dataOffset: 0x1,
  firstFlags: 0x4,
  duration: 0x100,
  size: 0x200,
  flags: 0x400,
  composition: 0x800,
} as const

function readRun(fragment: Buffer) {
  const trun = getBox(fragment, ['moof', 'traf', 'trun']).contentStart
  const flags = fragment.readUInt32BE(trun) & 0xff_ffff
  const fieldBytes = (...fields: number[]) => 4 * fields.filter((field) => flags & field).length
  return {
    sampleCount: fragment.readUInt32BE(trun + 4),
    firstSample: trun + 8 + fieldBytes(RUN_FIELDS.dataOffset, RUN_FIELDS.firstFlags),
    sampleBytes: fieldBytes(RUN_FIELDS.duration, RUN_FIELDS.size, RUN_FIELDS.flags, RUN_FIELDS.composition),
    compositionAt:
      flags & RUN_FIELDS.composition ? fieldBytes(RUN_FIELDS.duration, RUN_FIELDS.size, RUN_FIELDS.flags) : undefined,
  }
}
