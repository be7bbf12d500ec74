// RFC 9559, section 5: elements that contain others, and what is read or changed of them.
export const SEGMENT = 0x18538067
export const CLUSTER = 0x1f43b675
export const CLUSTER_TIMESTAMP = 0xe7
const INFO = 0x1549a966
const DURATION = 0x4489
/** Tables of where elements are: they change their places. */
const POSITIONS = [0x114d9b74, 0x1c53bb6b]
const UNKNOWN_SIZE = Buffer.from('01ffffffffffffff', 'hex')
/** With which each Matroska file begins. */
const EBML = Buffer.from('1a45dfa3', 'hex')
const [MAX_ID_BYTES, MAX_NUMBER_BYTES] = [4, 8]
/** By so much can a block be before its cluster: its time has two bytes, with a sign. */
const SHIFT_TICKS = 2 ** 15

/** What is written for bytes that are read, and how many of the following ones are copied or left out as they come. */
type Step = { taken: number; out: readonly Buffer[]; following?: number; isLeftOut?: boolean }

/**
 * A Matroska file whose times are all later by the same number of ticks; any other file as it is. ffmpeg gives a packet before zero no
 * time, and counts its frame from where it thinks that the file begins.
 */
export async function* raiseMatroskaTimes(clear: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  let isMatroska: boolean | undefined
  let [following, isLeftOut] = [0, false]
  for await (const part of clear) {
    rest = rest.length > 0 ? Buffer.concat([rest, part]) : part
    if (rest.length < EBML.length) continue
    isMatroska ??= rest.subarray(0, EBML.length).equals(EBML)
    const out: Buffer[] = []
    while (rest.length > 0) {
      // Damage: ffmpeg itself looks for where it goes on.
      if (!isMatroska) following = rest.length
      const copied = rest.subarray(0, following)
      if (!isLeftOut) out.push(copied)
      following -= copied.length
      rest = rest.subarray(copied.length)
      const step = following === 0 && isMatroska ? raiseElement(rest) : undefined
      if (step === undefined) break
      if (step === 'damaged') isMatroska = false
      else {
        out.push(...step.out)
        rest = rest.subarray(step.taken)
        following = step.following ?? 0
      }
      isLeftOut = step !== 'damaged' && step.isLeftOut === true
    }
    yield Buffer.concat(out)
  }
  yield rest
}

/** @returns undefined where more bytes are needed */
function raiseElement(bytes: Buffer): Step | undefined | 'damaged' {
  const header = readHeader(bytes)
  if (header === undefined || header === 'damaged') return header
  const { id, idBytes, start, sizeBytes } = header
  const own = bytes.subarray(0, start)
  if (id === SEGMENT || id === CLUSTER) return { taken: start, out: [bytes.subarray(0, idBytes), UNKNOWN_SIZE] }
  if (id === INFO) return { taken: start, out: [own] }
  const isTime = (id === CLUSTER_TIMESTAMP || id === DURATION) && sizeBytes <= MAX_NUMBER_BYTES
  if (!isTime)
    return { taken: start, out: POSITIONS.includes(id) ? [] : [own], following: sizeBytes, isLeftOut: POSITIONS.includes(id) }
  const taken = start + sizeBytes
  if (bytes.length < taken) return undefined
  const content = bytes.subarray(start, taken)
  return { taken, out: id === DURATION ? [own, raiseDuration(content)] : [bytes.subarray(0, idBytes), raiseTimestamp(content)] }
}

/** A size of eight bytes, and the content. */
function raiseTimestamp(content: Buffer): Buffer {
  const raised = Buffer.alloc(1 + MAX_NUMBER_BYTES, 0x80 | MAX_NUMBER_BYTES)
  raised.writeBigUInt64BE(BigInt(toNumber(content)) + BigInt(SHIFT_TICKS), 1)
  return raised
}

function raiseDuration(content: Buffer): Buffer {
  const raised = Buffer.from(content)
  if (content.length === 8) raised.writeDoubleBE(content.readDoubleBE() + SHIFT_TICKS)
  if (content.length === 4) raised.writeFloatBE(content.readFloatBE() + SHIFT_TICKS)
  return raised
}

/** @returns undefined where the header is not complete, `damaged` where no element begins */
export function readHeader(
  bytes: Buffer,
): { id: number; idBytes: number; start: number; sizeBytes: number } | undefined | 'damaged' {
  const idBytes = numberBytes(bytes[0])
  const start = idBytes + numberBytes(bytes[idBytes])
  if (idBytes > MAX_ID_BYTES || start - idBytes > MAX_NUMBER_BYTES) return 'damaged'
  if (bytes.length < start) return undefined
  const size = Buffer.from(bytes.subarray(idBytes, start))
  // Its length is written as zeros before the first one.
  size.writeUInt8(size.readUInt8(0) & (0xff >> size.length), 0)
  return { id: toNumber(bytes.subarray(0, idBytes)), idBytes, start, sizeBytes: toNumber(size) }
}

/** How many bytes a number has that begins with this one. */
function numberBytes(first = 0xff): number {
  return Math.clz32(first) - 23
}

export function toNumber(bytes: Buffer): number {
  return bytes.reduce((value, byte) => value * 256 + byte, 0)
}
