import { unwrapContentKey } from '../crypto/content-key.ts'
import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'

/** What a file's row and its generation say of its key. */
export type WrappedFileKey = {
  videoId: string
  blob: string
  generation: number | null
  wrappedKey: Buffer | null
  wrappedContentKey: Buffer | null
}

/** Wraps the key of a file that has its own. The name is bound to it: moved to another file it does not open. */
export function wrapFileKey(master: MasterKey, blob: string, key: Buffer): Buffer {
  return wrap(master, purposeOf(blob), key)
}

/** The key that opens a file; undefined once its video is deleted. */
export function openFileKey(master: MasterKey, file: WrappedFileKey): Buffer | undefined {
  const { videoId, blob, generation, wrappedKey, wrappedContentKey } = file
  if (wrappedKey) return unwrap(master, purposeOf(blob), wrappedKey)
  if (generation === null || !wrappedContentKey) return undefined
  return unwrapContentKey(master, videoId, generation, wrappedContentKey)
}

function purposeOf(blob: string): string {
  return `reelgate file-key 1 ${blob}`
}
