import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { deriveKey } from './master-key.ts'

// Small files that reveal a video's content (posters, captions): AES-256-GCM, `nonce(12) ‖ ciphertext ‖ tag(16)`.

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** @param name the blob's name, bound to the text: a blob moved to another name does not open */
export function sealBlob(contentKey: Buffer, name: string, clear: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', blobKey(contentKey), nonce).setAAD(Buffer.from(name))
  return Buffer.concat([nonce, cipher.update(clear), cipher.final(), cipher.getAuthTag()])
}

/** @throws when the bytes, the name or the key are not those of `sealBlob` */
export function openBlob(contentKey: Buffer, name: string, sealed: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', blobKey(contentKey), sealed.subarray(0, NONCE_BYTES)).setAAD(Buffer.from(name))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
}

function blobKey(contentKey: Buffer): Buffer {
  return deriveKey(contentKey, 'reelgate blob-key 1', 32)
}
