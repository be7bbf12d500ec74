import type { Logger } from 'pino'
import type { RateLimitConfig } from '../config/rate-limits.ts'
import type { BanRow } from '../db/tables.ts'
import { ipNetworkKey } from '../net/ip.ts'
import type { Signals } from '../signals/signals.ts'
import { type BanDeps, type ClassBans, openBans, type Scope } from './bans.ts'
import type { SharedCounts } from './shared-counts.ts'
import { createSlidingWindows, type SharedWindows } from './sliding-window.ts'

/**
 * A refusal. `bannedUntilS` (Unix seconds of the playback clock) is there for a ban, `settled` on the call that brought it about: answer
 * when it has resolved, with the length as it is then.
 */
export type LimitExceeded = { subject: string; bannedUntilS?(): number; retryAfterS(): number; settled?: Promise<void> }

/** The state of one limit after a call. `quota` and `remaining` count calls; `waitS` is the time until there are more. */
export type LimitResult = { budget: string; quota: number; remaining: number; waitS: number; refused?: LimitExceeded }

/** One limit of the table: a number of calls a minute for each address, key or account. */
type Limiter = {
  /** Counts a call. `factor`: by how much the account's limits are raised. */
  take(subject: string, factor?: number): LimitResult
  /** Whether the next call would be refused, without counting one. */
  isExhausted(subject: string): boolean
  /** Takes back the call that was just counted: it did no harm. */
  refund(subject: string): void
}

/** A limiter with what lifting a ban does to it. */
type OwnLimiter = Limiter & { pardon(subject: string): void; forget(subject: string): void }

/** Each call of an owner passes three of these: its address's, its key's or its signed-in user's, its account's. */
type OwnerLimits = Readonly<Record<'ip' | 'key' | 'user' | 'account', Limiter>>

export type OwnerBudget = 'reads' | 'writes' | 'otp' | 'uploads'

export type RateLimits = Readonly<
  Record<OwnerBudget, OwnerLimits> & {
    /** Calls without a valid key. They never use up the limits of calls with one from the same address. */
    unauthenticated: Limiter
    /** Attempts to sign in to the console. */
    signIns: Limiter
    /** Upload forms: as many as credentials, counted apart, for they come from wherever the file is. */
    forms: Limiter
    /** Requests with an upload token, from wherever its page is open: they never use up the limits of the owner. */
    uploadTokens: Limiter
    redeem: Limiter
    /** Redeems of OTPs that can be spent, from an address whose other redeems are refused. */
    spendable: Limiter
    /** How often a redeem of one OTP whose video is not ready does not count against its address. */
    waiting: Limiter
    playback: Limiter
    pages: Limiter
    posters: Limiter
    docs: Limiter
    health: Limiter
    /** Counts a limit of another part together with other servers. */
    share(name: string, windows: SharedWindows): void
    /** When a ban ends: it may have grown since its row was written. */
    banEndsAtS(ban: BanRow): number
  }
>

const WAITING_PER_OTP = 12

/** Opens the limits with the bans that are on disk. */
export async function openRateLimits(
  deps: BanDeps & { signals: Pick<Signals, 'on'>; counts?: Pick<SharedCounts, 'share'> | undefined; log: Logger },
  numbers: RateLimitConfig,
): Promise<RateLimits> {
  const bans = await openBans(deps)
  const limiters: OwnLimiter[] = []
  const share = (name: string, windows: SharedWindows) => deps.counts?.share(name, windows)
  function limiter(budget: string, limit: number, scope?: Scope): Limiter {
    const windows = createSlidingWindows(deps.nowS)
    share([scope, budget, limit].join(' '), windows)
    const made = createLimiter(deps.nowS, windows, { budget, limit, bans: scope && bans.bansInClass(scope, budget) })
    limiters.push(made)
    return made
  }
  // Calls that passed still count where the counts stay: lifting a ban gives no more calls a minute (R17).
  deps.signals.on('bans-changed', async (lifted) => {
    if (!lifted) for (const subject of await bans.readRows()) for (const { pardon } of limiters) pardon(subject)
    else {
      bans.forget(lifted.subject)
      for (const { forget, pardon } of limiters) lifted.withCounts ? forget(lifted.subject) : pardon(lifted.subject)
    }
  })
  const ofAddresses = (scope: Scope | undefined, budget: string, limit: number) =>
    withNetworks(limiter(budget, limit, scope), limiter(budget, NETWORK_FACTOR * limit, scope))
  const ofOwners = (budget: OwnerBudget): OwnerLimits => ({
    ip: ofAddresses('ip', budget, numbers[budget].ip),
    key: limiter(budget, numbers[budget].key, 'key'),
    user: limiter(budget, numbers[budget].key, 'user'),
    account: limiter(budget, numbers[budget].account, 'account'),
  })
  const { unauthenticated, signIns, uploads, redeem, playback, pages, posters, docs, health } = numbers
  return {
    reads: ofOwners('reads'),
    writes: ofOwners('writes'),
    otp: ofOwners('otp'),
    uploads: ofOwners('uploads'),
    unauthenticated: ofAddresses('ip', 'unauthenticated', unauthenticated.ip),
    signIns: ofAddresses(undefined, 'signIns', signIns.ip), // a ban would lock out others at the address for half an hour
    forms: ofAddresses('ip', 'forms', uploads.ip),
    uploadTokens: ofAddresses('ip', 'uploadTokens', numbers.reads.ip),
    redeem: ofAddresses('viewer', 'redeem', redeem.ip),
    spendable: limiter('redeem', Math.ceil(SPENDABLE_PART * redeem.ip)),
    waiting: limiter('waiting', WAITING_PER_OTP),
    playback: ofAddresses('viewer', 'playback', playback.ip),
    pages: ofAddresses('viewer', 'pages', pages.ip),
    posters: ofAddresses('viewer', 'posters', posters.ip),
    docs: ofAddresses('viewer', 'docs', docs.ip),
    health: ofAddresses('viewer', 'health', health.ip),
    share,
    banEndsAtS: (ban) => bans.bansInClass(ban.scope, ban.budget).endS(ban.subject) || ban.endsAtS,
  }
}

/** A flood: so many times the limit in one window, or far too many calls in so many windows of ten minutes (wire-contract.md, section 9). */
const FLOOD = 5
const MAX_EXCESSES = 3

/** A /48 has so many times what each /64 in it has. */
const NETWORK_FACTOR = 16
const SPENDABLE_PART = 0.4

type LimiterOptions = { budget: string; limit: number; bans: ClassBans | undefined }

/** Without `bans` what is too much waits, and is never a flood. */
function createLimiter(
  nowS: () => number,
  windows: ReturnType<typeof createSlidingWindows>,
  { bans, budget, limit }: LimiterOptions,
): OwnLimiter {
  function refusedByBan({ endS }: ClassBans, subject: string, settled?: Promise<void>): LimitExceeded {
    const bannedUntilS = () => endS(subject)
    return { subject, bannedUntilS, retryAfterS: () => Math.max(1, bannedUntilS() - nowS()), settled }
  }

  return {
    take(subject, factor = 1) {
      const quota = limit * factor
      const weight = 1 / factor
      const bannedUntilS = bans?.countAndGetEndS(subject, weight) ?? 0
      if (bans && bannedUntilS > 0)
        return { budget, quota, remaining: 0, waitS: bannedUntilS - nowS(), refused: refusedByBan(bans, subject) }
      const { passed, all, excesses, remaining, waitS, endsAtS } = windows.take(subject, limit, weight)
      const taken = { budget, quota, remaining: remaining * factor, waitS }
      if (passed) return taken
      const isFlood = all >= FLOOD * limit || excesses >= MAX_EXCESSES
      if (!bans || !isFlood) return { ...taken, refused: { subject, retryAfterS: () => waitS } }
      const settled = bans.strike({ subject, limit, all, windowEndsAtS: endsAtS })
      return { ...taken, refused: refusedByBan(bans, subject, settled) }
    },
    isExhausted: (subject) => (bans?.endS(subject) ?? 0) > 0 || windows.isExhausted(subject, limit),
    refund: windows.refund,
    pardon: windows.pardon,
    forget: windows.forget,
  }
}

/** The limit of an address and, for IPv6, that of the network around it: one customer often has a /48, which is 65 536 of them. */
function withNetworks(ofAddress: Limiter, ofNetwork: Limiter): Limiter {
  return {
    take(address, factor) {
      const taken = ofAddress.take(address, factor)
      const network = ipNetworkKey(address)
      if (network === undefined || taken.refused) return taken
      const around = ofNetwork.take(network, factor)
      return around.refused ? around : taken
    },
    isExhausted(address) {
      const network = ipNetworkKey(address)
      return ofAddress.isExhausted(address) || (network !== undefined && ofNetwork.isExhausted(network))
    },
    refund(address) {
      const network = ipNetworkKey(address)
      if (network !== undefined) ofNetwork.refund(network)
      ofAddress.refund(address)
    },
  }
}
