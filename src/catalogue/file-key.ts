import { unwrapContentKey } from '../crypto/content-key.ts'
import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'

/** The key columns of a file and of its generation. */
export type WrappedFileKey = {
  videoId: string
  blob: string
  generation: number | null
  wrappedKey: Buffer | null
  wrappedContentKey: Buffer | null
}

/** Wraps the key of a file that has its own. The blob's name is bound to it: the key does not open another file. */
export function wrapFileKey(master: MasterKey, blob: string, key: Buffer): Buffer {
  return wrap(master, fileKeyPurpose(blob), key)
}

/** The key that opens a file; undefined once its video is deleted. */
export function openFileKey(master: MasterKey, file: WrappedFileKey): Buffer | undefined {
  const { videoId, blob, generation, wrappedKey, wrappedContentKey } = file
  if (wrappedKey) return unwrap(master, fileKeyPurpose(blob), wrappedKey)
  if (generation === null || !wrappedContentKey) return undefined
  return unwrapContentKey(master, videoId, generation, wrappedContentKey)
}

export function fileKeyPurpose(blob: string): string {
  return `reelgate file-key 1 ${blob}`
}
