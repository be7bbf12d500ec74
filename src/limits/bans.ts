import type { Logger } from 'pino'
import { type Actor, noteAct } from '../accounts/act.ts'
import { findAccountOfKey } from '../accounts/api-key-store.ts'
import type { Db } from '../db/database.ts'
import type { BanRow } from '../db/tables.ts'
import { isOutcomeUnknown, type Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { readAddress, subjectOfAddress } from './address.ts'
import {
  countStrikes,
  insertStrike,
  isBanOfAccount,
  lengthenBan,
  listBans,
  listBansOfAccount,
  removeBanOfAccount,
  removeBans,
  removeOldBans,
  removeStrikes,
  saveBan,
} from './ban-store.ts'

// Twice the limit in one window is a strike; a strike bans (wire-contract.md, section 9).

/** Who is limited. A `viewer` is an address that asks as a player does: its bans never close the API to an owner behind it. */
export type Scope = 'ip' | 'key' | 'account' | 'viewer'

export type BanDeps = {
  db: Db
  write: Write
  /** The playback clock: it never goes back, so no step of the wall clock makes a ban longer. */
  nowS: () => number
}

/** The window in which a subject went too far. `all` goes on counting till its end. */
export type Offence = { scope: Scope; subject: string; budget: string; limit: number; all: number; windowEndsAtS: number }

type Ban = Offence & { beganAtS: number; endsAtS: number; earlierStrikes: number; savedExcess: number }

const BASE_S = 1800
const STEP_S = 225
const MOST_BY_SEVERITY_S = 1800
const PER_EARLIER_STRIKE_S = 1800
const LONGEST_S = 24 * 3600
const STRIKE_KEPT_S = 7 * 24 * 3600

/** How long a ban is: by how many times the limit was exceeded, and by the strikes of the last 7 days before it. */
export function banLengthS(excess: number, earlierStrikes: number): number {
  const severityS = Math.min(MOST_BY_SEVERITY_S, STEP_S * Math.max(0, excess - 2))
  return Math.min(LONGEST_S, Math.ceil(BASE_S + severityS + PER_EARLIER_STRIKE_S * earlierStrikes))
}

export type Bans = Awaited<ReturnType<typeof openBans>>

/** The bans in memory: requests of the banned are answered from here alone. The rows are what a restart knows. */
export async function openBans({ db, write, nowS, log }: BanDeps & { log: Logger }) {
  const bans: Record<Scope, Map<string, Ban>> = { ip: new Map(), key: new Map(), account: new Map(), viewer: new Map() }
  for (const row of await listBans(db, nowS())) {
    // The window of a ban from before this start is over: nothing makes it longer.
    const counts = { limit: 1, all: 0, windowEndsAtS: 0, earlierStrikes: 0, savedExcess: Number.POSITIVE_INFINITY }
    bans[row.scope].set(row.subject, { ...row, ...counts })
  }

  function inBackground(change: (tx: Db) => Promise<void>): void {
    write(change).catch((error) => log.error({ err: error }, 'a ban could not be written; it holds until a restart'))
  }

  function grow(ban: Ban): void {
    const excess = ban.all / ban.limit
    ban.endsAtS = Math.max(ban.endsAtS, ban.beganAtS + banLengthS(excess, ban.earlierStrikes))
    if (Math.floor(excess) <= ban.savedExcess || ban.savedExcess >= MOST_SAVED_EXCESS) return
    ban.savedExcess = Math.floor(excess) // eight times at most: a flood must not become writes
    const { scope, subject, endsAtS } = ban
    inBackground((tx) => lengthenBan(tx, scope, subject, endsAtS))
  }

  return {
    /** How long the subject is banned yet; 0: it is not. Counts the call: a flood that goes on makes its ban longer. */
    leftS(scope: Scope, subject: string): number {
      const found = bans[scope].size === 0 ? undefined : bans[scope].get(subject)
      if (!found) return 0
      const now = nowS()
      if (now < found.windowEndsAtS) {
        found.all += 1
        grow(found)
      }
      if (now >= found.endsAtS) bans[scope].delete(subject)
      return Math.max(0, found.endsAtS - now)
    },
    /** The same without counting. */
    peekS(scope: Scope, subject: string): number {
      return Math.max(0, (bans[scope].get(subject)?.endsAtS ?? 0) - nowS())
    },
    /** Bans at once in memory; resolves when it is on disk and has the length that earlier strikes give it. */
    async strike(offence: Offence): Promise<void> {
      const { scope, subject, budget, all, limit } = offence
      const beganAtS = nowS()
      const excess = all / limit
      const ban: Ban = {
        ...offence,
        beganAtS,
        endsAtS: beganAtS + banLengthS(excess, 0),
        earlierStrikes: 0,
        savedExcess: Number.POSITIVE_INFINITY, // the row is not there yet
      }
      bans[scope].set(subject, ban)
      log.warn({ scope, subject, budget, limit }, 'banned for asking twice as often as it may')
      try {
        ban.earlierStrikes = await write(async (tx) => {
          const earlier = await countStrikes(tx, scope, subject, beganAtS - STRIKE_KEPT_S)
          await insertStrike(tx, scope, subject, budget, beganAtS)
          const endsAtS = beganAtS + banLengthS(excess, earlier)
          await saveBan(tx, { scope, subject, budget, beganAtS, endsAtS })
          const accountId = await accountOf(tx, scope, subject)
          const details = { scope, budget, endsAtS }
          await noteAct(tx, { atS: beganAtS, accountId, by: 'server', kind: 'ban:began', subjects: [subject], details })
          return earlier
        })
        ban.savedExcess = Math.floor(excess)
        grow(ban)
      } catch (error) {
        log.error({ err: error }, 'a ban could not be written; it holds until a restart')
      }
    },
    forget(subject: string): void {
      for (const map of Object.values(bans)) map.delete(subject)
    },
    /** Drops those that are over: whoever was banned need not come back. */
    forgetEnded(): void {
      const now = nowS()
      for (const map of Object.values(bans)) for (const [subject, ban] of map) if (now >= ban.endsAtS) map.delete(subject)
    },
  }
}

/** Whose audit record a ban belongs to; an address is nobody's. */
async function accountOf(tx: Db, scope: Scope, subject: string): Promise<string | undefined> {
  if (scope === 'key') return findAccountOfKey(tx, subject)
  return scope === 'account' ? subject : undefined
}

/** From here on a ban does not grow. */
const MOST_SAVED_EXCESS = 2 + MOST_BY_SEVERITY_S / STEP_S

/** What `reelgate ban list` shows of those that stand. */
export async function findBans({ db, nowS }: BanDeps) {
  return (await listBans(db, nowS())).map((ban) => shownBan(ban, nowS()))
}

/** What an owner is shown: the bans of the account and of its keys. Addresses are shared, so theirs are the installation's alone. */
export async function findBansOfAccount({ db, nowS }: Pick<BanDeps, 'db' | 'nowS'>, accountId: string) {
  return (await listBansOfAccount(db, accountId, nowS())).map((ban) => shownBan(ban, nowS()))
}

function shownBan({ scope, subject, budget, endsAtS }: BanRow, nowS: number) {
  return { scope, subject, budget, secondsLeft: endsAtS - nowS }
}

/** What a running server must forget of a subject whose ban is lifted: all of it, or the ban alone. */
export type Lifting = BanDeps & { forget(subject: string): void; pardon(subject: string): void }

/**
 * Lifts the bans of an address, key or account, and forgets its strikes.
 * @throws Failure `not-found` when it has none
 */
export async function liftBan({ write, nowS, forget }: Lifting, text: string): Promise<{ subject: string; lifted: true }> {
  const address = readAddress(text.replace(/\/64$/, ''))
  const subject = address === undefined ? text : subjectOfAddress(address)
  const lifted = await write(async (tx) => {
    await removeStrikes(tx, subject)
    return removeBan(tx, subject, 'command-line', nowS())
  }).catch(ifUnknown(() => forget(subject)))
  forget(subject)
  if (!lifted) throw new Failure('not-found', `There is no ban of ${subject}. See "reelgate ban list".`)
  return { subject, lifted: true }
}

/**
 * Lifts the ban of an account or of one of its keys, for its owner. The strike stays, so that the next ban is longer, and so does what
 * passed in the last minute: whoever may lift bans may not ask more often for it.
 * @throws Failure `not-found` when it has none, also for another account's
 */
export async function liftOwnBan(
  { db, write, nowS, pardon }: Lifting,
  accountId: string,
  by: Actor,
  subject: string,
): Promise<void> {
  // Before anything: of a commit that may have been kept nobody else could tell whose the ban was.
  if (!(await isBanOfAccount(db, accountId, subject))) throw NO_SUCH_BAN
  await write(async (tx) => {
    if (!(await removeBanOfAccount(tx, accountId, subject))) throw NO_SUCH_BAN // another call was first
    await noteAct(tx, { atS: nowS(), accountId, by, kind: 'ban:lifted', subjects: [subject] })
  }).catch(ifUnknown(() => pardon(subject)))
  pardon(subject)
}

const NO_SUCH_BAN = new Failure('not-found', 'There is no such ban of this account or its keys. GET /api/bans lists them.')

/**
 * Lets go whoever's ban may be gone from the rows: no ban may hold that nobody can see and lift. If it is there still, it is listed,
 * can be lifted once more, and holds again after a restart.
 */
function ifUnknown(letGo: () => void) {
  return (error: unknown): never => {
    if (isOutcomeUnknown(error)) letGo()
    throw error
  }
}

/** Removes the bans of a subject and notes it. False: there is none. */
async function removeBan(tx: Db, subject: string, by: Actor, atS: number): Promise<boolean> {
  const [ban] = await removeBans(tx, subject)
  if (!ban) return false
  const accountId = await accountOf(tx, ban.scope, subject)
  await noteAct(tx, { atS, accountId, by, kind: 'ban:lifted', subjects: [subject] })
  return true
}

/** What a running server must forget of bans that are over. */
export type BanSweeping = Pick<BanDeps, 'write' | 'nowS'> & { forgetEnded(): void }

/** Removes what no answer needs any more: bans that are over, strikes of more than 7 days ago. */
export async function sweepBans({ write, nowS, forgetEnded }: BanSweeping): Promise<void> {
  forgetEnded()
  await write((tx) => removeOldBans(tx, nowS(), nowS() - STRIKE_KEPT_S))
}
