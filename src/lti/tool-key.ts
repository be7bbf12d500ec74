import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { type MasterKey, unwrap } from '../crypto/master-key.ts'
import type { LtiPlatformRow } from '../db/tables.ts'
import { parseJson } from '../json.ts'

// The key pair with which this server signs what it sends to one platform. Each platform has its own: what is signed for one says nothing
// to another.

const MODULUS_BITS = 2048

export function toolKeyPurpose(platformId: string): string {
  return `reelgate lti-tool-key 1 ${platformId}`
}

/** @returns PKCS #8, to be wrapped; and the public JWK as JSON */
export async function createToolKey(platformId: string): Promise<{ privateKey: Buffer; publicKey: string }> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: MODULUS_BITS })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: platformId, alg: 'RS256', use: 'sig' }
  return { privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }), publicKey: JSON.stringify(jwk) }
}

/** What platforms verify it with, at `/lti/{id}/keys`. */
export function publicKeySet({ publicKey }: Pick<LtiPlatformRow, 'publicKey'>): { keys: unknown[] } {
  return { keys: [parseJson(publicKey)] }
}

type SigningPlatform = Pick<LtiPlatformRow, 'id' | 'wrappedPrivateKey'>

/** Signs what this server says to a platform. */
export async function signForPlatform(
  masterKey: MasterKey,
  platform: SigningPlatform,
  claims: { iss: string; aud: string; sub?: string; jti?: string; nonce?: string; [claim: string]: unknown },
  { nowS, lifeS }: { nowS: number; lifeS: number },
): Promise<string> {
  const { SignJWT } = await import('jose')
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', kid: platform.id, typ: 'JWT' })
    .setIssuedAt(nowS)
    .setExpirationTime(nowS + lifeS)
    .sign(openToolKey(masterKey, platform))
}

function openToolKey(masterKey: MasterKey, { id, wrappedPrivateKey }: SigningPlatform): KeyObject {
  return createPrivateKey({ key: unwrap(masterKey, toolKeyPurpose(id), wrappedPrivateKey), format: 'der', type: 'pkcs8' })
}
