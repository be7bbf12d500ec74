import { requireRecentSignIn } from '../accounts/recent-sign-in.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { ConsoleUserRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import type { SignedIn } from './authenticate.ts'
import { type Doer, notify } from './notice.ts'
import { removePasskeysOfUser } from './passkey-store.ts'
import type { Browser } from './sign-in.ts'
import { LINK_LIFE_S, makeLink, type SignInLink } from './sign-in-link.ts'
import { removeLinkOfUser, removeSignInsOfUser } from './sign-in-store.ts'
import { addUser, assertEmail, EMAIL_CHANGED, freeName, type NewUser, type Role } from './user.ts'
import { findFirstAdministrator, findUser, hasOwner, listUsers, removeUser, updateUser } from './user-store.ts'

// The people of an account, managed by its owners; an administrator manages those of the account that is looked at.

type ManageDeps = { db: Db; write: Write; nowS: () => number }

/** Who manages, and in which account. */
type Manager = Pick<SignedIn, 'consoleUserId' | 'userName' | 'accountId' | 'isAdministrator' | 'signedInAtS'>

export async function findUsers({ db }: Pick<ManageDeps, 'db'>, accountId: string) {
  return listUsers(db, accountId)
}

/**
 * Adds a person to the account.
 * @returns the link with which the person signs in first
 * @throws Failure `invalid`, `forbidden`, `sign-in-again`, or `conflict` when the name is taken
 */
export async function inviteUser(
  { write, nowS }: ManageDeps,
  manager: Manager,
  { name, email, role, isAdministrator }: Pick<NewUser, 'name' | 'email' | 'role' | 'isAdministrator'>,
): Promise<SignInLink & { id: string }> {
  if (isAdministrator) assertAdministrator(manager)
  const by = { consoleUserId: manager.consoleUserId }
  const createdAtS = nowS()
  requireRecentSignIn(manager, createdAtS)
  return write(async (tx) => {
    const user = { accountId: manager.accountId, name, email, role: roleOf(role, isAdministrator), isAdministrator }
    const id = await addUser(tx, { ...user, by, createdAtS })
    return { id, ...(await makeLink(tx, { user: await getManaged(tx, manager, id), by, lifeS: LINK_LIFE_S, nowS: createdAtS })) }
  })
}

type UserChange = { name?: string; email?: string | null; role?: Role; isAdministrator?: boolean; disabled?: boolean }

/**
 * Changes a person. Applies from the person's next request on; who is disabled is signed out. Both that and another e-mail address are
 * notified to the address so far.
 * @throws Failure `not-found`, `invalid`, `forbidden`, `conflict`; `sign-in-again` for an e-mail address
 */
export async function changeUser(
  { write, nowS }: ManageDeps,
  manager: Manager,
  { id, ...change }: UserChange & { id: string },
  browser: Browser,
): Promise<void> {
  const { name, email, role, isAdministrator, disabled } = change
  if (Object.values(change).every((value) => value === undefined)) return
  if (isAdministrator !== undefined) assertAdministrator(manager)
  const isOwnAccess = role !== undefined || isAdministrator !== undefined || disabled !== undefined
  if (id === manager.consoleUserId && isOwnAccess)
    throw new Failure('conflict', 'You cannot change your own access. Ask another owner or an administrator.')
  const atS = nowS()
  if (email !== undefined) requireRecentSignIn(manager, atS)
  assertEmail(email)
  await write(async (tx) => {
    const user = await getManaged(tx, manager, id)
    const doer = { ...browser, ...manager, atS }
    const isAdmin = isAdministrator ?? user.isAdministrator === 1
    await updateUser(tx, id, {
      ...(name === undefined ? {} : await freeName(tx, name, id)),
      ...{ role: roleOf(role ?? user.role, isAdmin), isAdministrator: Number(isAdmin) },
      ...(email === undefined ? {} : { email }),
      ...(disabled === undefined ? {} : { disabled: Number(disabled) }),
    })
    await assertSomeoneRemains(tx, user)
    if (email !== undefined && email !== user.email) await notify(tx, user, 'email-changed', doer)
    if (disabled) await endAccess(tx, user, doer)
    const { email: _, ...others } = change
    const details = { ...others, ...(email !== undefined && EMAIL_CHANGED) }
    await recordAuditEvent(tx, { ...eventOf(manager, id, atS), kind: 'user:changed', details })
  })
}

/** @throws Failure `not-found`, `forbidden`, `conflict` */
export async function deleteUser({ write, nowS }: ManageDeps, manager: Manager, id: string, browser: Browser): Promise<void> {
  if (id === manager.consoleUserId)
    throw new Failure('conflict', 'You cannot delete yourself. Ask another owner or an administrator.')
  await write(async (tx) => {
    const user = await getManaged(tx, manager, id)
    await endAccess(tx, user, { ...browser, ...manager, atS: nowS() })
    await removePasskeysOfUser(tx, id)
    await removeUser(tx, id)
    await assertSomeoneRemains(tx, user)
    await recordAuditEvent(tx, { ...eventOf(manager, id, nowS()), kind: 'user:deleted', details: { name: user.name } })
  })
}

/** A new link for a person of the account, for a lost one or a lost password. @throws Failure `not-found`, `forbidden`, `sign-in-again` */
export async function makeUserLink({ write, nowS }: ManageDeps, manager: Manager, id: string): Promise<SignInLink> {
  requireRecentSignIn(manager, nowS())
  const by = { consoleUserId: manager.consoleUserId }
  return write(async (tx) => makeLink(tx, { user: await getManaged(tx, manager, id), by, lifeS: LINK_LIFE_S, nowS: nowS() }))
}

/**
 * Called after a change, in its transaction: two owners who remove each other at the same time must not leave an account without one.
 * @param before the person as it was
 * @throws Failure `conflict` when it was the last owner of its account, or the last administrator
 */
async function assertSomeoneRemains(tx: Db, before: ConsoleUserRow): Promise<void> {
  if (before.disabled) return
  if (before.isAdministrator && !(await findFirstAdministrator(tx)))
    throw new Failure('conflict', 'This is the last administrator of the installation. Make another person one first.')
  if (before.role === 'owner' && !(await hasOwner(tx, before.accountId)))
    throw new Failure('conflict', 'This is the last owner of the account. Make another person an owner first.')
}

async function endAccess(tx: Db, user: ConsoleUserRow, doer: Doer): Promise<void> {
  await removeSignInsOfUser(tx, user.id)
  await removeLinkOfUser(tx, user.id)
  if (!user.disabled) await notify(tx, user, 'access-ended', doer)
}

/** @throws Failure `not-found` for one of another account; `forbidden` for an administrator, whose link or name would open everything */
async function getManaged(tx: Db, manager: Manager, id: string): Promise<ConsoleUserRow> {
  const user = await findUser(tx, id)
  if (user?.accountId !== manager.accountId) throw new Failure('not-found', 'There is no such person in this account.')
  if (user.isAdministrator) assertAdministrator(manager)
  return user
}

function assertAdministrator({ isAdministrator }: Manager): void {
  if (!isAdministrator) throw new Failure('forbidden', 'Only an administrator of this installation may do this.')
}

/** An administrator is an owner of its own account, too. */
function roleOf(role: Role, isAdministrator: boolean): Role {
  return isAdministrator ? 'owner' : role
}

function eventOf({ accountId, consoleUserId }: Manager, id: string, atS: number) {
  return { atS, accountId, by: { consoleUserId }, subjects: [id] }
}
