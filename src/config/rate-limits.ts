import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { parseJson } from '../json.ts'
import { invalid } from './environment.ts'

const PerMinute = (shipped: number) => Type.Integer({ minimum: 1, maximum: 1e9, default: shipped })
const OwnerLimits = (ip: number, key: number, account: number) =>
  Type.Object(
    { ip: PerMinute(ip), key: PerMinute(key), account: PerMinute(account) },
    { additionalProperties: false, default: {} },
  )
const AddressLimit = (ip: number) => Type.Object({ ip: PerMinute(ip) }, { additionalProperties: false, default: {} })

/** Requests per minute. Owners' calls count against address, key and account; viewers' against their address only. */
const RateLimitConfig = Type.Object(
  {
    reads: OwnerLimits(600, 1200, 2400),
    writes: OwnerLimits(300, 600, 1200),
    otp: OwnerLimits(3000, 6000, 12_000),
    uploads: OwnerLimits(60, 120, 240),
    redeem: AddressLimit(300),
    // Requests of players without a valid proof; those with one count per session.
    playback: AddressLimit(6000),
    // Owners' calls without a valid key.
    unauthenticated: AddressLimit(60),
    // Attempts to sign in to the console, by any means.
    signIns: AddressLimit(30),
    // The player's page and its files, for a school behind one address that opens a lesson.
    pages: AddressLimit(6000),
    posters: AddressLimit(12_000),
    docs: AddressLimit(600),
    health: AddressLimit(600),
  },
  { additionalProperties: false },
)
export type RateLimitConfig = Static<typeof RateLimitConfig>

export function readLimits(text = '{}'): RateLimitConfig | undefined {
  if (text === 'off') return undefined
  const limits = Value.Default(RateLimitConfig, parseJson(text))
  if (Value.Check(RateLimitConfig, limits)) return limits
  throw invalid('REELGATE_LIMITS')
}
