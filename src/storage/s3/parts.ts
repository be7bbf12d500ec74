import type { Bucket } from './bucket.ts'
import { sendPart } from './objects.ts'

type PartsOptions = {
  bucket: Bucket
  key: string
  /** Called before the first part that is sent. @returns the id of the upload */
  begin(): Promise<string>
  partBytes: number
  /** As many parts are in memory: the one that is filled, and those that are sent. */
  inMemory: number
  signal?: AbortSignal | undefined
  /** Of an upload that is continued: its parts, and the bytes behind them, fewer than a part has. */
  etags?: readonly string[]
  tail?: Buffer
}

/** What is in an upload: whole parts, and the bytes behind them, which are in no part yet. */
type SentParts = { etags: string[]; tail: Buffer; sizeBytes: number }

type Bytes = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>

/**
 * Sends bytes as parts of one size, as some stores demand, in memory that does not depend on how many there are. A tail that is shorter
 * is returned.
 */
export async function sendParts(
  bytes: Bytes,
  { bucket, key, begin, partBytes, inMemory, signal, etags = [], tail: before = Buffer.alloc(0) }: PartsOptions,
): Promise<SentParts> {
  const sending: Promise<string>[] = etags.map(async (etag) => etag)
  let tail: Buffer = Buffer.alloc(0)
  try {
    for await (const part of cutParts(bytes, before, partBytes)) {
      if (part.length < partBytes) {
        tail = part
        break
      }
      const uploadId = await begin()
      const sent = sendPart(bucket, { key, uploadId, number: sending.length + 1, signal }, part)
      sent.catch(() => undefined) // it is thrown below
      sending.push(sent)
      await sending.at(1 - inMemory)
    }
    return { etags: await Promise.all(sending), tail, sizeBytes: sending.length * partBytes + tail.length }
  } catch (error) {
    await Promise.allSettled(sending)
    throw error
  }
}

const FIRST_BUFFER_BYTES = 256 * 1024

/** Copies bytes into parts: all of the same size but the last, which may be missing. */
async function* cutParts(bytes: Bytes, before: Buffer, partBytes: number): AsyncGenerator<Buffer> {
  let part: Buffer = Buffer.from(before)
  let filled = part.length
  for await (const chunk of bytes) {
    const piece = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    for (let at = 0; at < piece.length; ) {
      if (filled === part.length) part = enlarge(part, Math.min(partBytes, Math.max(FIRST_BUFFER_BYTES, 2 * part.length)))
      const taken = Math.min(piece.length - at, part.length - filled)
      part.set(piece.subarray(at, at + taken), filled)
      filled += taken
      at += taken
      if (filled < partBytes) continue
      yield part
      part = Buffer.alloc(0)
      filled = 0
    }
  }
  if (filled > 0) yield part.subarray(0, filled)
}

function enlarge(part: Buffer, lengthBytes: number): Buffer {
  const larger = Buffer.allocUnsafe(lengthBytes)
  part.copy(larger)
  return larger
}
