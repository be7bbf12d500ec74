import { createCipheriv, createDecipheriv, createHmac, createSecretKey, randomBytes } from 'node:crypto'
import { deriveKey, type MasterKey, unwrap, wrap } from './master-key.ts'

// The secret of one generation of a video, and what is derived from it: playback-protocol.md, section 5.

export function newContentKey(): Buffer {
  return randomBytes(32)
}

export function wrapContentKey(master: MasterKey, videoId: string, generation: number, contentKey: Buffer): Buffer {
  return wrap(master, contentKeyPurpose(videoId, generation), contentKey)
}

/** @throws when it was wrapped for another video, another generation or by another master key */
export function unwrapContentKey(master: MasterKey, videoId: string, generation: number, wrapped: Buffer): Buffer {
  return unwrap(master, contentKeyPurpose(videoId, generation), wrapped)
}

export function contentKeyPurpose(videoId: string, generation: number): string {
  return `reelgate content-key 1 ${videoId} ${generation}`
}

/** The 16-byte AES key of one key window (some consecutive segments, crypto/key-window.ts), the same for all renditions, audio included. */
export function deriveWindowKey(contentKey: Buffer, window: number): Buffer {
  return createWindowKeyDeriver(contentKey)(window)
}

const HKDF_NO_SALT = Buffer.alloc(32)

/** Gives the key of each window. HKDF whose extraction is done once, so that a key is one HMAC: a third of the time of `hkdfSync`. */
export function createWindowKeyDeriver(contentKey: Buffer): (window: number) => Buffer {
  const extracted = createSecretKey(createHmac('sha256', HKDF_NO_SALT).update(contentKey).digest())
  return (window) => createHmac('sha256', extracted).update(`reelgate window-key 1 ${window}\x01`).digest().subarray(0, 16)
}

/** What the IVs of a generation's segments are made with. It is no secret: a playlist names it instead of each IV. */
export function deriveIvKey(contentKey: Buffer): Buffer {
  return deriveKey(contentKey, 'reelgate iv-key 1', 16)
}

/** Gives the IV of each segment: `AES(ivKey, rendition ‖ segment ‖ 0…)`, so it is known before the segment exists. */
export function createSegmentIvDeriver(contentKey: Buffer): (renditionId: number, segment: number) => Buffer {
  const ivKey = deriveIvKey(contentKey)
  return (renditionId, segment) => {
    const block = Buffer.alloc(16)
    block.writeUInt32BE(renditionId, 0)
    block.writeUInt32BE(segment, 4)
    return createCipheriv('aes-128-ecb', ivKey, null).setAutoPadding(false).update(block)
  }
}

/** One segment as it is stored and sent: AES-128-CBC with PKCS#7 over the whole of it (RFC 8216, section 4.3.2.4). */
export function encryptSegment(clear: Buffer, key: Buffer, iv: Buffer): Buffer {
  const cipher = createCipheriv('aes-128-cbc', key, iv)
  return Buffer.concat([cipher.update(clear), cipher.final()])
}

/** @throws when this key did not encrypt it, as far as its padding shows */
export function decryptSegment(stored: Buffer, key: Buffer, iv: Buffer): Buffer {
  const decipher = createDecipheriv('aes-128-cbc', key, iv)
  return Buffer.concat([decipher.update(stored), decipher.final()])
}
