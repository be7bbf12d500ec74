// What the tables of one track of an MP4 or MOV say; ffmpeg reads those of all tracks, each time that it opens a file. Whatever is unusual,
// such as fragments, several edits or packets in other files, is left to ffmpeg.

/** Reads bytes of a file; fewer only at its end. */
export type ReadAt = (at: number, sizeBytes: number) => Promise<Buffer>

/** A track by its number in the file, among all of its streams. */
export type TrackOf = { sizeBytes: number; stream: number; kind: 'vide' | 'soun' }

export type TrackIndex = {
  /** The box with the brands of the file; empty where there is none. */
  brands: Buffer
  /** Ticks a second. */
  timescale: number
  /** The moment of the track that is its first in the file, and how long after the file's beginning that is; undefined: all of it, from there. */
  edit: { fromTicks: number; delayS: number } | undefined
  /** The boxes of its sample table. */
  tables: readonly Box[]
}

type Box = { type: string; start: number; contentStart: number; end: number }

/** Rows of numbers. @throws RangeError for one that there is not */
export type Table = { count: number; at(row: number, column: number): number }

const MAX_BOXES = 500
/** Half a million frames: five hours of video, and ten of AAC. */
const MAX_TABLE_BYTES = 4 * 2 ** 20
const MAX_SMALL_BOX_BYTES = 2 ** 16

/** @returns undefined where `find` or the index meets what only ffmpeg can read */
export async function findByIndex<T>(
  read: ReadAt,
  track: TrackOf,
  find: (index: TrackIndex) => Promise<T | undefined>,
): Promise<T | undefined> {
  try {
    const index = await readTrackIndex(read, track)
    return index && (await find(index))
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

async function readTrackIndex(read: ReadAt, { sizeBytes, stream, kind }: TrackOf): Promise<TrackIndex | undefined> {
  const file = await listBoxes(read, { contentStart: 0, end: sizeBytes })
  const movie = await listBoxes(read, getChild(file, 'moov'))
  // What may be a stream for ffmpeg, too, such as a cover, must not come before the track.
  const streams = movie.filter(({ type }) => ['trak', 'udta', 'meta'].includes(type))
  const track = streams[stream]
  if (!track || streams.slice(0, stream + 1).some(({ type }) => type !== 'trak')) return undefined
  if (movie.some(({ type }) => type === 'mvex')) return undefined // fragments
  const inTrack = await listBoxes(read, track)
  const media = await listBoxes(read, getChild(inTrack, 'mdia'))
  const handler = await readContent(read, getChild(media, 'hdlr'))
  if (handler.toString('latin1', 8, 12) !== kind) return undefined
  const information = await listBoxes(read, getChild(media, 'minf'))
  if (!(await isInThisFile(read, information))) return undefined
  const brands = file.find(({ type }) => type === 'ftyp')
  return {
    brands: brands ? await readBox(read, brands) : Buffer.alloc(0),
    timescale: await readTimescale(read, getChild(media, 'mdhd')),
    edit: await readEdit(read, inTrack, await readTimescale(read, getChild(movie, 'mvhd'))),
    tables: await listBoxes(read, getChild(information, 'stbl')),
  }
}

/** The boxes within one, by their headers. */
async function listBoxes(read: ReadAt, { contentStart, end }: Pick<Box, 'contentStart' | 'end'>): Promise<Box[]> {
  const boxes: Box[] = []
  for (let start = contentStart; start + 8 <= end; ) {
    const header = await read(start, 16)
    const size = header.readUInt32BE(0)
    const headerBytes = size === 1 ? 16 : 8
    const boxEnd = size === 0 ? end : start + (size === 1 ? Number(header.readBigUInt64BE(8)) : size)
    if (boxEnd < start + headerBytes || boxEnd > end || boxes.length === MAX_BOXES) throw new RangeError('no list of boxes')
    boxes.push({ type: header.toString('latin1', 4, 8), start, contentStart: start + headerBytes, end: boxEnd })
    start = boxEnd
  }
  return boxes
}

function getChild(boxes: readonly Box[], type: string): Box {
  const box = boxes.find((each) => each.type === type)
  if (!box) throw new RangeError(`there is no ${type} box`)
  return box
}

/** A small box with its header. */
export function getBoxOf(read: ReadAt, { tables }: TrackIndex, type: string): Promise<Buffer> {
  return readBox(read, getChild(tables, type))
}

function readBox(read: ReadAt, { start, end }: Box): Promise<Buffer> {
  return readBytes(read, start, end, MAX_SMALL_BOX_BYTES)
}

function readContent(read: ReadAt, { contentStart, end }: Box, maxBytes = MAX_SMALL_BOX_BYTES): Promise<Buffer> {
  return readBytes(read, contentStart, end, maxBytes)
}

async function readBytes(read: ReadAt, from: number, to: number, maxBytes: number): Promise<Buffer> {
  if (to - from > maxBytes) throw new RangeError('a box is too large')
  const bytes = await read(from, to - from)
  if (bytes.length < to - from) throw new RangeError('the file ends early')
  return bytes
}

/**
 * Numbers of 32 bits, in rows.
 * @param type of the box that has, after `fieldsBytes`, the number of rows and these
 * @throws RangeError when there is no such box, or a part of it is missing
 */
export async function readTable(
  read: ReadAt,
  { tables }: TrackIndex,
  { type, columns, fieldsBytes = 4 }: { type: string; columns: number; fieldsBytes?: number },
): Promise<Table> {
  const content = await readContent(read, getChild(tables, type), MAX_TABLE_BYTES)
  const count = content.readUInt32BE(fieldsBytes)
  const numbers = content.subarray(fieldsBytes + 4)
  if (numbers.length < 4 * count * columns) throw new RangeError('a table is too short')
  const words = new Uint32Array(new Uint8Array(numbers.subarray(0, 4 * count * columns)).buffer)
  Buffer.from(words.buffer).swap32()
  return {
    count,
    at(row, column) {
      const word = words[row * columns + column]
      if (word === undefined) throw new RangeError('there is no such row')
      return word
    },
  }
}

/** The number of the packet whose time it is, by how many packets have which duration; behind the last one, how many there are. */
export function packetAt(durations: Table, ticks: number): number {
  let [packet, beganAt] = [0, 0]
  for (let row = 0; row < durations.count; row++) {
    const [count, duration] = [durations.at(row, 0), durations.at(row, 1)]
    if (ticks < beganAt + count * duration) return packet + Math.max(0, Math.floor((ticks - beganAt) / duration))
    packet += count
    beganAt += count * duration
  }
  return packet
}

export function hasTable({ tables }: TrackIndex, type: string): boolean {
  return tables.some((box) => box.type === type)
}

async function readTimescale(read: ReadAt, header: Box): Promise<number> {
  const content = await readContent(read, header)
  const timescale = content.readUInt32BE(content.readUInt8(0) === 1 ? 20 : 12)
  if (timescale === 0) throw new RangeError('a clock that does not move')
  return timescale
}

/** Whether the packets are not in another file. */
async function isInThisFile(read: ReadAt, information: readonly Box[]): Promise<boolean> {
  const references = await readContent(read, getChild(await listBoxes(read, getChild(information, 'dinf')), 'dref'))
  const inThisFile = 1
  return references.readUInt32BE(4) === 1 && (references.readUInt32BE(16) & inThisFile) !== 0
}

/** @throws RangeError where parts of the track are shown in another order, at another speed or not */
async function readEdit(read: ReadAt, inTrack: readonly Box[], movieTimescale: number): Promise<TrackIndex['edit']> {
  const edits = inTrack.find(({ type }) => type === 'edts')
  if (!edits) return undefined
  const list = await readContent(read, getChild(await listBoxes(read, edits), 'elst'))
  const isLong = list.readUInt8(0) === 1
  const count = list.readUInt32BE(4)
  if (count < 1 || count > 2) throw new RangeError('several edits')
  const rows = Array.from({ length: count }, (_, row) => {
    const at = 8 + row * (isLong ? 20 : 12)
    return isLong
      ? { lasts: Number(list.readBigUInt64BE(at)), from: Number(list.readBigInt64BE(at + 8)), rate: list.readUInt32BE(at + 16) }
      : { lasts: list.readUInt32BE(at), from: list.readInt32BE(at + 4), rate: list.readUInt32BE(at + 8) }
  })
  const delay = count === 2 ? rows[0] : undefined
  const shown = rows.at(-1)
  const isDelay = delay === undefined || delay.from === -1
  if (!shown || !isDelay || shown.from < 0 || shown.rate !== 0x1_0000) throw new RangeError('several edits')
  return { fromTicks: shown.from, delayS: (delay?.lasts ?? 0) / movieTimescale }
}
