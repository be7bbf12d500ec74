import { createHash, createHmac } from 'node:crypto'
import type { GenerationKey } from '../../catalogue/generation-key.ts'
import { equalsInConstantTime } from '../../crypto/constant-time.ts'
import { type MasterKey, signingKeys } from '../../crypto/master-key.ts'

// Signed paths of segments: playback-protocol.md, section 8. MD5 because nginx's secure_link checks it by itself; the secret comes
// last, and what the path gives is ciphertext.

const LIFE_S = 3600
const ROUNDED_TO_S = 3600

export const MEDIA_PATH_KEY = { info: 'reelgate media-path 1', lengthBytes: 32 } as const

/** The secret that also goes into a proxy's configuration, in hexadecimal; then those from before a rotation that still verify. */
export function deriveMediaSecrets(master: MasterKey, nowS: number): MediaSecrets {
  const [current, ...former] = signingKeys(master, MEDIA_PATH_KEY.info, MEDIA_PATH_KEY.lengthBytes, nowS)
  return [current.toString('hex'), ...former.map((key) => key.toString('hex'))]
}

export type MediaSecrets = readonly [string, ...string[]]

/** The same path for every viewer of the same hour, so that a cache in between helps; it lives one to two hours. */
export function signedMediaPath([secret]: MediaSecrets, video: GenerationKey, nowS: number): string {
  const exp = Math.ceil((nowS + LIFE_S) / ROUNDED_TO_S) * ROUNDED_TO_S
  return `media/${exp}/${mediaSignature(secret, exp, video)}/${video.videoId}/${video.generation}`
}

/** A CDN or nginx that fetches segments from this server. `bunnyKey`: of the token authentication of its pull zone. */
export type MediaOrigin = { url: string; bunnyKey: string | undefined }

/**
 * The same for an origin: an absolute URL of a generation's folder, with one tag and one end for all of it. An origin at Bunny gets its
 * directory token in front, which ends with the path.
 */
export function originMediaUrl({ url, bunnyKey }: MediaOrigin, mediaPath: string): string {
  if (bunnyKey === undefined) return `${url}/${mediaPath}`
  const { origin, pathname } = new URL(`${url}/${mediaPath}`)
  const [, exp] = mediaPath.split('/')
  return `${origin}/${bunnyDirectoryToken(bunnyKey, `${pathname}/`, Number(exp))}${pathname}`
}

/**
 * Bunny's token for all files below a folder (docs.bunny.net, "Advanced token authentication"): the first part of their paths.
 * @param folder the path that it opens
 * @param expires Unix seconds
 */
export function bunnyDirectoryToken(key: string, folder: string, expires: number): string {
  const token = createHmac('sha256', key).update(`${folder}${expires}token_path=${folder}`).digest('base64url')
  return `bcdn_token=HS256-${token}&token_path=${encodeURIComponent(folder)}&expires=${expires}`
}

export function mediaSignature(secret: string, exp: number, video: GenerationKey): string {
  return createHash('md5').update(`${exp}/${video.videoId}/${video.generation} ${secret}`).digest('base64url')
}

export function isSignedMediaPath(
  secrets: MediaSecrets,
  path: GenerationKey & { exp: number; sig: string },
  nowS: number,
): boolean {
  const isSignedWith = (secret: string) => equalsInConstantTime(mediaSignature(secret, path.exp, path), path.sig)
  return path.exp > nowS && secrets.some(isSignedWith)
}
