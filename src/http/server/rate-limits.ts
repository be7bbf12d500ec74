import type { FastifyReply, FastifyRequest } from 'fastify'
import { requirePermission } from '../../accounts/api-key.ts'
import type { Caller, Permission } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'
import { ipRateLimitKey } from '../../net/ip.ts'
import { PlaybackRefusal, type RefusalCode } from '../../playback/refusal.ts'
import type { LimitExceeded, LimitResult, OwnerBudget, RateLimits } from '../../rate-limits/rate-limits.ts'
import { isMethodNotAllowed, sendRefusal } from '../play/errors.ts'
import type { App } from '../wire/app-type.ts'
import { isoTime } from '../wire/iso-time.ts'
import type { AddressOf } from './client-address.ts'
import { closeAfterResponse } from './connections.ts'

// Rate limits of requests. The key is checked first: a call with a valid key counts against its address, key and account, and that of a
// person who is signed in against its address, person and account. One without either counts against its address alone, in a class of
// its own, so that strangers behind an owner's address cannot use up the owner's limits. Viewers have limits of their own
// (wire-contract.md, section 9).

/** `limits` is undefined when they are off. */
export type LimitDeps = { limits: RateLimits | undefined; addressOf: AddressOf }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Another permission that is accepted; the route decides for what. */
    orPermission?: Permission
    /** A person who may upload is accepted, too, for videos of their own: `console/own-videos.ts` refuses others. */
    isOpenToUploader?: true
    /** The class in which its calls count, when it is not that of its permission. */
    budget?: OwnerBudget
    /** Counts as a redeem. */
    isRedeem?: true
    /** Available to a banned account, which can lift its ban here with a key that is not banned. */
    isOpenToBanned?: true
  }
  interface FastifyRequest {
    /** Has been counted against a limit. */
    isCounted: boolean
    /** Removes the call from the limits again. Absent when limits are off. */
    uncount?: () => void
    /** Comes from a banned address: its body is not read. */
    isBanned: boolean
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

/** The classes as messages name them. */
const CLASSES: Readonly<Record<string, string>> = {
  reads: 'reads',
  writes: 'writes',
  otp: 'OTPs',
  uploads: 'uploads',
  forms: 'upload forms',
  unauthenticated: 'calls without a valid API key',
  signIns: 'attempts to sign in',
  playback: 'playback calls',
  redeem: 'redeems',
  pages: 'player pages',
  posters: 'posters',
  docs: 'pages of the docs',
  health: 'health checks',
}

/** A request and its reply. */
export type LimitedCall = { request: FastifyRequest; reply: FastifyReply }

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

/** The hook of a route that counts each request as an attempt to sign in, against its address, before its body is read. */
export function limitSignIns({ limits, addressOf }: LimitDeps) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const taken = limits?.signIns.take(ipRateLimitKey(addressOf(request)))
    if (!taken) return
    setLimitHeaders(reply, taken)
    if (taken.refused) throw await createLimitFailure(taken, taken.refused)
  }
}

/** Counts a request for an unknown address in the interface that it looks like. @returns the error to send */
export async function limitUnroutedRequest(deps: LimitDeps, call: LimitedCall, error: Failure): Promise<unknown> {
  if (/^\/(api|v2)(\/|$)/.test(call.request.url)) return countUnauthenticated(deps, call, error)
  const taken = deps.limits?.playback.take(ipRateLimitKey(deps.addressOf(call.request)))
  return taken?.refused ? createLimitFailure(taken, taken.refused) : error
}

/** Counts all requests to a public interface against their address; owners' limits are not affected. */
export function limitByAddress(app: App, { limits, addressOf }: LimitDeps, budget: 'playback' | VisitorBudget): void {
  if (!limits) return
  app.addHook('onRequest', async (request, reply) => {
    const taken = limits[budget].take(ipRateLimitKey(addressOf(request)))
    if (budget === 'playback') setLimitHeaders(reply, taken)
    if (taken.refused) throw await createLimitFailure(taken, taken.refused)
  })
}

type VisitorBudget = 'pages' | 'posters' | 'docs' | 'health'

/** Counts a request with an unknown OTP or poster token as a guess. @throws Failure `limited` */
export async function countGuess({ limits, addressOf }: LimitDeps, request: FastifyRequest): Promise<void> {
  const taken = limits?.redeem.take(ipRateLimitKey(addressOf(request)))
  if (taken?.refused) throw await createLimitFailure(taken, taken.refused)
}

/** Counts upload forms against their address, before anything of them is read. */
export function limitForms(app: App, { limits, addressOf }: LimitDeps): void {
  if (!limits) return
  app.addHook('onRequest', async (request) => {
    if (request.method === 'OPTIONS') return
    const taken = limits.forms.take(ipRateLimitKey(addressOf(request)))
    if (!taken.refused) return
    request.isBanned = taken.refused.bannedUntilS !== undefined
    throw await createLimitFailure(taken, taken.refused)
  })
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
export type LimitedRedeem<T> = { otp: string; isSpendable(): Promise<boolean>; redeem(): Promise<T> }

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

function isFrameworkRefusal(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500
}

async function slowDown(refused: LimitExceeded): Promise<PlaybackRefusal> {
  await refused.settled
  return new PlaybackRefusal('slow-down', { retryAfterS: refused.retryAfterS() })
}

/** When this call causes the ban, resolves after the ban is durable. `of` is absent without a valid key. */
async function createLimitFailure(
  { budget, quota }: LimitResult,
  { subject, settled, retryAfterS, bannedUntilS }: LimitExceeded,
  of?: { who: string; holder: Caller },
): Promise<Failure> {
  await settled
  const who = of?.who ?? 'address'
  const limit = `${quota} ${CLASSES[budget] ?? budget} a minute`
  const sentences = bannedUntilS
    ? [
        `This ${who} is banned from ${CLASSES[budget] ?? budget} until ${isoTime(bannedUntilS())}: it sent far more than ${limit}.`,
        ...(of ? [liftingSentence(subject, of)] : []),
      ]
    : [`Too many requests from this ${who}: at most ${limit}. Wait ${retryAfterS()} seconds, then continue.`]
  return new Failure('limited', sentences.join(' '), { retryAfterS: retryAfterS() })
}

function liftingSentence(subject: string, { who, holder }: { who: string; holder: Caller }): string {
  const { accountId, limitFactor } = holder
  const byApi = who === 'address' ? '' : ` or DELETE /api/bans?subject=${subject}`
  return `Lift the ban with "reelgate ban lift ${subject}"${byApi}; raise the limit with "reelgate account set ${accountId} --limit-factor ${2 * limitFactor}".`
}

/** draft-ietf-httpapi-ratelimit-headers-10 */
function setLimitHeaders(reply: FastifyReply, { budget, quota, remaining, waitS }: LimitResult): void {
  reply.header('RateLimit-Policy', `"${budget}";q=${quota};w=60`)
  reply.header('RateLimit', `"${budget}";r=${Math.max(0, Math.floor(remaining + 0.001))};t=${waitS}`)
}
