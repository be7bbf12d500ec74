import type { Logger } from 'pino'
import { findAccountOfKey } from '../accounts/api-key-store.ts'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { BanRow } from '../db/tables.ts'
import { isCommitOutcomeUnknown, type Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { ipRateLimitKey, parseIpAddress } from '../net/ip.ts'
import type { Signals } from '../signals/signals.ts'
import {
  countStrikes,
  findAccountOfUser,
  findCurrentBan,
  hasAccountBan,
  insertStrike,
  lengthenBan,
  listAccountBanRows,
  listBanRows,
  removeAccountBan,
  removeBans,
  removeOldBans,
  removeStrikes,
  saveBan,
} from './ban-store.ts'

// A flood is a strike, and a strike bans from the class of calls that was flooded, never from another (wire-contract.md, section 9).

/** Who is limited. A `user` is a person in the console. A `viewer` is an address that sends requests of a player: its bans never affect an owner behind it. */
export type Scope = 'ip' | 'key' | 'user' | 'account' | 'viewer'

export type BanDeps = {
  db: Db
  write: Write
  /** The playback clock: it never goes back, so no step of the wall clock makes a ban longer. */
  nowS: () => number
}

/** Which calls of whom: a ban covers one class of calls, its `budget`. */
type BanKey = { scope: Scope; budget: string; subject: string }

/** The window in which a subject exceeded its limit. `all` keeps counting until its end. */
type LimitBreach = { subject: string; limit: number; all: number; windowEndsAtS: number }

type Ban = BanKey &
  LimitBreach & { beganAtS: number; endsAtS: number; earlierStrikes: number; savedExcess: number; isWritten: boolean }

const BASE_S = 1800
const STEP_S = 225
/** From so many times the limit on, a ban is longer for each more. */
const SEVERE_FROM = 5
const MAX_SEVERITY_S = 1800
const PER_EARLIER_STRIKE_S = 1800
const MAX_BAN_S = 24 * 3600
const STRIKE_KEPT_S = 7 * 24 * 3600

/** How long a ban is: by how many times the limit was exceeded, and by the strikes of the last 7 days before it. */
export function banDurationS(excess: number, earlierStrikes: number): number {
  const severityS = Math.min(MAX_SEVERITY_S, STEP_S * Math.max(0, excess - SEVERE_FROM))
  return Math.min(MAX_BAN_S, Math.ceil(BASE_S + severityS + PER_EARLIER_STRIKE_S * earlierStrikes))
}

/** The bans of one class of calls, in memory. */
export type ClassBans = {
  /** When the subject's ban ends; 0: it has none. Counts a call of this weight: a flood that continues makes its ban longer. */
  countAndGetEndS(subject: string, weight: number): number
  /** The same without counting. */
  endS(subject: string): number
  /** Bans immediately in memory; resolves when the ban is durable, with the length that earlier strikes give it. */
  strike(offence: LimitBreach): Promise<void>
}

type Bans = {
  bansInClass(scope: Scope, budget: string): ClassBans
  forget(subject: string): void
  /** Takes the rows over, which other processes change, too. @returns the subjects that have no such row any more */
  readRows(): Promise<string[]>
}

/** The bans in memory: requests of the banned are answered from here alone. The rows are what a restart knows. */
export async function openBans({ db, write, nowS, log }: BanDeps & { log: Logger }): Promise<Bans> {
  /** By scope and budget, then by subject. */
  const classes = new Map<string, Map<string, Ban>>()
  const allBans = () => [...classes.values()].flatMap((bans) => [...bans.values()])
  await readRows()

  async function readRows(): Promise<string[]> {
    const gone = new Set(allBans().filter(({ isWritten }) => isWritten))
    for (const row of await listBanRows(db, nowS())) {
      const bans = bansIn(row.scope, row.budget)
      const known = bans.get(row.subject)
      // What floods another process, or flooded before this start, is not counted here: nothing here makes its ban longer.
      const counts = { limit: 1, all: 0, windowEndsAtS: 0, earlierStrikes: 0, savedExcess: Number.POSITIVE_INFINITY }
      if (!known) bans.set(row.subject, { ...row, ...counts, isWritten: true })
      else known.endsAtS = Math.max(known.endsAtS, row.endsAtS)
      if (known) gone.delete(known)
    }
    const removed = [...gone].filter((ban) => bansIn(ban.scope, ban.budget).get(ban.subject) === ban)
    for (const ban of removed) bansIn(ban.scope, ban.budget).delete(ban.subject)
    return removed.map(({ subject }) => subject)
  }

  function bansIn(scope: Scope, budget: string): Map<string, Ban> {
    const name = `${scope} ${budget}`
    const bans = classes.get(name) ?? new Map<string, Ban>()
    classes.set(name, bans)
    return bans
  }

  function grow(ban: Ban): void {
    const excess = ban.all / ban.limit
    ban.endsAtS = Math.max(ban.endsAtS, ban.beganAtS + banDurationS(excess, ban.earlierStrikes))
    if (Math.floor(excess) <= ban.savedExcess || ban.savedExcess >= MAX_SAVED_EXCESS) return
    ban.savedExcess = Math.floor(excess) // a few times at most: a flood must not become writes
    write((tx) => lengthenBan(tx, ban, ban.endsAtS)).catch(notWritten)
  }

  function notWritten(error: unknown): void {
    log.error({ err: error }, 'a ban could not be written; it holds until a restart')
  }

  function bansInClass(scope: Scope, budget: string): ClassBans {
    const bans = bansIn(scope, budget)
    return {
      countAndGetEndS(subject, weight) {
        const ban = bans.size === 0 ? undefined : bans.get(subject)
        if (!ban) return 0
        const now = nowS()
        if (now < ban.windowEndsAtS) {
          ban.all += weight
          grow(ban)
        }
        if (now < ban.endsAtS) return ban.endsAtS
        bans.delete(subject)
        return 0
      },
      endS(subject) {
        const endsAtS = bans.get(subject)?.endsAtS ?? 0
        return endsAtS > nowS() ? endsAtS : 0
      },
      async strike(offence) {
        const { subject, all, limit } = offence
        const beganAtS = nowS()
        const excess = all / limit
        const ban: Ban = {
          ...offence,
          scope,
          budget,
          beganAtS,
          endsAtS: beganAtS + banDurationS(excess, 0),
          earlierStrikes: 0,
          savedExcess: Number.POSITIVE_INFINITY, // the row is not there yet
          isWritten: false,
        }
        bans.set(subject, ban)
        log.warn({ scope, subject, budget, limit }, 'banned for a flood of requests')
        try {
          ban.earlierStrikes = await write(async (tx) => {
            const earlier = await countStrikes(tx, ban, beganAtS - STRIKE_KEPT_S)
            const current = await findCurrentBan(tx, ban, beganAtS)
            if (current) return joinBan(tx, current, excess, earlier - 1)
            await insertStrike(tx, ban, beganAtS)
            const endsAtS = beganAtS + banDurationS(excess, earlier)
            await saveBan(tx, { scope, subject, budget, beganAtS, endsAtS })
            const accountId = await findBanAccount(tx, scope, subject)
            const details = { scope, budget, endsAtS }
            await recordAuditEvent(tx, {
              atS: beganAtS,
              accountId,
              by: 'server',
              kind: 'ban:began',
              subjects: [subject],
              details,
            })
            return earlier
          })
          ban.savedExcess = Math.floor(excess)
          ban.isWritten = true
          grow(ban)
        } catch (error) {
          notWritten(error)
        }
      },
    }
  }

  return {
    bansInClass,
    forget(subject) {
      for (const bans of classes.values()) bans.delete(subject)
    },
    readRows,
  }
}

/** Another server has just banned the subject, for the same flood: that is one strike. @returns the strikes before it */
async function joinBan(tx: Db, current: BanRow, excess: number, earlierStrikes: number): Promise<number> {
  const endsAtS = current.beganAtS + banDurationS(excess, earlierStrikes)
  if (endsAtS > current.endsAtS) await lengthenBan(tx, current, endsAtS)
  return earlierStrikes
}

/** The account whose audit log records a ban; an address has none. */
async function findBanAccount(tx: Db, scope: Scope, subject: string): Promise<string | undefined> {
  if (scope === 'key') return findAccountOfKey(tx, subject)
  if (scope === 'user') return findAccountOfUser(tx, subject)
  return scope === 'account' ? subject : undefined
}

/** From here on a ban does not grow. */
const MAX_SAVED_EXCESS = SEVERE_FROM + MAX_SEVERITY_S / STEP_S

/** A running server knows it best: a ban grows while its flood continues. */
type BanReader = Pick<BanDeps, 'db' | 'nowS'> & { banEndsAtS(ban: BanRow): number }

/** A current ban, as `reelgate ban list` shows it. */
export async function listBans(deps: BanReader) {
  return (await listBanRows(deps.db, deps.nowS())).map((ban) => shownBan(deps, ban))
}

/** What an owner is shown: the bans of the account and of its keys. Addresses are shared, so theirs are the installation's alone. */
export async function listAccountBans(deps: BanReader, accountId: string) {
  return (await listAccountBanRows(deps.db, accountId, deps.nowS())).map((ban) => shownBan(deps, ban))
}

function shownBan({ banEndsAtS, nowS }: BanReader, ban: BanRow) {
  const { scope, subject, budget } = ban
  const endsAtS = banEndsAtS(ban)
  return { scope, subject, budget, secondsLeft: endsAtS - nowS(), endsAt: new Date(endsAtS * 1000).toISOString() }
}

export type BanAdmin = BanDeps & BanReader & { signals: Pick<Signals, 'send'> }

/**
 * Lifts the bans of an address, key or account, and forgets its strikes.
 * @throws Failure `not-found` when it has none
 */
export async function liftBan({ write, nowS, signals }: BanAdmin, text: string): Promise<{ subject: string; lifted: true }> {
  const address = parseIpAddress(text.replace(/\/64$/, '')) // a /48 is given as the list shows it
  const subject = address === undefined ? text : ipRateLimitKey(address)
  const reportLifted = () => void signals.send('bans-changed', { subject, withCounts: true })
  const lifted = await write(async (tx) => {
    await removeStrikes(tx, subject)
    return removeBan(tx, subject, 'command-line', nowS())
  }).catch(ifUnknown(reportLifted))
  reportLifted()
  if (!lifted) throw new Failure('not-found', `There is no ban of ${subject}. See "reelgate ban list".`)
  return { subject, lifted: true }
}

/**
 * Lifts the ban of an account or of one of its keys, for its owner. The strike stays, so that the next ban is longer, and so do the
 * counts of the last minute: lifting bans gives no more calls.
 * @throws Failure `not-found` when it has none, also for another account's
 */
export async function liftAccountBan({ db, write, nowS, signals }: BanAdmin, accountId: string, by: Actor, subject: string) {
  // First: after a commit without an answer it could not be known whose ban it was.
  if (!(await hasAccountBan(db, accountId, subject))) throw banNotFound()
  const reportLifted = () => void signals.send('bans-changed', { subject, withCounts: false })
  await write(async (tx) => {
    if (!(await removeAccountBan(tx, accountId, subject))) throw banNotFound() // another call was first
    await recordAuditEvent(tx, { atS: nowS(), accountId, by, kind: 'ban:lifted', subjects: [subject] })
  }).catch(ifUnknown(reportLifted))
  reportLifted()
}

function banNotFound(): Failure {
  return new Failure('not-found', 'There is no such ban of this account or its keys. GET /api/bans lists them.')
}

/**
 * Lifts a ban also when its row may be gone: no ban may be enforced that is not listed and cannot be lifted. When the row is still there,
 * the ban is listed, can be lifted again, and is enforced again after a restart.
 */
function ifUnknown(lift: () => void) {
  return (error: unknown): never => {
    if (isCommitOutcomeUnknown(error)) lift()
    throw error
  }
}

/** Removes the bans of a subject and notes it. False: there is none. */
async function removeBan(tx: Db, subject: string, by: Actor, atS: number): Promise<boolean> {
  const [ban] = await removeBans(tx, subject)
  if (!ban) return false
  const accountId = await findBanAccount(tx, ban.scope, subject)
  await recordAuditEvent(tx, { atS, accountId, by, kind: 'ban:lifted', subjects: [subject] })
  return true
}

/** Removes what no answer needs any more: bans that are over, strikes of more than 7 days ago. */
export async function pruneBans({ write, nowS }: Pick<BanDeps, 'write' | 'nowS'>): Promise<void> {
  await write((tx) => removeOldBans(tx, nowS(), nowS() - STRIKE_KEPT_S))
}
