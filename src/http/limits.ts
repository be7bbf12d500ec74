import type { FastifyReply, FastifyRequest } from 'fastify'
import type { KeyHolder, Permission } from '../accounts/api-key.ts'
import { Failure } from '../errors.ts'
import { subjectOfAddress } from '../limits/address.ts'
import type { Limiter, Limits, Refused, Taken } from '../limits/limits.ts'
import { PlaybackRefusal, type RefusalCode } from '../playback/refusal.ts'
import type { App } from './app.ts'
import type { AddressOf } from './client-address.ts'
import { isOtherMethod, sendRefusal } from './refusals.ts'

// Where calls meet their limits: an address before anything of the call is read, key and account once they are known. The same
// for both interfaces of owners; viewers have budgets of their own (wire-contract.md, section 9).

/** `limits` is undefined when they are off. */
export type LimitDeps = { limits: Limits | undefined; addressOf: AddressOf }

/** What a call has found so far. */
type Counted = { limits: Limits; ip: Limiter; address: string; taken: Taken; reply: FastifyReply }

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Spends from the budget of redeems. */
    isRedeem?: true
    /** Asked by pages in viewers' browsers: never counts against what an owner may ask from the same address. */
    isOfViewers?: true
    /** Answers a banned account: here it lifts its ban, with a key that is not banned itself. */
    isOpenToBanned?: true
  }
  interface FastifyRequest {
    counted: Counted | undefined
    /** Comes from a banned address: nothing of its body is read, not even out of politeness. */
    isBanned: boolean
  }
}

/** The budget of each permission. */
export const BUDGETS = { viewer: 'reads', otpCreator: 'otp', uploader: 'uploads', editor: 'writes' } as const satisfies Record<
  Permission,
  'reads' | 'otp' | 'uploads' | 'writes'
>

/** Counts every call of an interface against its address, by the permission that its route names; a route without one reads. */
export function limitAddresses(app: App, { limits, addressOf }: LimitDeps): void {
  app.decorateRequest('counted', undefined)
  if (!limits) return
  app.addHook('onRequest', (request, reply, done) => {
    const { permission = 'viewer', isOfViewers } = request.routeOptions.config
    const ip = isOfViewers ? limits.playback : limits[BUDGETS[permission]].ip
    const address = subjectOfAddress(addressOf(request))
    const taken = ip.take(address)
    request.counted = { limits, ip, address, taken, reply }
    tellLimit(reply, taken)
    if (!taken.refused) return done()
    refusalOf(taken.refused, 'address').then(done, done)
  })
}

/** Counts a call whose operation was told by its body alone as what it is: till then it was a read. @throws Failure `limited` */
export async function countAs(request: FastifyRequest, permission: Permission): Promise<void> {
  const { counted } = request
  const ip = counted?.limits[BUDGETS[permission]].ip
  if (!counted || !ip || ip === counted.ip) return
  counted.ip.giveBack(counted.address)
  const taken = ip.take(counted.address)
  request.counted = { ...counted, ip, taken }
  tellLimit(counted.reply, taken)
  if (taken.refused) throw await refusalOf(taken.refused, 'address')
}

/** Counts a call whose key is known against key and account. @throws Failure `limited` */
export async function limitHolder(request: FastifyRequest, holder: KeyHolder, permission: Permission): Promise<void> {
  const { counted } = request
  if (!counted) return
  const { limits, ip, address, taken: ofAddress, reply } = counted
  const { key, account } = limits[BUDGETS[permission]]
  const { limitFactor } = holder
  const ofKey = key.take(holder.apiKeyId, limitFactor)
  if (ofKey.refused) return refuse(reply, ofKey, ofKey.refused, 'API key')
  const ofAccount = account.take(holder.accountId, limitFactor)
  const isOpen = ofAccount.refused?.isBan === true && request.routeOptions.config.isOpenToBanned === true
  if (ofAccount.refused && !isOpen) return refuse(reply, ofAccount, ofAccount.refused, 'account')
  // A raised account's calls weigh less on the address, too: its servers are few.
  const lightened = limitFactor === 1 ? ofAddress : ip.lighten(address, ofAddress, limitFactor)
  const tightest = [lightened, ofKey, ofAccount].reduce((a, b) => (b.remaining < a.remaining ? b : a))
  if (tightest !== ofAddress) tellLimit(reply, tightest)
}

async function refuse(reply: FastifyReply, taken: Taken, refused: Refused, who: string): Promise<never> {
  tellLimit(reply, taken)
  throw await refusalOf(refused, who)
}

/** Counts a call whose address leads to no interface where it seemed to go. @returns why it is refused, if it is */
export async function limitLost({ limits, addressOf }: LimitDeps, request: FastifyRequest, reply: FastifyReply) {
  if (!limits) return undefined
  const isOfOwner = /^\/(api|v2)(\/|$)/.test(request.url)
  const taken = (isOfOwner ? limits.reads.ip : limits.playback).take(subjectOfAddress(addressOf(request)))
  if (isOfOwner) tellLimit(reply, taken)
  return taken.refused && refusalOf(taken.refused, 'address')
}

/** Counts upload forms against their address; form and file carry their own proof and are not read yet. */
export function limitForms(app: App, { limits, addressOf }: LimitDeps): void {
  app.decorateRequest('isBanned', false)
  if (!limits) return
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.method === 'OPTIONS') return done()
    const { refused } = limits.forms.take(subjectOfAddress(addressOf(request)))
    if (!refused) return done()
    request.isBanned = refused.isBan
    refusalOf(refused, 'address').then(done, done)
  })
}

/**
 * The refusals of an interface for players. Redeems count against their address, and so does what is refused for one of these
 * reasons, since nothing true is known of who asked; a banned address is refused at once.
 */
export function refuseViewers(app: App, { limits, addressOf }: LimitDeps, reasons: readonly RefusalCode[]): void {
  const addressIn = (request: FastifyRequest) => subjectOfAddress(addressOf(request))
  app.setErrorHandler(async (error, request, reply) => sendRefusal(await counted(error, request), request, reply))
  app.setNotFoundHandler(async (request, reply) =>
    sendRefusal(await counted(new PlaybackRefusal('bad-request'), request), request, reply),
  )
  if (!limits) return
  app.addHook('onRequest', (request, _reply, done) => {
    const address = addressIn(request)
    const refused = isRedeem(request) ? limits.redeem.take(address).refused : limits.playback.findBan(address)
    if (!refused) return done()
    slowDown(refused).then(done, done)
  })

  async function counted(error: unknown, request: FastifyRequest): Promise<unknown> {
    if (!limits || isRedeem(request) || !isOneOf(error, reasons)) return error
    const { refused } = limits.playback.take(addressIn(request))
    return refused ? slowDown(refused) : error
  }
}

function isRedeem(request: FastifyRequest): boolean {
  return request.routeOptions.config?.isRedeem === true
}

/** What the framework refuses is a bad request, too. */
function isOneOf(error: unknown, reasons: readonly RefusalCode[]): boolean {
  if (error instanceof PlaybackRefusal) return reasons.includes(error.code)
  return isOtherMethod(error) || (error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500)
}

async function slowDown(refused: Refused): Promise<PlaybackRefusal> {
  await refused.settled
  return new PlaybackRefusal('slow-down', { retryAfterS: refused.retryAfterS() })
}

/** One who is banned by this very call is told how long once that is on disk. */
async function refusalOf(refused: Refused, who: string): Promise<Failure> {
  await refused.settled
  const retryAfterS = refused.retryAfterS()
  const sentence = refused.isBan
    ? `This ${who} is banned for ${retryAfterS} more seconds, because it asked twice as often as it may.`
    : `Too many requests in a minute from this ${who}. Wait ${retryAfterS} seconds, then go on.`
  return new Failure('limited', sentence, { retryAfterS })
}

/** draft-ietf-httpapi-ratelimit-headers-10 */
function tellLimit(reply: FastifyReply, { budget, quota, remaining, waitS }: Taken): void {
  reply.header('RateLimit-Policy', `"${budget}";q=${quota};w=60`)
  reply.header('RateLimit', `"${budget}";r=${Math.max(0, Math.floor(remaining + 0.001))};t=${waitS}`)
}
