import { createDecipheriv } from 'node:crypto'
import { MIN_LEAD_S } from '../../encode/chunk.ts'
import { AAC_FRAMES_PER_SEGMENT, type Plan } from '../../encode/plan.ts'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../../mp4/aac.ts'
import type { TaskBody } from '../protocol.ts'
import { readTracks, type SourceTrack } from './mp4-index.ts'
import type { Range, SourceCopy } from './source-copies.ts'

/** More of the source is needed than the task may fetch, or which parts is not known. */
export class NotEnoughAllowed extends Error {}

/** ffmpeg reads as much of the beginning before it believes what the index says of the tracks. */
const PROBED_BYTES = 5 * 2 ** 20
/** Of each track, where the tracks lie one after another. */
const FIRST_SAMPLES_BYTES = 64 * 1024
/** Frames are stored before they are shown, and a seek ends a little earlier than asked for. */
const MARGIN_S = 2
/** Ranges that are nearer to each other are fetched as one. */
const MERGED_GAP_BYTES = 64 * 1024
const MAX_INDEX_BYTES = 64 * 2 ** 20
const BLOCK = 16

/**
 * Fetches what ffmpeg reads for a chunk: all of a small file; of a large one its index, its beginning and the samples of the chunk from the key frame
 * before them on. What else it reads would be zeros, which gives errors of the decoder.
 * @throws NotEnoughAllowed
 */
export async function fetchParts(copy: SourceCopy, { source, chunk, plan }: TaskBody): Promise<void> {
  if (source.allowedBytes >= source.sealedBytes) return copy.fetch({ first: 0, last: source.sealedBytes - 1 })
  const clear = openClear(copy, source)
  const index = await findIndex(clear, source.sizeBytes)
  if (index.last - index.first > MAX_INDEX_BYTES) throw new NotEnoughAllowed('its index is too large')
  const tracks = readIndex(await clear(index))
  const fileStartS = Math.min(...tracks.map(({ startS }) => startS))
  const span = chunkSpan(plan, chunk)
  const wanted = tracks.filter(({ handler }) => handler === (chunk.kind === 'video' ? 'vide' : 'soun'))
  const firstByte = Math.min(...tracks.map(({ firstByte }) => firstByte))
  const ranges = [
    { first: firstByte, last: firstByte + PROBED_BYTES },
    ...tracks.map(({ firstByte: first }) => ({ first, last: first + FIRST_SAMPLES_BYTES })),
    ...wanted.flatMap((track: SourceTrack) => track.samplesBetween(fileStartS + span.fromS, fileStartS + span.toS)),
  ]
  for (const range of merge(ranges)) await copy.fetch(padded(range, source.sealedBytes))
}

function readIndex(moov: Buffer): SourceTrack[] {
  try {
    return readTracks(moov)
  } catch (error) {
    if (error instanceof RangeError) throw new NotEnoughAllowed(`its index cannot be read: ${error.message}`)
    throw error
  }
}

/** When the chunk is in the source, in seconds after its start. */
function chunkSpan(plan: Plan, { kind, firstSegment, segmentCount }: TaskBody['chunk']): { fromS: number; toS: number } {
  const { videoTrack, audioTrack, startS = 0 } = plan
  const segmentS =
    kind === 'video' && videoTrack
      ? (videoTrack.gopFrames * videoTrack.rateDen) / videoTrack.rateNum
      : (AAC_FRAMES_PER_SEGMENT * AAC_FRAME_SAMPLES) / AAC_RATE_HZ
  const firstS =
    kind === 'video' && videoTrack
      ? ((videoTrack.firstFrame ?? 0) * videoTrack.rateDen) / videoTrack.rateNum
      : (audioTrack?.firstSample ?? 0) / AAC_RATE_HZ
  const fromS = startS + firstS + firstSegment * segmentS
  return { fromS: fromS - MIN_LEAD_S - MARGIN_S, toS: fromS + segmentCount * segmentS + MARGIN_S }
}

function merge(ranges: readonly Range[]): Range[] {
  const merged: Range[] = []
  for (const range of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = merged.at(-1)
    if (before && range.first - before.last <= MERGED_GAP_BYTES) before.last = Math.max(before.last, range.last)
    else merged.push({ ...range })
  }
  return merged
}

/** A block of the cipher needs the one before it. */
function padded({ first, last }: Range, sealedBytes: number): Range {
  return { first: Math.max(0, first - BLOCK), last: Math.min(sealedBytes - 1, last + BLOCK) }
}

/** Fetches and decrypts a range of the clear file. */
function openClear(copy: SourceCopy, { keyHex, ivHex, sealedBytes }: TaskBody['source']) {
  const key = Buffer.from(keyHex, 'hex')
  return async ({ first, last }: Range): Promise<Buffer> => {
    const from = Math.floor(first / BLOCK) * BLOCK
    const to = Math.min(sealedBytes, (Math.floor(last / BLOCK) + 1) * BLOCK)
    const sealedRange = { first: Math.max(0, from - BLOCK), last: to - 1 }
    await copy.fetch(sealedRange)
    const sealed = await copy.read(sealedRange)
    const iv = from === 0 ? Buffer.from(ivHex, 'hex') : sealed.subarray(0, BLOCK)
    const decipher = createDecipheriv('aes-128-cbc', key, iv).setAutoPadding(false)
    const clear = Buffer.concat([decipher.update(from === 0 ? sealed : sealed.subarray(BLOCK)), decipher.final()])
    return clear.subarray(first - from, last - from + 1)
  }
}

const MAX_BOXES = 100

/** Where the box `moov` is. */
async function findIndex(clear: (range: Range) => Promise<Buffer>, sizeBytes: number): Promise<Range> {
  let at = 0
  for (let n = 0; n < MAX_BOXES && at + BLOCK <= sizeBytes; n++) {
    const header = await clear({ first: at, last: at + BLOCK - 1 })
    const short = header.readUInt32BE(0)
    const length = short === 1 ? Number(header.readBigUInt64BE(8)) : short === 0 ? sizeBytes - at : short
    if (length < 8) break
    if (header.toString('latin1', 4, 8) === 'moov') return { first: at, last: at + length - 1 }
    at += length
  }
  throw new NotEnoughAllowed('it has no index at its beginning or end')
}
