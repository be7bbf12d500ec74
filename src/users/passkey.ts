import { requireRecentSignIn } from '../accounts/recent-sign-in.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { PasskeyRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import type { SignedIn } from './authenticate.ts'
import type { Challenges } from './challenges.ts'
import { notify } from './notice.ts'
import { findPasskey, insertPasskey, listPasskeys, removePasskey, savePasskeyUse } from './passkey-store.ts'
import { addSignIn, type Browser, type NewSignIn, openSignIn, type SignInDeps } from './sign-in.ts'
import { findUser } from './user-store.ts'
import {
  type Assertion,
  type NewCredential,
  type RelyingParty,
  readChallenge,
  verifyAssertion,
  verifyNewCredential,
} from './webauthn.ts'

const MAX_PASSKEYS = 20

export type PasskeyDeps = SignInDeps & { challenges: Challenges }

/**
 * Begins to add a passkey.
 * @returns the challenge for the browser, and the passkeys that the person has already
 * @throws Failure `sign-in-again`
 */
export async function beginPasskey({ db, nowS, challenges }: PasskeyDeps, person: PasskeyOwner) {
  requireRecentSignIn(person, nowS())
  return { challenge: await challenges.make(person.consoleUserId), known: await listPasskeys(db, person.consoleUserId) }
}

/** The passkeys of a person, the oldest first. */
export async function findPasskeys({ db }: { db: Db }, consoleUserId: string): Promise<PasskeyRow[]> {
  return listPasskeys(db, consoleUserId)
}

type PasskeyOwner = Pick<SignedIn, 'consoleUserId' | 'userName' | 'accountId' | 'ownAccountId' | 'method' | 'signedInAtS'>

type PasskeyToAdd = { credential: NewCredential; transports: readonly string[]; name: string; rp: RelyingParty }

/**
 * Adds a passkey of the person who is signed in.
 * @returns a sign-in that takes the place of one by a link, which lasts for a day only; undefined for any other
 * @throws Failure `invalid`, `sign-in-again`, or `conflict` when there are too many or it is registered already
 */
export async function addPasskey(
  deps: PasskeyDeps,
  person: PasskeyOwner,
  { credential, transports, name, rp }: PasskeyToAdd,
  browser: Browser,
): Promise<NewSignIn | undefined> {
  const { consoleUserId, accountId } = person
  requireRecentSignIn(person, deps.nowS())
  if (!(await deps.challenges.spend(readChallenge(credential.clientDataJSON), consoleUserId))) throw tooLate()
  const { publicKey, signCount } = verifyNewCredential(credential, rp)
  const nowS = deps.nowS()
  return deps.write(async (tx) => {
    const user = await findUser(tx, consoleUserId)
    if (!user) throw new Failure('unauthenticated', 'You are not signed in.')
    if ((await listPasskeys(tx, consoleUserId)).length >= MAX_PASSKEYS)
      throw new Failure('conflict', `You have ${MAX_PASSKEYS} passkeys. Delete one that you do not need.`)
    const row = { id: credential.id, consoleUserId, name, publicKey, signCount, transports: JSON.stringify(transports) }
    if (!(await insertPasskey(tx, { ...row, createdAtS: nowS, lastUsedAtS: null })))
      throw new Failure('conflict', 'This passkey is registered already.')
    const event = {
      accountId: person.ownAccountId,
      by: { consoleUserId },
      kind: 'passkey:added',
      subjects: [consoleUserId],
    } as const
    await recordAuditEvent(tx, { ...event, atS: nowS, details: { name } })
    await notify(tx, user, 'passkey-added', { ...browser, ...person, atS: nowS })
    if (person.method === 'link') return addSignIn(tx, { user, accountId, method: 'passkey', nowS }, browser)
  })
}

/**
 * Signs in the person to whom a passkey belongs.
 * @throws Failure `unauthenticated` for an unknown passkey; `invalid`, `forbidden`
 */
export async function signInWithPasskey(
  deps: PasskeyDeps,
  { id, assertion, rp }: { id: string; assertion: Assertion; rp: RelyingParty },
  browser: Browser,
): Promise<NewSignIn> {
  if (!(await deps.challenges.spend(readChallenge(assertion.clientDataJSON)))) throw tooLate()
  const passkey = await findPasskey(deps.db, id)
  if (!passkey)
    throw new Failure('unauthenticated', 'This passkey is not known here. Sign in with the password, or use another passkey.')
  const signCount = verifyAssertion(assertion, passkey.publicKey, rp)
  const nowS = deps.nowS()
  return deps.write(async (tx) => {
    const user = await findUser(tx, passkey.consoleUserId)
    const isNew = await savePasskeyUse(tx, { id, signCount, lastUsedAtS: nowS })
    if (!user || !isNew)
      throw new Failure('unauthenticated', 'This passkey was copied, or was used twice at the same time. Try again.')
    return openSignIn(tx, { user, method: 'passkey', nowS }, browser)
  })
}

/** @throws Failure `not-found`; `conflict` for the last way in */
export async function deletePasskey(
  { write, nowS }: Pick<PasskeyDeps, 'write' | 'nowS'>,
  { consoleUserId, ownAccountId }: Pick<SignedIn, 'consoleUserId' | 'ownAccountId'>,
  id: string,
): Promise<void> {
  await write(async (tx) => {
    const user = await findUser(tx, consoleUserId)
    const passkeys = await listPasskeys(tx, consoleUserId)
    const found = passkeys.find((passkey) => passkey.id === id)
    if (!user || !found) throw new Failure('not-found', 'You have no such passkey.')
    if (passkeys.length === 1 && !user.wrappedPasswordHash)
      throw new Failure('conflict', 'This is your only way to sign in. Set a password or add another passkey first.')
    await removePasskey(tx, consoleUserId, id)
    const event = { accountId: ownAccountId, by: { consoleUserId }, kind: 'passkey:removed', subjects: [consoleUserId] } as const
    await recordAuditEvent(tx, { ...event, atS: nowS(), details: { name: found.name } })
  })
}

function tooLate(): Failure {
  return new Failure('invalid', 'That took too long, or the page was reloaded meanwhile. Try again.')
}
