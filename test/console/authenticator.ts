import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** What a browser's passkey does, by the standard (Web Authentication, Level 3), in software. */
export type Authenticator = ReturnType<typeof createAuthenticator>

export type Flaws = {
  origin?: string
  rpId?: string
  type?: string
  crossOrigin?: boolean
  /** The person was there, but was not verified by a PIN or the like. */
  isUnverified?: boolean
  count?: number
}

const KEYS: Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  'P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  Ed25519: () => generateKeyPairSync('ed25519'),
  RSA: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'RSA with a short key': () => generateKeyPairSync('rsa', { modulusLength: 1024 }),
  'P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
}

/** @param page where the browser is, such as `http://localhost:8080` */
export function createAuthenticator(page: string, keyType = 'P-256') {
  const make = KEYS[keyType]
  if (!make) throw new Error(`no key ${keyType}`)
  const { publicKey, privateKey } = make()
  const id = randomBytes(16)
  let count = 0

  function clientData(type: string, challenge: string, flaws: Flaws): Buffer {
    const { origin = new URL(page).origin, crossOrigin = false } = flaws
    return Buffer.from(JSON.stringify({ type: flaws.type ?? type, challenge, origin, crossOrigin }))
  }

  function authenticatorData(flags: number, { rpId = new URL(page).hostname, isUnverified, count: given }: Flaws): Buffer {
    const data = Buffer.alloc(37)
    createHash('sha256').update(rpId).digest().copy(data)
    data[32] = flags | (isUnverified ? 0x01 : 0x05)
    data.writeUInt32BE(given ?? ++count, 33)
    return data
  }

  return {
    id: id.toString('base64url'),
    /** The body of `credential.toJSON()` of a new passkey. */
    create(challenge: string, flaws: Flaws = {}) {
      const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id])
      return {
        id: id.toString('base64url'),
        rawId: id.toString('base64url'),
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON: clientData('webauthn.create', challenge, flaws).toString('base64url'),
          authenticatorData: Buffer.concat([authenticatorData(0x40, flaws), attested]).toString('base64url'),
          publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64url'),
          transports: ['internal'],
        },
      }
    },
    /** The body of `credential.toJSON()` of an assertion. */
    get(challenge: string, flaws: Flaws = {}) {
      const client = clientData('webauthn.get', challenge, flaws)
      const data = authenticatorData(0, flaws)
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()])
      const signature = sign(keyType === 'Ed25519' ? null : 'sha256', signed, privateKey)
      return {
        id: id.toString('base64url'),
        response: {
          clientDataJSON: client.toString('base64url'),
          authenticatorData: data.toString('base64url'),
          signature: signature.toString('base64url'),
        },
      }
    },
  }
}
