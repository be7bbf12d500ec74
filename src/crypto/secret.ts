import { hash, randomBytes } from 'node:crypto'

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789')
const SECRET_LENGTH = 64
// The largest multiple of 62 in a byte: bytes from here on are discarded, so that every character is equally likely.
const FAIR_BYTES = 248
/** Random bytes fetched in one call, since a call to the CSPRNG costs as much as writing an OTP. */
const POOL_BYTES = 4_096

/** Random characters that are not used yet. */
let pool: Buffer = Buffer.alloc(0)

/** 64 characters `[A-Za-z0-9]`, 381 bits from the CSPRNG: the form of API secrets and OTPs (wire-contract.md, section 1). */
export function newSecret(): string {
  if (pool.length < SECRET_LENGTH) pool = drawCharacters()
  const characters = pool.subarray(0, SECRET_LENGTH)
  pool = pool.subarray(SECRET_LENGTH)
  const secret = characters.toString('latin1')
  characters.fill(0) // used once, then erased
  return secret
}

function drawCharacters(): Buffer {
  const bytes = randomBytes(POOL_BYTES)
  let length = 0
  for (const byte of bytes) if (byte < FAIR_BYTES) bytes[length++] = ALPHABET[byte % ALPHABET.length] ?? 0
  return bytes.subarray(0, length)
}

export function isSecret(text: string): boolean {
  return /^[A-Za-z0-9]{64}$/.test(text)
}

/** The stored form of a secret: its SHA-256. No salt, since 381 bits cannot be guessed. */
export function hashSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** 32 lower-case hexadecimal digits, 128 random bits: the form of the ids of an owner's objects. */
export function newId(): string {
  return randomBytes(16).toString('hex')
}

/** 22 characters of base64url, 128 random bits: playback sessions, pages and other unguessable parts of addresses. */
export function newToken(): string {
  return randomBytes(16).toString('base64url')
}
