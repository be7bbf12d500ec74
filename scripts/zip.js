// ZIP archives, as far as a plug-in needs them: no directory entries, no dates, so that the same files are the same archive.
import { deflateRawSync } from 'node:zlib'

const CRC_TABLE = Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc >>> 0
})

function crc32(bytes) {
  let crc = 0xffffffff
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 0xff] ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}

const VERSION_2_0 = 20
const UTF_8_NAMES = 0x0800
const DEFLATED = 8
/** 1 January 1980, midnight: the format's zero. */
const DATE = 0x0021
/** A regular file that everyone may read, as Unix has it. */
const MADE_BY_UNIX = (3 << 8) | VERSION_2_0
const MODE_644 = (0o100644 << 16) >>> 0

/** @param files contents by their path in the archive. @returns the archive (APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16) */
export function zip(files) {
  const locals = []
  const centrals = []
  let offset = 0
  for (const [path, bytes] of Object.entries(files)) {
    const name = Buffer.from(path)
    const deflated = deflateRawSync(bytes, { level: 9 })
    const common = Buffer.alloc(26)
    common.writeUInt16LE(VERSION_2_0, 0)
    common.writeUInt16LE(UTF_8_NAMES, 2)
    common.writeUInt16LE(DEFLATED, 4)
    common.writeUInt16LE(DATE, 8)
    common.writeUInt32LE(crc32(bytes), 10)
    common.writeUInt32LE(deflated.length, 14)
    common.writeUInt32LE(bytes.length, 18)
    common.writeUInt16LE(name.length, 22)
    const local = [Buffer.from('PK\x03\x04', 'latin1'), common, name, deflated]
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(MODE_644, 6)
    rest.writeUInt32LE(offset, 10)
    centrals.push(Buffer.from('PK\x01\x02', 'latin1'), uint16(MADE_BY_UNIX), common, rest, name)
    locals.push(...local)
    offset += local.reduce((sum, part) => sum + part.length, 0)
  }
  const directory = Buffer.concat(centrals)
  const end = Buffer.alloc(18)
  const count = Object.keys(files).length
  end.writeUInt16LE(count, 4)
  end.writeUInt16LE(count, 6)
  end.writeUInt32LE(directory.length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...locals, directory, Buffer.from('PK\x05\x06', 'latin1'), end])
}

function uint16(value) {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}
