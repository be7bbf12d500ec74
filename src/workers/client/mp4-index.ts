import { getBox, parseBoxes } from '../../mp4/boxes.ts'
import type { Range } from './source-copies.ts'

// Where an MP4 or QuickTime file keeps its samples: ISO/IEC 14496-12, 8.6 and 8.7.

export type SourceTrack = {
  /** `vide`, `soun` and others. */
  handler: string
  /** When its first sample is shown, in seconds. */
  startS: number
  firstByte: number
  /** The bytes of the samples between two moments, from the key frame before the first on. */
  samplesBetween(fromS: number, toS: number): Range[]
}

/** The tracks of a box `moov` that have samples. @throws RangeError for a box that cannot be read, or none: the samples are in fragments */
export function readTracks(moov: Buffer): SourceTrack[] {
  const boxes = parseBoxes(moov, 8, moov.length)
  const movieScale = readTimescale(moov, getBox(moov, ['moov', 'mvhd']).contentStart)
  const tracks = boxes
    .filter(({ type }) => type === 'trak')
    .flatMap(({ start, end }) => readTrack(moov.subarray(start, end), movieScale) ?? [])
  if (tracks.length === 0) throw new RangeError('the index has no samples')
  return tracks
}

function readTrack(trak: Buffer, movieScale: number): SourceTrack | undefined {
  const at = (...types: string[]) => getBox(trak, ['trak', ...types]).contentStart
  const has = (...types: string[]) => {
    try {
      return at(...types)
    } catch {
      return undefined
    }
  }
  const table = (name: string) => at('mdia', 'minf', 'stbl', name)
  const handlerAt = at('mdia', 'hdlr')
  const handler = trak.toString('latin1', handlerAt + 8, handlerAt + 12)
  const scale = readTimescale(trak, at('mdia', 'mdhd'))
  const sizes = readSizes(trak, table('stsz'))
  if (sizes.length === 0) return undefined
  const times = readTimes(trak, table('stts'), sizes.length, scale)
  const offsets = readOffsets(
    trak,
    { stsc: table('stsc'), stco: has('mdia', 'minf', 'stbl', 'stco'), co64: has('mdia', 'minf', 'stbl', 'co64') },
    sizes,
  )
  const keys = readKeys(trak, has('mdia', 'minf', 'stbl', 'stss'))
  const editAt = has('edts', 'elst')
  const shiftS = editAt === undefined ? 0 : readShift(trak, editAt, { movieScale, scale })
  return {
    handler,
    startS: Math.max(shiftS, 0),
    firstByte: offsets[0] ?? 0,
    samplesBetween(fromS, toS) {
      const end = sizes.length - 1
      let first = 0
      while (first < end && (times[first + 1] ?? 0) + shiftS <= fromS) first++
      // Without a list every sample is a key frame.
      if (keys) first = keys.findLast((key) => key <= first) ?? 0
      let last = first
      while (last < end && (times[last + 1] ?? 0) + shiftS <= toS) last++
      const ranges: Range[] = []
      for (let sample = first; sample <= last; sample++) {
        const begin = offsets[sample] ?? 0
        const stop = begin + (sizes[sample] ?? 0) - 1
        const before = ranges.at(-1)
        if (before && begin === before.last + 1) before.last = stop
        else ranges.push({ first: begin, last: stop })
      }
      return ranges
    },
  }
}

/** Of `mvhd` or `mdhd`. */
function readTimescale(bytes: Buffer, at: number): number {
  return Math.max(1, bytes.readUInt32BE(at + (bytes[at] === 1 ? 20 : 12)))
}

function readSizes(bytes: Buffer, at: number): Float64Array {
  const [equal, count] = [bytes.readUInt32BE(at + 4), bytes.readUInt32BE(at + 8)]
  if (equal === 0 && count * 4 > bytes.length - at) throw new RangeError('a list of sizes that does not fit')
  if (count > MAX_SAMPLES) throw new RangeError('a track of very many samples')
  return Float64Array.from({ length: count }, (_, index) => (equal === 0 ? bytes.readUInt32BE(at + 12 + 4 * index) : equal))
}

/** A day of sound whose samples are single, in the boxes of QuickTime. */
const MAX_SAMPLES = 20_000_000

/** In seconds of decoding. */
function readTimes(bytes: Buffer, at: number, count: number, scale: number): Float64Array {
  const times = new Float64Array(count)
  let [sample, ticks] = [0, 0]
  for (let entry = 0; entry < bytes.readUInt32BE(at + 4) && sample < count; entry++) {
    const [run, delta] = [bytes.readUInt32BE(at + 8 + 8 * entry), bytes.readUInt32BE(at + 12 + 8 * entry)]
    for (let n = 0; n < run && sample < count; n++, ticks += delta) times[sample++] = ticks / scale
  }
  return times
}

function readOffsets(
  bytes: Buffer,
  { stsc, stco, co64 }: { stsc: number; stco: number | undefined; co64: number | undefined },
  sizes: Float64Array,
): Float64Array {
  const list = stco ?? co64
  if (list === undefined) throw new RangeError('a track without places')
  const places = bytes.readUInt32BE(list + 4)
  const placeOf = (index: number) =>
    stco === undefined ? Number(bytes.readBigUInt64BE(list + 8 + 8 * index)) : bytes.readUInt32BE(list + 8 + 4 * index)
  const entries = bytes.readUInt32BE(stsc + 4)
  const offsets = new Float64Array(sizes.length)
  let sample = 0
  let entry = 0
  for (let place = 0; place < places && sample < sizes.length; place++) {
    while (entry + 1 < entries && bytes.readUInt32BE(stsc + 8 + 12 * (entry + 1)) <= place + 1) entry++
    let at = placeOf(place)
    for (let n = bytes.readUInt32BE(stsc + 12 + 12 * entry); n > 0 && sample < sizes.length; n--) {
      offsets[sample] = at
      at += sizes[sample++] ?? 0
    }
  }
  return offsets
}

/** The numbers of key frames, from 0. */
function readKeys(bytes: Buffer, at: number | undefined): number[] | undefined {
  if (at === undefined) return undefined
  const count = bytes.readUInt32BE(at + 4)
  if (4 * count > bytes.length - at) throw new RangeError('a list of key frames that does not fit')
  return Array.from({ length: count }, (_, index) => bytes.readUInt32BE(at + 8 + 4 * index) - 1)
}

/** By how much an edit list moves the track, in seconds: a pause before it, and what is cut off at its start. */
function readShift(bytes: Buffer, at: number, { movieScale, scale }: { movieScale: number; scale: number }): number {
  const isLong = bytes[at] === 1
  let pauseS = 0
  for (let entry = 0; entry < bytes.readUInt32BE(at + 4); entry++) {
    const entryAt = at + 8 + entry * (isLong ? 20 : 12)
    const duration = isLong ? Number(bytes.readBigUInt64BE(entryAt)) : bytes.readUInt32BE(entryAt)
    const mediaTime = isLong ? Number(bytes.readBigInt64BE(entryAt + 8)) : bytes.readInt32BE(entryAt + 4)
    if (mediaTime >= 0) return pauseS - mediaTime / scale
    pauseS += duration / movieScale
  }
  return pauseS
}
