/**
 * ISO base media boxes (ISO/IEC 14496-12): 32-bit size that includes the header, four-character type, content. The 64-bit sizes and the
 * size 0 of the standard are rejected: neither ffmpeg's segments nor ours have them.
 */
type Box = { type: string; start: number; contentStart: number; end: number }

/** The boxes in `bytes` from `start` to `end`, one after another. @throws RangeError where they do not fill it exactly */
export function parseBoxes(bytes: Buffer, start = 0, end = bytes.length): Box[] {
  const boxes: Box[] = []
  for (let at = start; at < end; ) {
    const sizeBytes = bytes.readUInt32BE(at)
    if (sizeBytes < 8 || at + sizeBytes > end) throw new RangeError(`a box of ${sizeBytes} bytes does not fit into its parent`)
    boxes.push({ type: bytes.toString('latin1', at + 4, at + 8), start: at, contentStart: at + 8, end: at + sizeBytes })
    at += sizeBytes
  }
  return boxes
}

// Bytes of fields before the child boxes, in boxes that have both.
const FIELDS_BYTES: Record<string, number> = { stsd: 8, avc1: 78, mp4a: 28 }

/** The first box at a path such as `['moof', 'traf', 'tfdt']`. @throws RangeError when there is none */
export function getBox(bytes: Buffer, types: readonly string[]): Box {
  let parent: Box = { type: '', start: 0, contentStart: 0, end: bytes.length }
  for (const type of types) {
    const child = parseBoxes(bytes, parent.contentStart + (FIELDS_BYTES[parent.type] ?? 0), parent.end).find(
      (box) => box.type === type,
    )
    if (!child) throw new RangeError(`there is no ${types.join('/')} box`)
    parent = child
  }
  return parent
}

export function encodeBox(type: string, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([u32(8 + content.length), Buffer.from(type, 'latin1'), content])
}

/** Encodes a box that begins with a version and 24 bits of flags. */
export function encodeFullBox(type: string, version: number, flags: number, ...parts: readonly Uint8Array[]): Buffer {
  return encodeBox(type, u32(version * 2 ** 24 + flags), ...parts)
}

export function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * values.length)
  values.forEach((value, index) => {
    bytes.writeUInt16BE(value, 2 * index)
  })
  return bytes
}

export function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, index) => {
    bytes.writeUInt32BE(value, 4 * index)
  })
  return bytes
}

export function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}
