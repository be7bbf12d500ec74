import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../../accounts/permission.ts'
import { Failure } from '../../errors.ts'
import { ipRateLimitKey } from '../../net/ip.ts'
import type { LimitExceeded, LimitResult, RateLimits } from '../../rate-limits/rate-limits.ts'
import type { App } from '../wire/app-type.ts'
import { isoTime } from '../wire/iso-time.ts'
import type { AddressOf } from './client-address.ts'

// Rate limits of requests (wire-contract.md, section 9): here those that count against an address alone. Those of callers with a key are
// in identify.ts, those of viewers in play/limit-viewers.ts.

/** `limits` is undefined when they are off. */
export type LimitDeps = { limits: RateLimits | undefined; addressOf: AddressOf }

declare module 'fastify' {
  interface FastifyRequest {
    /** Has been counted against a limit. */
    isCounted: boolean
    /** Comes from a banned address: its body is not read. */
    isBanned: boolean
  }
}

/** The classes as messages name them. */
const CLASSES: Readonly<Record<string, string>> = {
  reads: 'reads',
  writes: 'writes',
  otp: 'OTPs',
  uploads: 'uploads',
  forms: 'upload forms',
  uploadTokens: 'calls with an upload token',
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

/** The hook of a route that counts each request as an attempt to sign in, against its address, before its body is read. */
export function limitSignIns({ limits, addressOf }: LimitDeps) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const taken = limits?.signIns.take(ipRateLimitKey(addressOf(request)))
    if (!taken) return
    setLimitHeaders(reply, taken)
    if (taken.refused) throw await createLimitFailure(taken, taken.refused)
  }
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

/** Whether the framework refused a request, before any code of ours. */
export function isFrameworkRefusal(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500
}

/** When this call causes the ban, resolves after the ban is durable. `of` is absent without a valid key. */
export async function createLimitFailure(
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
export function setLimitHeaders(reply: FastifyReply, { budget, quota, remaining, waitS }: LimitResult): void {
  reply.header('RateLimit-Policy', `"${budget}";q=${quota};w=60`)
  reply.header('RateLimit', `"${budget}";r=${Math.max(0, Math.floor(remaining + 0.001))};t=${waitS}`)
}
