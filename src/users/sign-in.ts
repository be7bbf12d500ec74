import { isAccountDisabled } from '../accounts/account-store.ts'
import { requireRecentSignIn } from '../accounts/recent-sign-in.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import { hashSecret, isSecret, newId, newSecret } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { foldCase } from '../db/fold-case.ts'
import type { ConsoleUserRow, SignInRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { DAY_S } from '../time.ts'
import type { SignedIn } from './authenticate.ts'
import { notify } from './notice.ts'
import { listPasskeys, removePasskeysOfUser } from './passkey-store.ts'
import { checkNewPassword, type Passwords } from './password.ts'
import type { SignInLimit } from './sign-in-limit.ts'
import {
  insertSignIn,
  removeOldLinks,
  removeOldSignIns,
  removeSignInByToken,
  removeSignInsOfUser,
  spendLink,
} from './sign-in-store.ts'
import { accountDisabled, passwordHashPurpose, userDisabled } from './user.ts'
import { findUser, findUserByName, setPasswordHash } from './user-store.ts'

export type SignInDeps = {
  db: Db
  write: Write
  masterKey: MasterKey
  /** The playback clock, which never goes back: what has ended does not become valid again. */
  nowS: () => number
  passwords: Passwords
  /** Undefined: rate limits are off. */
  signInLimit: SignInLimit | undefined
}

/** Where a person signs in, and the token of the cookie that the browser has already. */
export type Browser = { address: string; userAgent: string; oldToken: string | undefined }

/** The token exists in the browser alone; the database has its SHA-256. */
export type NewSignIn = { token: string; expiresAtS: number }

const LIFE_S = 30 * DAY_S
/** Until the person has set a password or a passkey. */
const LINK_LIFE_S = DAY_S
const MAX_USER_AGENT_LENGTH = 300

/**
 * Signs a person in. An unknown name costs the same work as a wrong password, and gets the same answer.
 * @throws Failure `unauthenticated`; `forbidden` for a disabled person or account, after the right password; `limited`
 */
export async function signInWithPassword(
  deps: SignInDeps,
  { name, password }: { name: string; password: string },
  browser: Browser,
): Promise<NewSignIn> {
  const foldedName = foldCase(name.trim())
  countAttempt(deps, foldedName, browser)
  const user = await findUserByName(deps.db, foldedName)
  if (!(await isRightPassword(deps, user, password)) || !user)
    throw new Failure('unauthenticated', 'The name or the password is wrong.')
  deps.signInLimit?.refund(browser.address, foldedName)
  return deps.write((tx) => openSignIn(tx, { user, method: 'password', nowS: deps.nowS() }, browser))
}

/** @throws Failure `limited`, the same whatever the name is */
function countAttempt({ signInLimit }: SignInDeps, foldedName: string, { address }: Browser): void {
  const retryAfterS = signInLimit?.take(address, foldedName)
  if (retryAfterS === undefined) return
  throw new Failure('limited', `Too many wrong passwords from your address. Wait ${retryAfterS} seconds, or use a passkey.`, {
    retryAfterS,
  })
}

async function isRightPassword({ masterKey, passwords }: SignInDeps, user: ConsoleUserRow | undefined, password: string) {
  const wrapped = user?.wrappedPasswordHash
  const phc = user && wrapped ? unwrap(masterKey, passwordHashPurpose(user.id), wrapped).toString() : undefined
  return passwords.isRight(password, phc)
}

/**
 * Signs a person in with a link, which is spent. Valid for a day, unless the person sets a password or a passkey.
 * @param current who is signed in in this browser, and should not be signed out without being asked
 * @throws Failure `unauthenticated` when it was used, has expired or never existed; `conflict` when it is valid and `current` is given
 */
export async function signInWithLink(
  { write, nowS }: SignInDeps,
  token: string,
  browser: Browser,
  current?: Pick<SignedIn, 'userName'>,
): Promise<NewSignIn> {
  return write(async (tx) => {
    const userId = isSecret(token) ? await spendLink(tx, hashSecret(token), nowS()) : undefined
    const user = userId === undefined ? undefined : await findUser(tx, userId)
    // Thrown in the transaction, so the link stays valid.
    if (user && current)
      throw new Failure(
        'conflict',
        `You are signed in as ${current.userName} in this browser. This link signs in ${user.name} instead.`,
      )
    if (!user)
      throw new Failure(
        'unauthenticated',
        'This link was used or has expired. Ask for a new one; on the server, "reelgate console link" prints one.',
      )
    return openSignIn(tx, { user, method: 'link', nowS: nowS() }, browser)
  })
}

type Opening = { user: ConsoleUserRow; accountId?: string; method: SignInRow['method']; nowS: number }

/** Opens a sign-in, and records it. @throws Failure `forbidden` when the person is disabled */
export async function openSignIn(tx: Db, opening: Opening, browser: Browser): Promise<NewSignIn> {
  const { user, method, nowS: atS } = opening
  const signIn = await addSignIn(tx, opening, browser)
  const event = { atS, accountId: user.accountId, by: { consoleUserId: user.id }, kind: 'user:signed-in' } as const
  await recordAuditEvent(tx, { ...event, subjects: [user.id], details: { method, address: browser.address } })
  return signIn
}

/** The same without a record, for a sign-in that takes the place of one. */
export async function addSignIn(
  tx: Db,
  { user, accountId, method, nowS }: Opening,
  { address, userAgent, oldToken }: Browser,
): Promise<NewSignIn> {
  if (user.disabled) throw userDisabled()
  if (!user.isAdministrator && (await isAccountDisabled(tx, user.accountId))) throw accountDisabled()
  const old = oldToken === undefined ? undefined : await removeSignInByToken(tx, hashSecret(oldToken))
  const isAgain = old?.consoleUserId === user.id && user.isAdministrator === 1
  const token = newSecret()
  const expiresAtS = nowS + (method === 'link' ? LINK_LIFE_S : LIFE_S)
  await insertSignIn(tx, {
    ...{ id: newId(), tokenHash: hashSecret(token), consoleUserId: user.id, method },
    accountId: accountId ?? (isAgain ? old.accountId : user.accountId), // who signs in again goes on where they were
    ...{ address, userAgent: userAgent.slice(0, MAX_USER_AGENT_LENGTH) },
    ...{ createdAtS: nowS, lastSeenAtS: nowS, expiresAtS },
  })
  return { token, expiresAtS }
}

/** Ends the sign-in of a browser. False: it was not signed in. */
export async function signOut({ write }: Pick<SignInDeps, 'write'>, token: string): Promise<boolean> {
  return (await write((tx) => removeSignInByToken(tx, hashSecret(token)))) !== undefined
}

const KEPT_S = 30 * DAY_S
const BATCH_SIZE = 1_000

/** Removes links that have expired, and sign-ins a month after their end. */
export async function pruneSignIns({ write, nowS }: Pick<SignInDeps, 'write' | 'nowS'>): Promise<void> {
  await write((tx) => removeOldLinks(tx, nowS()))
  while ((await write((tx) => removeOldSignIns(tx, nowS() - KEPT_S, BATCH_SIZE))) > 0);
}

type PasswordChange = { current?: string; password: string; removesPasskeys?: boolean }

/**
 * Sets the password of the person who is signed in. All sign-ins of the person end; the returned one takes the place of this one.
 * @param change.current the password so far; without one, or after a link, the sign-in must be recent instead
 * @throws Failure `invalid`, `forbidden` when `current` is wrong, `sign-in-again`, `limited`
 */
export async function setPassword(
  deps: SignInDeps,
  signedIn: Pick<SignedIn, 'consoleUserId' | 'userName' | 'accountId' | 'method' | 'signedInAtS'>,
  { current, password, removesPasskeys = false }: PasswordChange,
  browser: Browser,
): Promise<NewSignIn> {
  const user = await findUser(deps.db, signedIn.consoleUserId)
  if (!user) throw new Failure('unauthenticated', 'You are not signed in.')
  if (user.wrappedPasswordHash && signedIn.method !== 'link') {
    countAttempt(deps, user.foldedName, browser)
    if (!(await isRightPassword(deps, user, current ?? '')))
      throw new Failure('forbidden', 'The current password is wrong. If it is lost, "reelgate console link" prints a link.')
    deps.signInLimit?.refund(browser.address, user.foldedName)
  } else requireRecentSignIn(signedIn, deps.nowS())
  checkNewPassword(password, user.name)
  const phc = await deps.passwords.hash(password)
  return deps.write(async (tx) => {
    await setPasswordHash(tx, user.id, wrap(deps.masterKey, passwordHashPurpose(user.id), Buffer.from(phc)))
    await removeSignInsOfUser(tx, user.id)
    const passkeys = removesPasskeys ? await listPasskeys(tx, user.id) : []
    if (passkeys.length > 0) await removePasskeysOfUser(tx, user.id)
    const by = { consoleUserId: user.id }
    const event = { accountId: user.accountId, by, kind: 'user:password-set', subjects: [user.id] } as const
    const removed = passkeys.map(({ name }) => name)
    await recordAuditEvent(tx, {
      ...event,
      atS: deps.nowS(),
      ...(removed.length > 0 && { details: { removedPasskeys: removed } }),
    })
    await notify(tx, user, 'password-set', { ...browser, ...signedIn, atS: deps.nowS() })
    return addSignIn(tx, { user, accountId: signedIn.accountId, method: 'password', nowS: deps.nowS() }, browser)
  })
}
