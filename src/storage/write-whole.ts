import type { FileHandle } from 'node:fs/promises'

/**
 * Writes all bytes at a place of a file. A disk that becomes full takes a part of a write and says so only by its number: the rest would be
 * read as zeros.
 * @throws ENOSPC
 */
export async function writeWhole(file: FileHandle, bytes: Uint8Array, atBytes: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, atBytes + written)
    written += bytesWritten
  }
}
