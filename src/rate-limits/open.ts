import type { Logger } from 'pino'
import type { RateLimitConfig } from '../config/rate-limits.ts'
import type { Signals } from '../signals/signals.ts'
import type { BanAdmin, BanDeps } from './bans.ts'
import { openRateLimits, type RateLimits } from './rate-limits.ts'
import type { SharedCounts } from './shared-counts.ts'

type RateLimiting = {
  /** Undefined: `REELGATE_LIMITS` is off. */
  limits: RateLimits | undefined
  bans: BanAdmin
}

/** Opens the rate limits, and the bans so that lists show them as they are in memory. */
export async function openRateLimiting(
  { log, counts, ...rows }: BanDeps & { signals: Signals; counts?: SharedCounts | undefined; log: Logger },
  numbers: RateLimitConfig | undefined,
): Promise<RateLimiting> {
  const limits = numbers && (await openRateLimits({ ...rows, counts, log }, numbers))
  const bans = {
    ...rows,
    banEndsAtS: (ban: Parameters<BanAdmin['banEndsAtS']>[0]) => limits?.banEndsAtS(ban) ?? ban.endsAtS,
  }
  return { limits, bans }
}
