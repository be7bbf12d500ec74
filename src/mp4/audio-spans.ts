import {
  findByIndex,
  getBoxOf,
  hasTable,
  packetAt,
  type ReadAt,
  readTable,
  type Table,
  type TrackIndex,
  type TrackOf,
} from './track-index.ts'

/** Spans of time of an audio track. */
type AudioSpans = Pick<TrackIndex, 'brands' | 'timescale'> & {
  /** The box that says how packets are decoded, as it is in the file. */
  description: Buffer
  /** The packets of each span. */
  spans: PacketRun[][]
}

/** Packets that are next to each other in the file: the bytes of each, from `at` on. */
export type PacketRun = { at: number; sizes: number[] }
type Span = { fromS: number; lengthS: number }

/** Of a span, and their bytes. */
const MAX_PACKETS = 10_000
const MAX_SPAN_BYTES = 8 * 2 ** 20
/** An encoder's delay is shorter. */
const MAX_CUT_S = 1

/** Finds the packets that are heard in some spans of time, ascending, to an encoder's delay. @returns undefined: only ffmpeg can read them */
export function findAudioSpans(
  read: ReadAt,
  { spans, ...track }: Omit<TrackOf, 'kind'> & { spans: readonly Span[] },
): Promise<AudioSpans | undefined> {
  return findByIndex(read, { ...track, kind: 'soun' }, async (index) => {
    const { brands, timescale, edit } = index
    const description = await getBoxOf(read, index, 'stsd')
    const isOnlyOne = description.readUInt32BE(12) === 1
    if (!isOnlyOne || (edit && (edit.fromTicks > MAX_CUT_S * timescale || edit.delayS > MAX_CUT_S))) return undefined
    const packets = await readPackets(read, index)
    const ranges = spans.map((span) => rangeOf(packets, span, timescale))
    return { brands, timescale, description, spans: findRuns(packets, ranges) }
  })
}

type Packets = Record<'sizes' | 'runs' | 'times', Table> & { chunks: { count: number; at(chunk: number): number } }

async function readPackets(read: ReadAt, index: TrackIndex): Promise<Packets> {
  return {
    // Packets of one size, as those of uncompressed audio, have no table, which is an error here.
    sizes: await readTable(read, index, { type: 'stsz', columns: 1, fieldsBytes: 8 }),
    chunks: await readChunks(read, index),
    runs: await readTable(read, index, { type: 'stsc', columns: 3 }),
    times: await readTable(read, index, { type: 'stts', columns: 2 }),
  }
}

async function readChunks(read: ReadAt, index: TrackIndex): Promise<Packets['chunks']> {
  if (!hasTable(index, 'co64')) {
    const { count, at } = await readTable(read, index, { type: 'stco', columns: 1 })
    return { count, at: (chunk) => at(chunk, 0) }
  }
  const { count, at } = await readTable(read, index, { type: 'co64', columns: 2 })
  return { count, at: (chunk) => at(chunk, 0) * 2 ** 32 + at(chunk, 1) }
}

type Range = { first: number; end: number }

function rangeOf({ sizes, times }: Packets, { fromS, lengthS }: Span, timescale: number): Range {
  const first = packetAt(times, Math.max(0, fromS) * timescale)
  const end = Math.min(packetAt(times, (fromS + lengthS) * timescale), sizes.count)
  if (end - first > MAX_PACKETS) throw new RangeError('too many packets')
  return { first, end }
}

/** @param ranges in ascending order */
function findRuns(packets: Packets, ranges: readonly Range[]): PacketRun[][] {
  const chunks = listChunks(packets)
  let chunk = chunks.next().value
  return ranges.map((range) => {
    const runs: PacketRun[] = []
    let rangeBytes = 0
    for (; chunk && chunk.first < range.end; chunk = chunks.next().value) {
      if (chunk.end > range.first) {
        const run = runIn(packets, chunk, range)
        rangeBytes = run.sizes.reduce((sum, size) => sum + size, rangeBytes)
        if (rangeBytes > MAX_SPAN_BYTES) throw new RangeError('packets are too large')
        runs.push(run)
      }
      if (chunk.end >= range.end) break // the next range may begin in it
    }
    return runs
  })
}

/** The packets of a range that are in a chunk. */
function runIn({ sizes }: Packets, chunk: Chunk, range: Range): PacketRun {
  const first = Math.max(chunk.first, range.first)
  let { at } = chunk
  for (let before = chunk.first; before < first; before++) at += sizes.at(before, 0)
  return { at, sizes: Array.from({ length: Math.min(chunk.end, range.end) - first }, (_, i) => sizes.at(first + i, 0)) }
}

/** Packets that are next to each other in the file, from `at` on. */
type Chunk = Range & { at: number }

function* listChunks({ chunks, runs }: Packets): Generator<Chunk, undefined> {
  let first = 0
  for (let run = 0; run < runs.count; run++) {
    const [firstChunk, packets, description] = [runs.at(run, 0) - 1, runs.at(run, 1), runs.at(run, 2)]
    const endChunk = run + 1 < runs.count ? runs.at(run + 1, 0) - 1 : chunks.count
    if (description !== 1) throw new RangeError('packets with another description')
    if ((run === 0 && firstChunk !== 0) || endChunk < firstChunk || endChunk > chunks.count) throw new RangeError('no order')
    for (let chunk = firstChunk; chunk < endChunk; chunk++, first += packets)
      yield { first, end: first + packets, at: chunks.at(chunk) }
  }
}
