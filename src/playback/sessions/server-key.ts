import { createECDH, createHash, createSecretKey, type ECDH, hkdfSync, type KeyObject } from 'node:crypto'
import { type MasterKey, unwrap, wrap } from '../../crypto/master-key.ts'
import { newToken } from '../../crypto/secret.ts'
import type { Db } from '../../db/database.ts'
import type { ServerKeyRow } from '../../db/tables.ts'
import type { Write } from '../../db/write.ts'
import { insertServerKey, listServerKeys } from './server-key-store.ts'

// The key pair with which the server agrees on a proof key with each browser: playback-protocol.md, section 3.

/** What the player's page says of the server's key: its id, and its 65 bytes in base64url. */
type PublicServerKey = { serverKeyId: string; serverKey: string }

export type ServerKeys = {
  /** The key with which new sessions agree. */
  readonly current: PublicServerKey
  /**
   * Derives the proof key of a session, in about 0.2 ms. A key that another server has made is read once.
   * @param browserKey the browser's public key
   * @returns undefined when there is no server key with this id, or the browser's key is not a point of the curve
   */
  agree(serverKeyId: string, browserKey: Buffer): Promise<KeyObject | undefined>
}

const CURVE = 'prime256v1'

/** Opens the installation's server keys; creates one where there is none. */
export async function openServerKeys(deps: { db: Db; write: Write; masterKey: MasterKey; nowS(): number }): Promise<ServerKeys> {
  const stored = await listServerKeys(deps.db)
  const newest = stored.at(-1) ?? (await createServerKey(deps))
  const pairs = new Map<string, ECDH>()
  function addPairs(rows: readonly ServerKeyRow[]): void {
    for (const row of rows) if (!pairs.has(row.id)) pairs.set(row.id, openPair(deps.masterKey, row))
  }
  addPairs([...stored, newest])
  return {
    current: { serverKeyId: newest.id, serverKey: newest.publicKey.toString('base64url') },
    async agree(serverKeyId, browserKey) {
      if (!pairs.has(serverKeyId)) addPairs(await listServerKeys(deps.db))
      const pair = pairs.get(serverKeyId)
      return pair && deriveProofKey(pair, browserKey)
    },
  }
}

/** Of several servers that start at the same time, one creates it. */
async function createServerKey({ write, masterKey, nowS }: Parameters<typeof openServerKeys>[0]): Promise<ServerKeyRow> {
  const pair = createECDH(CURVE)
  const publicKey = pair.generateKeys()
  const id = newToken()
  return write(async (tx) => {
    const known = (await listServerKeys(tx)).at(-1)
    if (known) return known
    const wrappedPrivateKey = wrap(masterKey, serverKeyPurpose(id), pair.getPrivateKey())
    const row = { id, publicKey, wrappedPrivateKey, createdAtS: nowS() }
    await insertServerKey(tx, row)
    return row
  })
}

function openPair(masterKey: MasterKey, { id, wrappedPrivateKey }: ServerKeyRow): ECDH {
  const pair = createECDH(CURVE)
  pair.setPrivateKey(unwrap(masterKey, serverKeyPurpose(id), wrappedPrivateKey))
  return pair
}

export function serverKeyPurpose(id: string): string {
  return `reelgate server-key 1 ${id}`
}

/** The HMAC key that both ends derive: `x` of ECDH, through HKDF with both public keys as salt. */
export function deriveProofKey(pair: ECDH, browserKey: Buffer): KeyObject | undefined {
  if (browserKey.length !== 65 || browserKey[0] !== 4) return undefined // OpenSSL reads other forms too
  let x: Buffer
  try {
    x = pair.computeSecret(browserKey)
  } catch {
    return undefined
  }
  const salt = createHash('sha256').update(browserKey).update(pair.getPublicKey()).digest()
  return createSecretKey(Buffer.from(hkdfSync('sha256', x, salt, 'reelgate-proof-2', 32)))
}
