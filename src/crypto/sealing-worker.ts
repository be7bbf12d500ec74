import { createCipheriv, createHash, createHmac } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import { countBlockForGc } from './minor-gc.ts'

// The thread of sealing-thread.ts: seals blocks where they are, one at a time.

export type SealBlock = {
  key: Uint8Array
  macKey: Uint8Array
  iv: Uint8Array
  /** Of the block in its file. */
  number: number
  /** Shared with the caller: clear bytes before, sealed ones after. Has room for the padding. */
  memory: SharedArrayBuffer
  clearBytes: number
  /** Whether the file ends with it, and is padded. Otherwise it fills cipher blocks. */
  isLast: boolean
}

/** `sha256` is of the clear bytes, `mac` of the sealed ones. */
export type SealedBlock = { sealedBytes: number; sha256: Uint8Array; mac: Uint8Array }

parentPort?.on('message', ({ id, block }: { id: number; block: SealBlock }) => {
  parentPort?.postMessage({ id, sealed: sealBlock(block) })
  countBlockForGc()
})

/** The allocator gives memory of this size back from what was freed; for a MiB it asks the kernel, which clears it first. */
const PIECE_BYTES = 64 * 1024

function sealBlock({ key, macKey, iv, number, memory, clearBytes, isLast }: SealBlock): SealedBlock {
  const bytes = Buffer.from(memory)
  const clear = bytes.subarray(0, clearBytes)
  const sha256 = createHash('sha256').update(clear).digest()
  const cipher = createCipheriv('aes-128-cbc', key, iv)
  let sealedBytes = 0
  for (let at = 0; at < clearBytes; at += PIECE_BYTES)
    sealedBytes += cipher.update(clear.subarray(at, at + PIECE_BYTES)).copy(bytes, sealedBytes)
  if (isLast) sealedBytes += cipher.final().copy(bytes, sealedBytes)
  const mac = createHmac('sha256', macKey).update(String(number)).update(bytes.subarray(0, sealedBytes)).digest()
  return { sealedBytes, sha256, mac }
}
