import { createDecipheriv } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { SealedSource } from './media-run.ts'

const CIPHER_BLOCK_BYTES = 16

/**
 * Reads a few bytes of a source in this process. Like ffmpeg it takes its copy of the file for intact.
 * @param use gets a function that returns the clear bytes from a place on, fewer at the end of the file
 */
export async function withClearBytes<T>(
  { withLocalCopy, keyHex, ivHex, sizeBytes }: SealedSource,
  use: (read: (at: number, sizeBytes: number) => Promise<Buffer>) => Promise<T>,
): Promise<T> {
  const key = Buffer.from(keyHex, 'hex')
  return withLocalCopy(async (path) => {
    await using file = await open(path)
    return await use(async (at, wantedBytes) => {
      const end = Math.min(at + wantedBytes, sizeBytes)
      if (end <= at) return Buffer.alloc(0)
      // A block is deciphered with the one before it.
      const from = Math.floor(at / CIPHER_BLOCK_BYTES) * CIPHER_BLOCK_BYTES
      const readFrom = Math.max(0, from - CIPHER_BLOCK_BYTES)
      const sealed = Buffer.alloc(Math.ceil(end / CIPHER_BLOCK_BYTES) * CIPHER_BLOCK_BYTES - readFrom)
      const { bytesRead } = await file.read(sealed, 0, sealed.length, readFrom)
      const [iv, rest] =
        from === 0
          ? [Buffer.from(ivHex, 'hex'), sealed]
          : [sealed.subarray(0, CIPHER_BLOCK_BYTES), sealed.subarray(CIPHER_BLOCK_BYTES)]
      const known = rest.subarray(0, Math.max(0, bytesRead - (sealed.length - rest.length)))
      const whole = known.subarray(0, known.length - (known.length % CIPHER_BLOCK_BYTES))
      const clear = createDecipheriv('aes-128-cbc', key, iv).setAutoPadding(false).update(whole)
      return clear.subarray(at - from, end - from)
    })
  })
}
