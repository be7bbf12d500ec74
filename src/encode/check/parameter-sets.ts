import { encodeBox, getBox, u32 } from '../../mp4/boxes.ts'
import { removeEscapes } from './nal-unit.ts'

// What another encoder than this server's writes into an init segment: ISO/IEC 14496-15 5.3.3 (avcC), 14496-10 7.3.2.1 (sequence parameter set).

const PATH = ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd', 'avc1', 'avcC'] as const
const MAX_REFERENCE_FRAMES = 16
/** Profiles whose sets have fields for chroma and bit depth: High and above. */
const HIGH_PROFILE = 100

/**
 * This server's own init segment of a rendition, with the parameter sets of another encoder's. Those may differ in what encoders choose, such as how
 * they refer to other frames; profile, level, size and colors are the same, so a viewer's player sees no difference.
 * @returns undefined: they differ in more
 */
export function adoptParameters(own: Buffer, init: Buffer): Buffer | undefined {
  try {
    const content = contentOf(init)
    const isAlike = describe(readSequenceSet(content)) === describe(readSequenceSet(contentOf(own)))
    return isAlike ? withConfiguration(own, content) : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function contentOf(init: Buffer): Buffer {
  const { contentStart, end } = getBox(init, PATH)
  return init.subarray(contentStart, end)
}

/** The init segment with another avcC box, which is in all of the boxes on its path. */
function withConfiguration(init: Buffer, content: Buffer): Buffer {
  const box = getBox(init, PATH)
  const changed = Buffer.concat([init.subarray(0, box.start), encodeBox('avcC', content), init.subarray(box.end)])
  const grownBytes = changed.length - init.length
  for (const length of PATH.slice(0, -1).keys()) {
    const { start, end } = getBox(init, PATH.slice(0, length + 1))
    u32(end - start + grownBytes).copy(changed, start)
  }
  return changed
}

/** The one sequence parameter set of an avcC box, with one picture parameter set. */
function readSequenceSet(content: Buffer): Buffer {
  const [version, , , , lengthSize, sequenceSets] = content
  if (version !== 1 || lengthSize !== 0xff || sequenceSets !== 0xe1) throw new RangeError('an avcC box of another form')
  const end = 8 + content.readUInt16BE(6)
  const set = content.subarray(8, end)
  const pictureEnd = end + 3 + content.readUInt16BE(end + 1)
  const hasOnePictureSet = content[end] === 1 && isOfKind(content[end + 3], PICTURE_SET) && pictureEnd <= content.length
  // Profile, compatibility and level once more, as the playlist names them.
  if (!hasOnePictureSet || !isOfKind(set[0], SEQUENCE_SET) || !set.subarray(1, 4).equals(content.subarray(1, 4)))
    throw new RangeError('not one set of parameters of each kind')
  const rest = content.subarray(pictureEnd)
  if (rest.length !== 0 && !rest.equals(EIGHT_BIT_420)) throw new RangeError('other colors, or something after its parameters')
  return set
}

// Kinds of NAL units, 14496-10 table 7-1.
const SEQUENCE_SET = 7
const PICTURE_SET = 8
const EIGHT_BIT_420 = Buffer.of(0xfd, 0xf8, 0xf8, 0)

/** By a unit's first byte, which also says that others refer to it: how much they do is the encoder's choice. */
function isOfKind(byte = 0, kind: number): boolean {
  return (byte & 0x9f) === kind && (byte & 0x60) !== 0
}

/** The fields of a sequence parameter set in which two encoders of one plan must agree. @throws RangeError for a set that no encoder of ours has */
function describe(set: Buffer): string {
  const read = bitReader(removeEscapes(set.subarray(1)))
  const [profile, constraints, level] = [read.bits(8), read.bits(8), read.bits(8)]
  read.number() // its id
  if (profile >= HIGH_PROFILE) {
    const [chroma, lumaDepth, chromaDepth] = [read.number(), read.number(), read.number()]
    if (chroma !== 1 || lumaDepth !== 0 || chromaDepth !== 0) throw new RangeError('not 8 bit in 4:2:0')
    if (read.bits(2) !== 0) throw new RangeError('lossless, or with matrices of its own')
  }
  read.number() // how frames are counted
  const order = read.number()
  if (order === 0) read.number()
  else if (order !== 2) throw new RangeError('an order of frames in cycles')
  if (read.number() > MAX_REFERENCE_FRAMES) throw new RangeError('too many reference frames')
  const mayHaveGaps = read.bits(1)
  const [width, height, isProgressive] = [read.number(), read.number(), read.bits(1)]
  if (mayHaveGaps || !isProgressive) throw new RangeError('interlaced, or with gaps')
  read.bits(1)
  const crop = read.bits(1) ? [read.number(), read.number(), read.number(), read.number()] : []
  const shown = read.bits(1) ? [readAspectRatio(read), readSignal(read)] : [[], []]
  return JSON.stringify([profile, constraints, level, width, height, crop, shown])
}

const EXTENDED_RATIO = 255

/** Empty: pixels are square, as they are where nothing is said of them. */
function readAspectRatio(read: BitReader): number[] {
  if (!read.bits(1)) return []
  const ratio = read.bits(8)
  const [width, height] = ratio === EXTENDED_RATIO ? [read.bits(16), read.bits(16)] : [ratio, ratio === 0 ? 0 : 1]
  return width === height ? [] : [ratio, width, height]
}

/** Format, range and colors. */
function readSignal(read: BitReader): number[] {
  if (read.bits(1)) read.bits(1) // overscan
  if (!read.bits(1)) return []
  const format = read.bits(3)
  return [format, read.bits(1), ...(read.bits(1) ? [read.bits(8), read.bits(8), read.bits(8)] : [])]
}

type BitReader = { bits(count: number): number; number(): number }

/** Reads fixed numbers of bits, and numbers in Exp-Golomb code: 14496-10, 9.1. */
function bitReader(bytes: Buffer): BitReader {
  let at = 0
  function bits(count: number): number {
    let value = 0
    for (const end = at + count; at < end; at++) value = value * 2 + ((bytes.readUInt8(at >> 3) >> (7 - (at & 7))) & 1)
    return value
  }
  function number(): number {
    let zeros = 0
    while (bits(1) === 0) if (++zeros > 31) throw new RangeError('a number without an end')
    return 2 ** zeros - 1 + bits(zeros)
  }
  return { bits, number }
}
