import type { Logger } from 'pino'
import type { SignedInUser } from '../accounts/permission.ts'
import { hashSecret, isSecret } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { SignInRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { Failure, logLevelFor } from '../errors.ts'
import { type CacheDeps, cachedRows } from '../signals/cached-rows.ts'
import { findSignIn, type SignInDetails, saveSignInSeen } from './sign-in-store.ts'
import { accountDisabled, ROLE_PERMISSIONS, type Role, userDisabled } from './user.ts'

/** The person who is signed in, with what the console shows of it. */
export type SignedIn = SignedInUser & {
  userName: string
  /** Where the person is notified; null: nowhere. */
  email: string | null
  role: Role
  method: SignInRow['method']
  hasPassword: boolean
  ownAccountId: string
  accountName: string
  expiresAtS: number
}

/**
 * Finds who is signed in by the token of a cookie. Cached while the rows are unchanged, so that a sign-in that was ended is refused at the next
 * request.
 * @throws Failure `unauthenticated` for every unknown, ended or malformed token alike; `forbidden` when the person or the account is disabled
 */
export type FindSignedIn = (token: string | undefined) => Promise<SignedIn>

/** A sign-in that is not used for so long has ended. */
export const IDLE_S = 7 * 24 * 3600
/** How late it is saved that a person was there. */
const SEEN_EVERY_S = 600

export function createFindSignedIn({ db, write, nowS, log, ...cache }: FindSignedInDeps): FindSignedIn {
  const find = cachedRows(cache, (token) => findSignIn(db, hashSecret(token)))
  const saving = new Set<string>()

  /** No request waits for it. */
  function saveSeen(id: string): void {
    if (saving.has(id)) return
    saving.add(id)
    write((tx) => saveSignInSeen(tx, id, nowS()))
      .catch((error) => log[logLevelFor(error, 'error')]({ err: error }, 'sign-in: saving when it was used failed'))
      .finally(() => saving.delete(id))
  }

  return async (token) => {
    const found = token !== undefined && isSecret(token) ? await find(token) : undefined
    const atS = nowS()
    const isOver = !found || found.expiresAtS <= atS || found.lastSeenAtS + IDLE_S <= atS
    if (isOver || (isElsewhere(found) && !found.isAdministrator))
      throw new Failure('unauthenticated', 'You are not signed in, or no longer. Sign in again.')
    if (found.userDisabled) throw userDisabled()
    if (found.accountDisabled && !found.isAdministrator) throw accountDisabled()
    if (found.lastSeenAtS + SEEN_EVERY_S <= atS) saveSeen(found.id)
    return toSignedIn(found)
  }
}

type FindSignedInDeps = CacheDeps & { db: Db; write: Write; nowS: () => number; log: Logger }

function toSignedIn(found: SignInDetails): SignedIn {
  const { id, consoleUserId, isAdministrator, role, mayUpload, mayImport, wrappedPasswordHash, ...row } = found
  return {
    signInId: id,
    signedInAtS: row.createdAtS,
    consoleUserId,
    role,
    isAdministrator: isAdministrator === 1,
    // Only an administrator looks into another account, and has an owner's permissions there.
    permissions: ROLE_PERMISSIONS[isElsewhere(found) ? 'owner' : role],
    mayUpload: mayUpload === 1,
    mayImport: mayImport === 1,
    deletesToTrash: true, // a click is not a program's call: it can be undone
    hasPassword: wrappedPasswordHash !== null,
    ...{
      userName: row.userName,
      email: row.email,
      method: row.method,
      ownAccountId: row.ownAccountId,
      expiresAtS: row.expiresAtS,
    },
    ...{ accountId: row.accountId, accountName: row.accountName, pageMax: row.pageMax },
    ...{ changeNumber: row.changeNumber, limitFactor: row.limitFactor },
  }
}

function isElsewhere({ accountId, ownAccountId }: SignInDetails): boolean {
  return accountId !== ownAccountId
}
