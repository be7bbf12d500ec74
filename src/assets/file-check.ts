import { openFileKey, type WrappedFileKey } from '../catalogue/file-key.ts'
import type { MediaFolder } from '../config/data-paths.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import { checkSeal } from '../crypto/sealed-file.ts'
import { openSourceSeal } from '../ingest/source.ts'
import { checkHash, type FileCheck } from '../storage/copy.ts'

/** What rows say of a file: a segment has its SHA-256, all others are verified by the key that sealed them. */
export type StoredFile = Omit<WrappedFileKey, 'blob'> & {
  folder: MediaFolder
  /** Below its folder. */
  name: string
  sha256: Buffer | null
  iv: Buffer | null
  macs: Buffer | null
}

/**
 * Compares a file of a video, while it is read, with the one that was published.
 * @param masterKey undefined: only segments can be verified
 * @returns undefined when nothing says how the file was
 */
export function checkStoredFile(masterKey: MasterKey | undefined, file: StoredFile): FileCheck | undefined {
  const { folder, name, sha256, iv, macs, wrappedKey } = file
  if (sha256) return checkHash(sha256)
  if (!masterKey) return undefined
  if (folder === 'sources')
    return wrappedKey && iv && macs ? checkSeal(openSourceSeal({ masterKey }, { ...file, iv, wrappedKey }), macs) : undefined
  const key = openFileKey(masterKey, { ...file, blob: name })
  if (!key) return undefined
  return iv && macs ? checkSeal({ key, iv }, macs) : checkBlob(key, name)
}

/** Posters and captions are small. */
function checkBlob(key: Buffer, name: string): FileCheck {
  const parts: Buffer[] = []
  return {
    add: (bytes) => void parts.push(Buffer.from(bytes)),
    isIntact() {
      try {
        openBlob(key, name, Buffer.concat(parts))
        return true
      } catch {
        return false
      }
    },
  }
}
