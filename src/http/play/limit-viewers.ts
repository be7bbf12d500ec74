import type { FastifyRequest } from 'fastify'
import type { RefusalCode } from '../../error-catalogue.ts'
import { ipRateLimitKey } from '../../net/ip.ts'
import { PlaybackRefusal } from '../../playback/refusal.ts'
import type { LimitExceeded } from '../../rate-limits/rate-limits.ts'
import { isFrameworkRefusal, type LimitDeps } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { isMethodNotAllowed, sendRefusal } from './errors.ts'

// Viewers have limits of their own (wire-contract.md, section 9): a request with a valid proof does not count.

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Counts as a redeem. */
    isRedeem?: true
  }
}

/**
 * Error handling of an interface for players. A request refused for one of these reasons counts against its address, since its sender
 * has proved nothing. An address over its limit gets 429 for such requests only: requests with a valid proof or signature pass.
 */
export function refuseViewers(app: App, { limits, addressOf }: LimitDeps, reasons: readonly RefusalCode[]): void {
  app.setErrorHandler(async (error, request, reply) => sendRefusal(await counted(error, request), request, reply))
  app.setNotFoundHandler(async (request, reply) =>
    sendRefusal(await counted(new PlaybackRefusal('bad-request'), request), request, reply),
  )

  async function counted(error: unknown, request: FastifyRequest): Promise<unknown> {
    if (!limits || request.isCounted || !isOneOf(error, reasons)) return error
    const limiter = request.routeOptions.config?.isRedeem ? limits.redeem : limits.playback
    const { refused } = limiter.take(ipRateLimitKey(addressOf(request)))
    // It carries the newest nonce, without which the holder of a session could never make a valid proof again.
    if (!refused || (error instanceof PlaybackRefusal && error.code === 'proof-stale')) return error
    return slowDown(refused)
  }
}

/** Whether an address has used up its requests without a valid proof: then proofs are checked at a limited rate for each session. */
export function isFlooding({ limits, addressOf }: LimitDeps, request: FastifyRequest): boolean {
  return limits?.playback.isExhausted(ipRateLimitKey(addressOf(request))) ?? false
}

/** A redeem: its OTP, whether the OTP can be spent, and the redeem itself. */
type LimitedRedeem<T> = { otp: string; isSpendable(): Promise<boolean>; redeem(): Promise<T> }

/**
 * Redeems within the limits of the address. An OTP that can be spent passes, at a lower rate, also when the address has used up its
 * redeems; one whose video is not ready does not count.
 * @throws PlaybackRefusal `slow-down`, and what `redeem` throws
 */
export async function redeemWithin<T>(
  { limits, addressOf }: LimitDeps,
  request: FastifyRequest,
  { otp, isSpendable, redeem }: LimitedRedeem<T>,
): Promise<T> {
  request.isCounted = true
  if (!limits) return redeem()
  const address = ipRateLimitKey(addressOf(request))
  const { refused } = limits.redeem.take(address)
  const mayPass = !refused || ((await isSpendable()) && !limits.spendable.take(address).refused)
  if (!mayPass) throw await slowDown(refused)
  try {
    return await redeem()
  } catch (error) {
    const isWaiting = error instanceof PlaybackRefusal && error.code === 'video-not-ready'
    if (isWaiting && !limits.waiting.take(otp).refused) (refused ? limits.spendable : limits.redeem).refund(address)
    throw error
  }
}

/** Errors of the framework count as bad requests, too. */
function isOneOf(error: unknown, reasons: readonly RefusalCode[]): boolean {
  if (error instanceof PlaybackRefusal) return reasons.includes(error.code)
  return isMethodNotAllowed(error) || isFrameworkRefusal(error)
}

async function slowDown(refused: LimitExceeded): Promise<PlaybackRefusal> {
  await refused.settled
  return new PlaybackRefusal('slow-down', { retryAfterS: refused.retryAfterS() })
}
