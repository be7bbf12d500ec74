import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isDiskFull } from '../../errors.ts'

/**
 * Bytes of a known number, to be read as often as a request is tried; a block is kept until two more were read. `sha256`: in hex, where it
 * is known without reading them.
 */
export type Blocks = { sizeBytes(): number; blocks(): AsyncIterable<Buffer>; sha256?(): string }

/** Bytes that wait to be sent: few in memory, more in a file that has no name, so that a crash leaves nothing of it. */
export type Spooled = Blocks &
  AsyncDisposable & {
    /** Adds bytes, which the caller may change afterwards. Not while blocks are read. */
    add(bytes: Uint8Array): Promise<void>
  }

/** So much is in memory. A part of an upload is larger: many uploads at once take little of it. */
const BLOCK_BYTES = 256 * 1024
/** A request holds two: one on its way to the socket, and the next one. Memory of its own for each would be collected as slowly as it is sent. */
const BLOCKS_KEPT = 3

/**
 * @param folder where files of this process are
 * @param onDiskFull called when the disk has no room for them
 */
export function openSpooled(folder: string, onDiskFull: () => void): Spooled {
  /** The last bytes, which are not in the file yet. */
  const block = Buffer.allocUnsafe(BLOCK_BYTES)
  let filled = 0
  const hash = createHash('sha256')
  let file: FileHandle | undefined
  let writtenBytes = 0

  async function writeBlock(): Promise<void> {
    try {
      file ??= await openNameless(folder)
      await file.writeFile(block)
    } catch (error) {
      if (isDiskFull(error)) onDiskFull()
      throw error
    }
    writtenBytes += filled
    filled = 0
  }

  async function add(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      if (filled === block.length) await writeBlock()
      const taken = bytes.subarray(at, at + block.length - filled)
      block.set(taken, filled)
      hash.update(taken)
      filled += taken.length
      at += taken.length
    }
  }

  async function* blocks(): AsyncGenerator<Buffer> {
    const memory = Buffer.allocUnsafe(file ? BLOCKS_KEPT * BLOCK_BYTES : 0)
    for (let at = 0; file && at < writtenBytes; at += BLOCK_BYTES) {
      const into = at % memory.length
      const { bytesRead } = await file.read(memory, into, BLOCK_BYTES, at)
      yield memory.subarray(into, into + bytesRead)
    }
    if (filled > 0) yield block.subarray(0, filled)
  }

  return {
    sizeBytes: () => writtenBytes + filled,
    add,
    blocks,
    sha256: () => hash.copy().digest('hex'),
    [Symbol.asyncDispose]: async () => file?.close(),
  }
}

/** Adds all pieces. Nothing is left when they break off. */
export async function spool(spooled: Spooled, pieces: AsyncIterable<Uint8Array>): Promise<Spooled> {
  try {
    for await (const piece of pieces) await spooled.add(piece)
    return spooled
  } catch (error) {
    await spooled[Symbol.asyncDispose]()
    throw error
  }
}

async function openNameless(folder: string): Promise<FileHandle> {
  const path = join(folder, randomBytes(16).toString('hex'))
  const file = await open(path, 'wx+', 0o600)
  await rm(path, { force: true })
  return file
}
