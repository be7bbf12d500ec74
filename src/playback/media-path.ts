import { createHash } from 'node:crypto'
import type { GenerationKey } from '../catalogue/generation-key.ts'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { deriveKey, type MasterKey } from '../crypto/master-key.ts'

// Signed paths of segments: playback-protocol.md, section 8. MD5 because nginx's secure_link checks it by itself; the secret comes
// last, and what the path gives is ciphertext.

const LIFE_S = 3600
const ROUNDED_TO_S = 3600

/** The secret that also goes into a proxy's configuration, in hexadecimal. */
export function deriveMediaSecret(master: MasterKey): string {
  return deriveKey(master.bytes, 'reelgate media-path 1', 32).toString('hex')
}

/** The same path for every viewer of the same hour, so that a cache in between helps; it lives one to two hours. */
export function signedMediaPath(secret: string, video: GenerationKey, nowS: number): string {
  const exp = Math.ceil((nowS + LIFE_S) / ROUNDED_TO_S) * ROUNDED_TO_S
  return `media/${exp}/${mediaSignature(secret, exp, video)}/${video.videoId}/${video.generation}`
}

export function mediaSignature(secret: string, exp: number, video: GenerationKey): string {
  return createHash('md5').update(`${exp}/${video.videoId}/${video.generation} ${secret}`).digest('base64url')
}

export function isSignedMediaPath(secret: string, path: GenerationKey & { exp: number; sig: string }, nowS: number): boolean {
  return path.exp > nowS && equalsInConstantTime(mediaSignature(secret, path.exp, path), path.sig)
}
