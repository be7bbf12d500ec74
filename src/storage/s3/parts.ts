import type { Bucket } from './bucket.ts'
import { sendPart } from './objects.ts'
import type { Spooled } from './spool.ts'

type PartsOptions = {
  bucket: Bucket
  key: string
  /** Called before the first part that is sent. @returns the id of the upload */
  begin(): Promise<string>
  partBytes: number
  newSpooled(): Spooled
  signal?: AbortSignal | undefined
  /** Of an upload that is continued: its parts, and the bytes behind them, fewer than a part has, which this call takes over. */
  etags?: readonly string[]
  tail?: Spooled
}

/** What is in an upload: whole parts, and the bytes behind them, which are in no part yet and are the caller’s to close. */
type SentParts = { etags: string[]; tail: Spooled; sizeBytes: number }

type Bytes = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>

/** While another one is filled. */
const SENT_AT_ONCE = 3

/**
 * Sends bytes as parts of one size, as some stores demand, in memory that does not depend on how many there are, or on their size. A
 * tail that is shorter is returned.
 */
export async function sendParts(
  bytes: Bytes,
  { bucket, key, begin, partBytes, newSpooled, signal, etags = [], tail = newSpooled() }: PartsOptions,
): Promise<SentParts> {
  const sending: Promise<string>[] = etags.map(async (etag) => etag)
  let filling = tail

  async function send(part: Spooled, number: number, uploadId: string): Promise<string> {
    await using body = part
    return await sendPart(bucket, { key, uploadId, number, signal }, body)
  }

  async function add(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.length; ) {
      const taken = piece.subarray(at, at + partBytes - filling.sizeBytes())
      await filling.add(taken)
      at += taken.length
      if (filling.sizeBytes() < partBytes) continue
      const sent = send(filling, sending.length + 1, await begin())
      sent.catch(() => undefined) // it is thrown below
      sending.push(sent)
      filling = newSpooled()
      await sending.at(-1 - SENT_AT_ONCE)
    }
  }

  try {
    for await (const piece of readAhead(bytes)) await add(piece)
    return {
      etags: await Promise.all(sending),
      tail: filling,
      sizeBytes: sending.length * partBytes + filling.sizeBytes(),
    }
  } catch (error) {
    await filling[Symbol.asyncDispose]()
    await Promise.allSettled(sending)
    throw error
  }
}

/**
 * Asks for the next piece while one is used, such as a block that another thread seals meanwhile: of which there is a copy, because the memory
 * it came in may be that of the next one.
 */
export async function* readAhead(bytes: Bytes): AsyncGenerator<Buffer> {
  const pieces = readPieces(bytes)
  let memory = Buffer.alloc(0)
  let next = pieces.next()
  try {
    for (let read = await next; !read.done; read = await next) {
      const { length } = read.value
      if (memory.length < length) memory = Buffer.allocUnsafeSlow(length)
      memory.set(read.value)
      next = pieces.next()
      next.catch(() => undefined) // it is thrown in its turn
      yield memory.subarray(0, length)
    }
  } finally {
    pieces.return(undefined).catch(() => undefined) // not awaited, as a client may be
  }
}

async function* readPieces(bytes: Bytes): AsyncGenerator<Uint8Array> {
  for await (const piece of bytes) yield typeof piece === 'string' ? Buffer.from(piece) : piece
}
