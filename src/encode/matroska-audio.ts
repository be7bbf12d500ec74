import { CLUSTER, CLUSTER_TIMESTAMP, readHeader, SEGMENT, toNumber } from '../sandbox/matroska.ts'

// Matroska as ffmpeg writes it into a pipe: of its containers the simplest that has a time with each packet.

/** Samples of all channels in turn. */
export type AudioBlock = { timeS: number; samples: Float32Array }

// RFC 9559, section 5: the elements that contain blocks, and what is read of them.
const BLOCK_GROUP = 0xa0
const SIMPLE_BLOCK = 0xa3
const BLOCK = 0xa1
/** The number of the track, a time of two bytes that counts from the cluster's, and flags. */
const BLOCK_HEADER_BYTES = 4
/** A block is some 10 kB. */
const MAX_ELEMENT_BYTES = 16 * 2 ** 20

/** Reads a Matroska stream of one track of PCM in 32-bit floating point numbers, in milliseconds. @throws RangeError when it is none */
export async function* readMatroskaAudio(bytes: AsyncIterable<Buffer>): AsyncGenerator<AudioBlock> {
  let clusterMs = 0
  for await (const { id, content } of readElements(bytes)) {
    if (id === CLUSTER_TIMESTAMP) clusterMs = toNumber(content)
    if (id !== SIMPLE_BLOCK && id !== BLOCK) continue
    // A copy, for the alignment.
    const { buffer } = new Uint8Array(content.subarray(BLOCK_HEADER_BYTES))
    yield { timeS: (clusterMs + content.readInt16BE(1)) / 1000, samples: new Float32Array(buffer) }
  }
}

async function* readElements(bytes: AsyncIterable<Buffer>): AsyncGenerator<{ id: number; content: Buffer }> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const part of bytes) {
    rest = Buffer.concat([rest, part])
    for (let header = readHeader(rest); header; header = readHeader(rest)) {
      if (header === 'damaged') throw new RangeError('not a Matroska stream')
      const { id, start, sizeBytes } = header
      const end = [SEGMENT, CLUSTER, BLOCK_GROUP].includes(id) ? start : start + sizeBytes
      if (end - start > MAX_ELEMENT_BYTES) throw new RangeError(`an element of ${sizeBytes} bytes`)
      if (rest.length < end) break
      if (end > start) yield { id, content: rest.subarray(start, end) }
      rest = rest.subarray(end)
    }
  }
}
