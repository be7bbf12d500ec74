import type { Logger } from 'pino'
import type { RateLimits } from '../config.ts'
import { type BanDeps, type Bans, openBans, type Scope } from './bans.ts'
import { createWindows } from './windows.ts'

/** A refusal. `settled` is there on the call that brought a ban about: answer when it has resolved, with the length as it is then. */
export type Refused = { isBan: boolean; retryAfterS(): number; settled?: Promise<void> }

/** What a call found of one limit. `quota` and `remaining` count calls, `waitS` till there are more of them. */
export type Taken = { budget: string; quota: number; remaining: number; waitS: number; refused?: Refused }

/** One limit of the table: a number of calls a minute for each address, key or account. */
export type Limiter = {
  /** Counts a call. `factor`: how much more an account may ask for. */
  take(subject: string, factor?: number): Taken
  /** The ban that stands, without counting a call. */
  findBan(subject: string): Refused | undefined
  /** Turns a call that was just counted into one of a raised account, of which `factor` make one. */
  lighten(subject: string, taken: Taken, factor: number): Taken
  /** Takes back the call that was just counted: it belongs to another limit. */
  giveBack(subject: string): void
  pardon(subject: string): void
  forget(subject: string): void
}

/** Each call of an owner passes three of these: its address's, its key's, its account's. */
export type OwnerLimits = Readonly<Record<'ip' | 'key' | 'account', Limiter>>

export type Limits = Readonly<{
  reads: OwnerLimits
  writes: OwnerLimits
  otp: OwnerLimits
  uploads: OwnerLimits
  /** Upload forms: as many as credentials, counted apart, for they come from wherever the file is. */
  forms: Limiter
  redeem: Limiter
  playback: Limiter
  /** Forgets bans and refused calls of a subject. What passed still counts: no ban that is lifted gives more calls a minute (R17). */
  pardon(subject: string): void
  /** Forgets bans and counts of a subject. */
  forget(subject: string): void
  /** Forgets the bans that are over. */
  forgetEnded(): void
}>

/** Opens the limits with the bans that are on disk. */
export async function openLimits(deps: BanDeps & { log: Logger }, numbers: RateLimits): Promise<Limits> {
  const bans = await openBans(deps)
  const limiters: Limiter[] = []
  function limiter(scope: Scope, budget: keyof RateLimits, limit: number): Limiter {
    const made = createLimiter(bans, deps.nowS, scope, budget, limit)
    limiters.push(made)
    return made
  }
  const ofOwners = (budget: 'reads' | 'writes' | 'otp' | 'uploads'): OwnerLimits => ({
    ip: limiter('ip', budget, numbers[budget].ip),
    key: limiter('key', budget, numbers[budget].key),
    account: limiter('account', budget, numbers[budget].account),
  })
  return {
    reads: ofOwners('reads'),
    writes: ofOwners('writes'),
    otp: ofOwners('otp'),
    uploads: ofOwners('uploads'),
    forms: limiter('ip', 'uploads', numbers.uploads.ip),
    redeem: limiter('viewer', 'redeem', numbers.redeem.ip),
    playback: limiter('viewer', 'playback', numbers.playback.ip),
    pardon(subject) {
      bans.forget(subject)
      for (const { pardon } of limiters) pardon(subject)
    },
    forget(subject) {
      bans.forget(subject)
      for (const { forget } of limiters) forget(subject)
    },
    forgetEnded: bans.forgetEnded,
  }
}

const STRIKE_AT = 2

function createLimiter(bans: Bans, nowS: () => number, scope: Scope, budget: string, base: number): Limiter {
  const windows = createWindows(nowS)

  function banOf(subject: string, settled?: Promise<void>): Refused {
    return { isBan: true, retryAfterS: () => Math.max(1, bans.peekS(scope, subject)), settled }
  }

  return {
    take(subject, factor = 1) {
      const limit = base * factor
      const bannedS = bans.leftS(scope, subject)
      if (bannedS > 0) return { budget, quota: limit, remaining: 0, waitS: bannedS, refused: banOf(subject) }
      const { passed, all, remaining, waitS, endsAtS } = windows.take(subject, limit)
      if (passed) return { budget, quota: limit, remaining, waitS }
      if (all < STRIKE_AT * limit)
        return { budget, quota: limit, remaining, waitS, refused: { isBan: false, retryAfterS: () => waitS } }
      const settled = bans.strike({ scope, subject, budget, limit, all, windowEndsAtS: endsAtS })
      return { budget, quota: limit, remaining, waitS, refused: banOf(subject, settled) }
    },
    findBan(subject) {
      return bans.leftS(scope, subject) > 0 ? banOf(subject) : undefined
    },
    lighten(subject, taken, factor) {
      const part = 1 - 1 / factor
      windows.giveBack(subject, part)
      return { ...taken, quota: taken.quota * factor, remaining: (taken.remaining + part) * factor }
    },
    giveBack: (subject) => windows.giveBack(subject, 1),
    pardon: windows.pardon,
    forget: windows.forget,
  }
}
