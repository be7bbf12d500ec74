import { listAccounts } from '../accounts/account-store.ts'
import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { hashSecret, newSecret } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { foldCase } from '../db/fold-case.ts'
import type { ConsoleUserRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { replaceLink } from './sign-in-store.ts'
import { addUser, FIRST_NAME, userDisabled } from './user.ts'
import { findFirstAdministrator, findUser, findUserByName } from './user-store.ts'

/** Of a first start, or one that is sent to its person. */
export const LINK_LIFE_S = 24 * 3600
/** Of one that is printed on a terminal, to be opened right there. */
const PRINTED_LINK_LIFE_S = 15 * 60

/** The token exists in the link alone; the database has its SHA-256. */
export type SignInLink = { userName: string; token: string; expiresAtS: number }

/**
 * Makes a link that signs a person in once, with or without a password. Earlier links of the person stop working.
 * @throws Failure `forbidden` when the person is disabled
 */
export async function makeLink(
  tx: Db,
  { user, by, lifeS, nowS }: { user: ConsoleUserRow; by: Actor; lifeS: number; nowS: number },
): Promise<SignInLink> {
  if (user.disabled) throw userDisabled()
  const token = newSecret()
  const expiresAtS = nowS + lifeS
  await replaceLink(tx, { hash: hashSecret(token), consoleUserId: user.id, createdAtS: nowS, expiresAtS })
  const event = { accountId: user.accountId, by, kind: 'user:link-made', subjects: [user.id] } as const
  await recordAuditEvent(tx, { ...event, atS: nowS, details: { expiresAtS } })
  return { userName: user.name, token, expiresAtS }
}

/** Adds the first person of an installation, in the transaction of a first start. @returns the link for it */
export async function addFirstUser(
  tx: Db,
  { accountId, by, lifeS, nowS }: { accountId: string; by: Actor; lifeS: number; nowS: number },
): Promise<SignInLink> {
  const isFirst = { name: FIRST_NAME, role: 'owner', isAdministrator: true } as const
  const id = await addUser(tx, { ...isFirst, accountId, by, createdAtS: nowS })
  return makeLink(tx, { user: await getUser(tx, id), by, lifeS, nowS })
}

/**
 * For an operator on the server: a link for a lost link or a lost password.
 * @param name undefined: the oldest administrator, who is added when there is none yet
 * @throws Failure `not-found`, `forbidden`
 */
export async function makeLinkOnServer(
  { write, nowS: clock }: { write: Write; nowS: () => number },
  name: string | undefined,
): Promise<SignInLink> {
  const nowS = clock()
  const options = { by: 'command-line', lifeS: PRINTED_LINK_LIFE_S, nowS } as const
  return write(async (tx) => {
    const user = name === undefined ? await findFirstAdministrator(tx) : await findUserByName(tx, foldCase(name))
    if (user) return makeLink(tx, { ...options, user })
    if (name !== undefined) throw new Failure('not-found', `No user is named "${name}". See "reelgate console users".`)
    const accounts = await listAccounts(tx)
    const oldest = accounts.find(({ mayUpload }) => mayUpload) ?? accounts[0] // the demo's account may not upload
    if (!oldest) throw new Failure('not-found', 'There is no account yet. Create one with "reelgate account create NAME".')
    return addFirstUser(tx, { ...options, accountId: oldest.id })
  })
}

/** @throws Error when it was not just added */
async function getUser(tx: Db, id: string): Promise<ConsoleUserRow> {
  const user = await findUser(tx, id)
  if (!user) throw new Error('a user that was added is missing')
  return user
}

/** The page of the console that opens a link; `console` is its URL. The token is in the fragment: browsers send it to no server and no other page. */
export function linkUrl(console: string, token: string): string {
  return `${console}link#${token}`
}

/** Where people open the console. On this machine by name, because a passkey belongs to a name and not to an address. */
export function consoleUrl(publicUrl: string): string {
  const url = new URL(publicUrl)
  if (/^(127(\.\d+){3}|\[::1\])$/.test(url.hostname)) url.hostname = 'localhost'
  return `${url.href.replace(/(?<!\/)\/+$/, '')}/console/`
}
