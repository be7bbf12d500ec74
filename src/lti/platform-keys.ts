import { createPublicKey, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { LtiPlatformRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import type { OutboundPolicy } from '../outbound/policy.ts'
import { askPlatform } from './ask-platform.ts'

const KeySet = Type.Object({ keys: Type.Array(Type.Object({}, { additionalProperties: true }), { maxItems: 100 }) })
const Key = Type.Object({
  kty: Type.Literal('RSA'),
  kid: Type.String(),
  n: Type.String(),
  e: Type.String(),
  use: Type.Optional(Type.Literal('sig')),
  alg: Type.Optional(Type.Literal('RS256')),
})

type KeyPlatform = Pick<LtiPlatformRow, 'id' | 'accountId' | 'keysUrl'>

export type PlatformKeys = {
  /**
   * The key with which a platform signs.
   * @throws Failure `unauthenticated` when it publishes no such key; as `askPlatform` when it cannot be asked
   */
  get(platform: KeyPlatform, kid: string): Promise<KeyObject>
}

/** A key that the platform no longer publishes is accepted no longer than this. */
const KEPT_S = 3600
/** An unknown `kid` has the keys fetched again, no sooner than this: outsiders write what they like into a token. */
const FETCHED_AT_MOST_EVERY_S = 60
const MAX_PLATFORMS = 1_000
const MIN_MODULUS_BITS = 2048

type Fetched = { url: string; atS: number; keys: Promise<ReadonlyMap<string, KeyObject>> }

/**
 * The public keys of platforms, as each server has fetched them: what one knows changes nothing of what another may accept.
 * @param nowS the playback clock
 */
export function createPlatformKeys({ outbound, nowS }: { outbound: OutboundPolicy; nowS(): number }): PlatformKeys {
  const cache = new LRUCache<string, Fetched>({ max: MAX_PLATFORMS })

  function fetchKeys(platform: KeyPlatform): Fetched {
    const fetched = { url: platform.keysUrl, atS: nowS(), keys: readKeys(outbound, platform) }
    cache.set(platform.id, fetched)
    fetched.keys.catch(() => undefined) // its error is thrown to those who wait for it
    return fetched
  }

  return {
    async get(platform, kid) {
      const known = cache.get(platform.id)
      const isFresh = known !== undefined && known.url === platform.keysUrl && nowS() - known.atS < KEPT_S
      const first = isFresh ? known : fetchKeys(platform)
      const key = (await first.keys.catch(ignoreIfOld(first))).get(kid)
      if (key) return key
      const mayFetch = isFresh && nowS() - first.atS >= FETCHED_AT_MOST_EVERY_S
      const again = mayFetch ? (await fetchKeys(platform).keys).get(kid) : undefined
      if (again) return again
      throw new Failure(
        'unauthenticated',
        'The platform has signed with a key that it does not publish. A key that is new is known here within a minute.',
      )
    },
  }

  /** What failed is tried again after a minute, not by every launch. */
  function ignoreIfOld({ atS }: Fetched) {
    return (error: unknown): ReadonlyMap<string, KeyObject> => {
      if (nowS() - atS < FETCHED_AT_MOST_EVERY_S) throw error
      return new Map()
    }
  }
}

async function readKeys(outbound: OutboundPolicy, { accountId, keysUrl }: KeyPlatform): Promise<ReadonlyMap<string, KeyObject>> {
  const { status, body } = await askPlatform(outbound, { accountId, url: keysUrl })
  if (status !== 200 || !Value.Check(KeySet, body))
    throw new Failure('unavailable', `The platform’s keys could not be read: its address answered ${status}, or no set of keys.`)
  const keys = body.keys.flatMap((jwk): [string, KeyObject][] => {
    const key = Value.Check(Key, jwk) ? openKey(jwk) : undefined
    return key && Value.Check(Key, jwk) ? [[jwk.kid, key]] : []
  })
  return new Map(keys)
}

function openKey({ kty, n, e }: { kty: 'RSA'; n: string; e: string }): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: { kty, n, e }, format: 'jwk' })
    return (key.asymmetricKeyDetails?.modulusLength ?? 0) >= MIN_MODULUS_BITS ? key : undefined
  } catch {
    return undefined
  }
}
