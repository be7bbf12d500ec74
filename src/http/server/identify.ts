import { requirePermission } from '../../accounts/api-key.ts'
import type { Caller, Permission } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'
import { ipRateLimitKey } from '../../net/ip.ts'
import type { LimitResult, OwnerBudget, RateLimits } from '../../rate-limits/rate-limits.ts'
import { closeAfterResponse } from './connection-limits.ts'
import { createLimitFailure, isFrameworkRefusal, type LimitDeps, type LimitedCall, setLimitHeaders } from './limit.ts'

// The key is checked first: a call with a valid key counts against its address, key and account, and that of a person who is signed in
// against its address, person and account. One without either counts against its address alone, in a class of its own, so that strangers
// behind an owner's address cannot use up the owner's limits.

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Another permission that is accepted; the route decides for what. */
    orPermission?: Permission
    /** A person who may upload is accepted, too, for videos of their own: `console/own-videos.ts` refuses others. */
    isOpenToUploader?: true
    /** The class in which its calls count, when it is not that of its permission. */
    budget?: OwnerBudget
    /** Available to a banned account, which can lift its ban here with a key that is not banned. */
    isOpenToBanned?: true
  }
  interface FastifyRequest {
    /** Removes the call from the limits again. Absent when limits are off. */
    uncount?: () => void
  }
}

/** The class in which the calls of each permission count. */
export const BUDGETS = {
  viewer: 'reads',
  downloader: 'reads',
  otpCreator: 'otp',
  uploader: 'uploads',
  editor: 'writes',
} as const satisfies Record<Permission, OwnerBudget>

/**
 * Authenticates a call, within the limits of its address, key and account.
 * @param permission what the operation needs; the call counts in its class, or in that of the route
 * @param authenticate also called for requests without a key; may throw at once
 * @throws Failure `limited`, `forbidden` when the key lacks the permission, and what `authenticate` throws
 */
export async function identify<Who extends Caller>(
  deps: LimitDeps,
  call: LimitedCall,
  permission: Permission,
  authenticate: () => Promise<Who>,
): Promise<Who> {
  let holder: Who
  try {
    holder = await authenticate()
  } catch (error) {
    throw await countUnauthenticated(deps, call, error)
  }
  call.request.isCounted = true
  if (deps.limits) await limitHolder({ limits: deps.limits, addressOf: deps.addressOf }, call, holder, permission)
  const { orPermission, isOpenToUploader } = call.request.routeOptions.config
  const isUploader = isOpenToUploader && 'consoleUserId' in holder && holder.permissions.includes('uploader')
  if (!isUploader && (orPermission === undefined || !holder.permissions.includes(orPermission)))
    requirePermission(holder, permission)
  return holder
}

async function limitHolder(
  { limits, addressOf }: LimitDeps & { limits: RateLimits },
  { request, reply }: LimitedCall,
  holder: Caller,
  permission: Permission,
): Promise<void> {
  const config = request.routeOptions.config
  const budget = (permission === config.permission && config.budget) || BUDGETS[permission]
  const { ip, key, user, account } = limits[budget]
  const subjects = [
    { limiter: ip, subject: ipRateLimitKey(addressOf(request)), who: 'address' },
    'apiKeyId' in holder
      ? { limiter: key, subject: holder.apiKeyId, who: 'API key' }
      : { limiter: user, subject: holder.consoleUserId, who: 'user' },
    { limiter: account, subject: holder.accountId, who: 'account' },
  ]
  const counted: (() => void)[] = []
  let tightest: LimitResult | undefined
  for (const { limiter, subject, who } of subjects) {
    const taken = limiter.take(subject, holder.limitFactor)
    const { refused } = taken
    const isOpen = who === 'account' && refused?.bannedUntilS !== undefined && config.isOpenToBanned === true
    if (refused && !isOpen) {
      setLimitHeaders(reply, taken)
      throw await createLimitFailure(taken, refused, { who, holder })
    }
    if (!refused) counted.push(() => limiter.refund(subject))
    if (!tightest || taken.remaining < tightest.remaining) tightest = taken
  }
  if (!tightest) return
  const result = tightest
  setLimitHeaders(reply, result)
  request.uncount = () => {
    for (const refund of counted) refund()
    setLimitHeaders(reply, { ...result, remaining: result.remaining + 1 })
  }
}

/**
 * Counts a call without a valid key against its address, once.
 * @returns the error to send: `error`, or that of the limit
 */
export async function countUnauthenticated(
  { limits, addressOf }: LimitDeps,
  { request, reply }: LimitedCall,
  error: unknown,
): Promise<unknown> {
  const isCallersFault = error instanceof Failure ? error.kind !== 'unavailable' : isFrameworkRefusal(error)
  if (!limits || request.isCounted || !isCallersFault) return error
  request.isCounted = true
  const taken = limits.unauthenticated.take(ipRateLimitKey(addressOf(request)))
  setLimitHeaders(reply, taken)
  if (taken.refused?.bannedUntilS && !request.raw.complete) closeAfterResponse(request, reply)
  return taken.refused ? createLimitFailure(taken, taken.refused) : error
}

/** Counts a request for an unknown address in the interface that it looks like. @returns the error to send */
export async function limitUnroutedRequest(deps: LimitDeps, call: LimitedCall, error: Failure): Promise<unknown> {
  if (/^\/(api|v2)(\/|$)/.test(call.request.url)) return countUnauthenticated(deps, call, error)
  const taken = deps.limits?.playback.take(ipRateLimitKey(deps.addressOf(call.request)))
  return taken?.refused ? createLimitFailure(taken, taken.refused) : error
}
