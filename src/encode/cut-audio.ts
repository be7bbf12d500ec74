import { Readable } from 'node:stream'
import { audioSegment, soundInit } from '../mp4/aac.ts'
import { findAudioSpans, type PacketRun } from '../mp4/audio-spans.ts'
import type { ReadAt } from '../mp4/track-index.ts'
import { withClearBytes } from '../sandbox/clear-bytes.ts'
import type { SealedSource } from '../sandbox/media-run.ts'

/**
 * Some spans of an audio track as fragmented MP4, one after another. Of two hours that takes a hundredth of a second, where ffmpeg reads the
 * tables of the whole file for each of them.
 * @returns undefined where the file is not an MP4 with a simple index: then ffmpeg reads it
 */
export async function cutAudio(
  source: SealedSource,
  track: { stream: number; spans: readonly { fromS: number; lengthS: number }[] },
): Promise<Readable | undefined> {
  if (source.openInPlace) return undefined
  return withClearBytes(source, async (read) => {
    const found = await findAudioSpans(read, { ...track, sizeBytes: source.sizeBytes })
    if (!found) return undefined
    const parts = [soundInit(found)]
    let firstFrame = 0
    for (const packets of found.spans) {
      const frames = await readPackets(read, packets)
      parts.push(audioSegment(frames, { sequence: parts.length, firstFrame }))
      firstFrame += frames.length
    }
    return Readable.from(parts)
  })
}

/** Between packets of a track are those of others: of a usual bit rate, a second of them is read together. */
const READ_TOGETHER_BYTES = 2 ** 20

async function readPackets(read: ReadAt, runs: readonly PacketRun[]): Promise<Buffer[]> {
  const packets: Buffer[] = []
  let known: { at: number; bytes: Buffer } = { at: 0, bytes: Buffer.alloc(0) }
  for (const { at, sizes } of runs) {
    const sizeBytes = sizes.reduce((sum, size) => sum + size, 0)
    const isKnown = at >= known.at && at + sizeBytes <= known.at + known.bytes.length
    if (!isKnown) known = { at, bytes: await read(at, Math.max(sizeBytes, READ_TOGETHER_BYTES)) }
    let from = at - known.at
    for (const size of sizes) {
      packets.push(known.bytes.subarray(from, from + size))
      from += size
    }
  }
  return packets
}
