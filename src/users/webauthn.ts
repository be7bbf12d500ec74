import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { Failure } from '../errors.ts'
import { parseJson } from '../json.ts'

// What a server checks of a passkey (Web Authentication, Level 3, sections 7.1 and 7.2), for credentials without attestation: which maker's
// device a person uses does not matter here, so nothing of certificates is read.

/** Where the page is: the host name that passkeys belong to, and the origin that the browser reports. */
export type RelyingParty = { id: string; origin: string }

/** COSE numbers of Ed25519, ECDSA with P-256 and SHA-256, and RSA with SHA-256: together they cover every authenticator. */
export const ALGORITHMS = [-8, -7, -257] as const

/** A credential as its browser has made it, all in base64url. */
export type NewCredential = { id: string; clientDataJSON: string; authenticatorData: string; publicKey: string }
export type Assertion = { clientDataJSON: string; authenticatorData: string; signature: string }

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const HAS_CREDENTIAL = 0x40
const RP_ID_HASH_BYTES = 32
/** After the hash: one byte of flags, four of the count, the model's id, and the length of the credential's id. */
const FLAGS_AT = RP_ID_HASH_BYTES
const COUNT_AT = FLAGS_AT + 1
const ID_LENGTH_AT = COUNT_AT + 4 + 16
const ID_AT = ID_LENGTH_AT + 2
const MIN_RSA_BITS = 2048

/** The challenge that a browser has signed. Undefined: what it sent is not readable. */
export function readChallenge(clientDataJSON: string): string | undefined {
  return readClientData(clientDataJSON)?.challenge
}

/**
 * @returns the public key to store, as SubjectPublicKeyInfo
 * @throws Failure `invalid` when it is not a credential of this page, or the person was not verified
 */
export function verifyNewCredential(credential: NewCredential, rp: RelyingParty): { publicKey: Buffer; signCount: number } {
  assertClientData(credential.clientDataJSON, 'webauthn.create', rp)
  const data = Buffer.from(credential.authenticatorData, 'base64url')
  const signCount = readAuthenticatorData(data, rp)
  const hasCredential = data.length > ID_AT && ((data[FLAGS_AT] ?? 0) & HAS_CREDENTIAL) !== 0
  const id = hasCredential ? data.subarray(ID_AT, ID_AT + data.readUInt16BE(ID_LENGTH_AT)) : Buffer.alloc(0)
  if (id.length === 0 || id.toString('base64url') !== credential.id) throw notVerified()
  // The browser repeats the key of `authenticatorData` in this form. Both are only its word: nothing signs a credential without attestation.
  const publicKey = Buffer.from(credential.publicKey, 'base64url')
  if (!isUsable(readKey(publicKey))) throw notVerified()
  return { publicKey, signCount }
}

/** @returns the new count of the authenticator @throws Failure `invalid` when the credential has not signed this, for this page */
export function verifyAssertion({ signature, ...assertion }: Assertion, publicKey: Buffer, rp: RelyingParty): number {
  assertClientData(assertion.clientDataJSON, 'webauthn.get', rp)
  const data = Buffer.from(assertion.authenticatorData, 'base64url')
  const signCount = readAuthenticatorData(data, rp)
  const key = readKey(publicKey)
  const signed = Buffer.concat([data, sha256(Buffer.from(assertion.clientDataJSON, 'base64url'))])
  const algorithm = key?.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  if (!key || !verify(algorithm, signed, key, Buffer.from(signature, 'base64url'))) throw notVerified()
  return signCount
}

type ClientData = { type: string; challenge: string; origin: string; crossOrigin: boolean }

function readClientData(base64url: string): ClientData | undefined {
  const value = parseJson(Buffer.from(base64url, 'base64url').toString())
  if (typeof value !== 'object' || value === null || !('type' in value && 'challenge' in value && 'origin' in value))
    return undefined
  const { type, challenge, origin } = value
  return {
    ...{ type: String(type), challenge: String(challenge), origin: String(origin) },
    crossOrigin: 'crossOrigin' in value && value.crossOrigin !== false,
  }
}

function assertClientData(clientDataJSON: string, type: string, rp: RelyingParty): void {
  const data = readClientData(clientDataJSON)
  if (data?.type !== type || data.origin !== rp.origin || data.crossOrigin) throw notVerified()
}

/** @returns the authenticator's count; 0 where it does not count */
function readAuthenticatorData(data: Buffer, rp: RelyingParty): number {
  const flags = data[FLAGS_AT] ?? 0
  const isOurs = data.length >= COUNT_AT + 4 && equalsInConstantTime(sha256(rp.id), data.subarray(0, RP_ID_HASH_BYTES))
  if (!isOurs || (flags & USER_PRESENT) === 0 || (flags & USER_VERIFIED) === 0) throw notVerified()
  return data.readUInt32BE(COUNT_AT)
}

function readKey(spki: Buffer): KeyObject | undefined {
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}

/** Whether it is a key of one of `ALGORITHMS`. */
function isUsable(key: KeyObject | undefined): boolean {
  const { namedCurve, modulusLength = 0 } = key?.asymmetricKeyDetails ?? {}
  if (key?.asymmetricKeyType === 'ec') return namedCurve === 'prime256v1'
  if (key?.asymmetricKeyType === 'rsa') return modulusLength >= MIN_RSA_BITS
  return key?.asymmetricKeyType === 'ed25519'
}

const sha256 = (bytes: string | Buffer) => hash('sha256', bytes, 'buffer')

function notVerified(): Failure {
  return new Failure('invalid', 'The passkey could not be verified for this page. Try again, or sign in with the password.')
}
