import { PERMISSIONS, type Permission } from '../accounts/permission.ts'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { foldCase } from '../db/fold-case.ts'
import type { ConsoleUserRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { isMailAddress, MAX_ADDRESS_LENGTH } from '../mail-address.ts'
import { openConfusables } from './confusable-names.ts'
import { hasUserWithCredential, insertUser, isNameTaken, listAllUsers, listNames } from './user-store.ts'

const ROLES = ['owner', 'uploader', 'viewer'] as const
export type Role = (typeof ROLES)[number]

/**
 * An owner may do everything in the account; an uploader upload, import, and edit the videos that they added; a viewer read its videos,
 * statistics and alerts.
 */
export const ROLE_PERMISSIONS: Readonly<Record<Role, readonly Permission[]>> = {
  owner: PERMISSIONS,
  uploader: ['viewer', 'uploader'],
  viewer: ['viewer'],
}

const MAX_NAME_LENGTH = 100

/** Of the first person, until they have chosen one. */
export const FIRST_NAME = 'owner'

/** For which the master key wraps the hash of a person's password. */
export function passwordHashPurpose(consoleUserId: string): string {
  return `reelgate console-password 1 ${consoleUserId}`
}

export type NewUser = {
  accountId: string
  name: string
  /** Where the person is notified. */
  email?: string | null
  role: Role
  isAdministrator: boolean
  by: Actor
  createdAtS: number
}

/**
 * Adds a person, who signs in with a link first.
 * @returns the id
 * @throws Failure `invalid`, or `conflict` when the name is taken
 */
export async function addUser(tx: Db, { by, ...user }: NewUser): Promise<string> {
  const id = newId()
  const { accountId, email = null, role, isAdministrator, createdAtS } = user
  assertEmail(email)
  const { name, foldedName } = await freeName(tx, user.name)
  const row = { id, accountId, name, foldedName, email, role, isAdministrator: Number(isAdministrator), createdAtS }
  await insertUser(tx, { ...row, wrappedPasswordHash: null })
  const details = { name, role, isAdministrator }
  await recordAuditEvent(tx, { atS: createdAtS, accountId, by, kind: 'user:created', subjects: [id], details })
  return id
}

/**
 * A name that another person has not, and that is not taken for another person's: the audit log and the list of people show names.
 * @param ownId of the person who may keep it
 * @throws Failure `invalid`, or `conflict` when it is taken
 */
export async function freeName(tx: Db, text: string, ownId?: string): Promise<Pick<ConsoleUserRow, 'name' | 'foldedName'>> {
  const name = text.normalize('NFC').trim()
  if (name === '' || name.length > MAX_NAME_LENGTH || /\p{Cc}/u.test(name))
    throw new Failure('invalid', `A name has 1 to ${MAX_NAME_LENGTH} characters, such as an e-mail address.`)
  const foldedName = foldCase(name)
  if (await isNameTaken(tx, foldedName, ownId))
    throw new Failure(
      'conflict',
      'This name is taken, perhaps in another account. Choose another one, such as an e-mail address.',
    )
  const areConfusable = await openConfusables()
  if ((await listNames(tx, ownId)).some((other) => areConfusable(name, other)))
    throw new Failure('conflict', 'This name looks like that of another person, perhaps in another account. Choose another one.')
  return { name, foldedName }
}

/** For the audit log, which is kept when the person is deleted. */
export const EMAIL_CHANGED = { changed: ['email'] } as const

/** @throws Failure `invalid` */
export function assertEmail(email: string | null | undefined): void {
  if (typeof email !== 'string' || isMailAddress(email)) return
  throw new Failure(
    'invalid',
    `An e-mail address is one plain address, such as ann@example.org, of at most ${MAX_ADDRESS_LENGTH} characters.`,
  )
}

/** The users of all accounts, for the operator of the server. */
export async function findAllUsers({ db }: { db: Db }) {
  return listAllUsers(db)
}

/** Whether a person can sign in without a link. */
export async function canSignIn({ db }: { db: Db }): Promise<boolean> {
  return hasUserWithCredential(db)
}

export function userDisabled(): Failure {
  return new Failure('forbidden', 'Your access to the console is switched off. Ask an owner of the account.')
}

export function accountDisabled(): Failure {
  return new Failure('forbidden', 'This account is disabled. Ask the server’s administrator to enable it.')
}
