import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { IDLE_S, type SignedIn } from './authenticate.ts'
import { notify } from './notice.ts'
import type { Browser } from './sign-in.ts'
import { listSignIns, removeOtherSignIns, removeSignIn, setLookedAtAccount } from './sign-in-store.ts'

// The browsers in which a person is signed in, and the account that each looks at.

type SignInsDeps = { db: Db; write: Write; nowS: () => number }

/** Those that have not ended, the newest first. */
export async function findSignIns({ db, nowS }: Omit<SignInsDeps, 'write'>, { consoleUserId }: Pick<SignedIn, 'consoleUserId'>) {
  return listSignIns(db, consoleUserId, nowS() - IDLE_S, nowS())
}

/** @throws Failure `not-found` */
export async function endSignIn({ write, nowS }: SignInsDeps, person: SignedIn, id: string): Promise<void> {
  await write(async (tx) => {
    if (!(await removeSignIn(tx, person.consoleUserId, id))) throw new Failure('not-found', 'You have no such sign-in.')
    await recordEnd(tx, person, nowS(), 1)
  })
}

/** Ends all sign-ins of a person but the one that asks, and notifies the person. @returns how many */
export async function endOtherSignIns({ write, nowS }: SignInsDeps, person: SignedIn, browser: Browser): Promise<number> {
  const { consoleUserId: id, userName: name, email } = person
  return write(async (tx) => {
    const count = await removeOtherSignIns(tx, id, person.signInId)
    if (count === 0) return 0
    await recordEnd(tx, person, nowS(), count)
    await notify(tx, { id, name, email }, 'signed-out', { ...browser, ...person, atS: nowS() })
    return count
  })
}

async function recordEnd(tx: Db, { consoleUserId, ownAccountId }: SignedIn, atS: number, count: number): Promise<void> {
  const event = { accountId: ownAccountId, by: { consoleUserId }, kind: 'sign-in:ended', subjects: [consoleUserId] } as const
  await recordAuditEvent(tx, { ...event, atS, details: { count } })
}

/**
 * Lets an administrator look into another account, with an owner's permissions. The audit log of that account says so.
 * @throws Failure `not-found`; `forbidden` for all others
 */
export async function lookAtAccount({ write, nowS }: SignInsDeps, person: SignedIn, accountId: string): Promise<void> {
  const { consoleUserId, signInId, ownAccountId, isAdministrator } = person
  if (!isAdministrator && accountId !== ownAccountId)
    throw new Failure('forbidden', 'Only an administrator of this installation may look into other accounts.')
  await write(async (tx) => {
    if (!(await setLookedAtAccount(tx, signInId, accountId))) throw new Failure('not-found', 'There is no such account.')
    if (accountId === ownAccountId) return
    const event = { accountId, by: { consoleUserId }, kind: 'account:looked-at', subjects: [consoleUserId] } as const
    await recordAuditEvent(tx, { ...event, atS: nowS() })
  })
}
