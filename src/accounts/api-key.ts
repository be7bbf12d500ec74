import { recordAuditEvent } from '../audit/audit-log.ts'
import { hashSecret, isSecret, newId, newSecret } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { type CacheDeps, cachedRows } from '../signals/cached-rows.ts'
import { findAccountId } from './account-id.ts'
import {
  findAccountOfKey,
  findKeyHolder,
  findLiveKey,
  insertApiKey,
  listApiKeys,
  parsePermissions,
  revokeApiKey,
  setExpiry,
} from './api-key-store.ts'
import type { ApiKeyHolder, Caller, Permission } from './permission.ts'
import { requireRecentSignIn } from './recent-sign-in.ts'

export type AccountDeps = {
  db: Db
  write: Write
  /** The playback clock where a server is running: it never goes back, so an expired key stays expired. */
  nowS: () => number
}

/** Characters of a key that are shown in lists. */
const PREFIX_LENGTH = 6

/**
 * Finds the holder of an API key by its secret. Results are cached while the rows are unchanged, so a revoked key is rejected at the next request.
 * @throws Failure `unauthenticated` for every unknown, expired, revoked or malformed secret alike; `forbidden` when its account is disabled
 */
export type Authenticate = (secret: string) => Promise<ApiKeyHolder>

/** @param onKeyUsed called for each accepted key */
export function createAuthenticate(
  { db, nowS, ...cache }: Pick<AccountDeps, 'db' | 'nowS'> & CacheDeps,
  onKeyUsed: (apiKeyId: string) => void = () => undefined,
): Authenticate {
  const findHolder = cachedRows(cache, (secret) => findKeyHolder(db, hashSecret(secret)))
  return async (secret) => {
    const found = isSecret(secret) ? await findHolder(secret) : undefined
    if (!found || (found.expiresAtS !== null && found.expiresAtS <= nowS()))
      throw new Failure('unauthenticated', 'The API key is unknown, has expired or was revoked. Use a live key of this account.')
    if (found.disabled) throw new Failure('forbidden', 'This account is disabled. Ask the server’s administrator to enable it.')
    onKeyUsed(found.holder.apiKeyId)
    return found.holder
  }
}

/** @throws Failure `forbidden` when the caller lacks the permission */
export function requirePermission(caller: Caller, permission: Permission): void {
  if (caller.permissions.includes(permission)) return
  if ('apiKeyId' in caller)
    throw new Failure('forbidden', `This API key lacks the permission "${permission}". Use a key that has it.`)
  const role = caller.permissions.includes('uploader')
    ? 'uploader, which adds videos and edits those that it has added'
    : 'viewer, which only reads'
  throw new Failure('forbidden', `Your role in this account is ${role}. Ask an owner of the account to do this.`)
}

/** `lifeS` undefined: it is valid until it is revoked. */
type NewKey = { name: string; permissions: readonly Permission[]; lifeS?: number }

/** For whom a key is managed: a caller in its own account, or the command line in any. */
type KeyManager = Caller | 'command-line'

/**
 * @returns the key's secret, the only copy
 * @throws Failure as `findAccountId`
 */
export async function createApiKey({ write, nowS }: AccountDeps, idOrName: string, key: NewKey) {
  return write(async (tx) =>
    addRecordedKey(tx, { ...key, accountId: await findAccountId(tx, idOrName), by: 'command-line', atS: nowS() }),
  )
}

/** What `createApiKey` and `rotateKey` return: the secret is the only copy. */
export type CreatedKey = Awaited<ReturnType<typeof addApiKey>>

/**
 * Creates a key in the account of a caller.
 * @throws Failure `forbidden` when the caller lacks one of its permissions, or is a key that ends before it; `sign-in-again`
 */
export async function createOwnApiKey({ write, nowS }: AccountDeps, caller: Caller, key: NewKey): Promise<CreatedKey> {
  requireRecentSignIn(caller, nowS())
  assertMayGrant(caller, key.permissions)
  return write(async (tx) => {
    const atS = nowS()
    const longestS = (await findEnd(tx, caller, atS)) - atS
    if ((key.lifeS ?? Number.POSITIVE_INFINITY) > longestS)
      throw new Failure(
        'forbidden',
        `This key ends in ${Math.floor(longestS)} s. Send at most that as ttl, or use a key that lasts longer.`,
      )
    return addRecordedKey(tx, { ...key, accountId: caller.accountId, by: caller, atS })
  })
}

/** When the key with which something is managed ends: it makes none that lasts longer than itself. */
async function findEnd(tx: Db, by: KeyManager, nowS: number): Promise<number> {
  if (by === 'command-line' || !('apiKeyId' in by)) return Number.POSITIVE_INFINITY
  return (await findLiveKey(tx, by.apiKeyId, nowS))?.expiresAtS ?? Number.POSITIVE_INFINITY
}

async function addRecordedKey(
  tx: Db,
  { accountId, by, atS, ...key }: NewKey & { accountId: string; by: KeyManager; atS: number },
): Promise<CreatedKey> {
  const created = await addApiKey(tx, accountId, key, atS)
  const details = { name: key.name, permissions: key.permissions, expiresAtS: created.expiresAtS }
  await recordAuditEvent(tx, { atS, accountId, by, kind: 'key:created', subjects: [created.keyId], details })
  return created
}

/** A key must not make one that may do more than itself. @throws Failure `forbidden` */
function assertMayGrant(caller: Caller, permissions: readonly Permission[]): void {
  const missing = permissions.filter((permission) => !caller.permissions.includes(permission))
  if (missing.length > 0)
    throw new Failure('forbidden', `This key lacks ${missing.join(', ')} itself, so it cannot give that to another one.`)
}

/** Creates a key within a larger transaction. @returns the secret as `apiKey` */
export async function addApiKey(tx: Db, accountId: string, { name, permissions, lifeS }: NewKey, nowS: number) {
  const secret = newSecret()
  const keyId = newId()
  const expiresAtS = lifeS === undefined ? null : nowS + lifeS
  const prefix = secret.slice(0, PREFIX_LENGTH)
  const row = { id: keyId, accountId, hash: hashSecret(secret), prefix, name, createdAtS: nowS, expiresAtS }
  await insertApiKey(tx, { ...row, permissions: JSON.stringify(permissions) })
  return { keyId, apiKey: secret, expiresAtS }
}

/**
 * Replaces a key by a new one with the same name, permissions and lifetime, which ends with the key that asks for it if that ends sooner.
 * The old one stays valid for `overlapS`, then it expires.
 * @throws Failure `not-found` when there is no such key, or it is revoked or expired; `forbidden` when it may do more than the caller; `sign-in-again`
 */
export async function rotateKey(
  { write, nowS }: AccountDeps,
  oldKeyId: string,
  overlapS: number,
  by: KeyManager = 'command-line',
) {
  requireRecentSignIn(by, nowS())
  return write(async (tx) => {
    const atS = nowS()
    const old = await findLiveKey(tx, oldKeyId, atS)
    if (!old || !mayManage(by, old.accountId)) throw keyNotFound(oldKeyId)
    const { accountId, name, createdAtS, expiresAtS } = old
    const permissions = parsePermissions(old.permissions)
    if (by !== 'command-line') assertMayGrant(by, permissions)
    const endsAtS = Math.min(
      await findEnd(tx, by, atS),
      expiresAtS === null ? Number.POSITIVE_INFINITY : atS + expiresAtS - createdAtS,
    )
    const lifeS = endsAtS === Number.POSITIVE_INFINITY ? undefined : endsAtS - atS
    const created = await addApiKey(tx, accountId, { name, permissions, lifeS }, atS)
    const oldExpiresAtS = Math.min(expiresAtS ?? Number.MAX_SAFE_INTEGER, atS + overlapS)
    await setExpiry(tx, oldKeyId, oldExpiresAtS)
    const details = { newKeyId: created.keyId, oldExpiresAtS }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'key:rotated', subjects: [oldKeyId], details })
    return { ...created, oldExpiresAtS }
  })
}

function mayManage(by: KeyManager, accountId: string | undefined): boolean {
  return by === 'command-line' || by.accountId === accountId
}

/** The keys of the account with this id, those that were revoked, too. */
export async function findOwnApiKeys({ db }: Pick<AccountDeps, 'db'>, accountId: string) {
  return listApiKeys(db, accountId)
}

/** The keys of an account. @throws Failure as `findAccountId` */
export async function findApiKeys({ db }: AccountDeps, idOrName: string) {
  return listApiKeys(db, await findAccountId(db, idOrName))
}

/**
 * A valid key of the account that may issue OTPs, for commands that act for the account on this machine.
 * @throws Failure `forbidden` when the account has none: an OTP is valid no longer than the key that issued it
 */
export async function getOtpKey({ db, nowS }: Pick<AccountDeps, 'db' | 'nowS'>, accountId: string): Promise<string> {
  const endsAtS = ({ expiresAtS }: { expiresAtS: number | null }) => expiresAtS ?? Number.MAX_SAFE_INTEGER
  const keys = (await listApiKeys(db, accountId)).filter(
    (key) => key.revokedAtS === null && endsAtS(key) > nowS() && key.permissions.includes('otpCreator'),
  )
  const [key] = keys.toSorted((a, b) => endsAtS(b) - endsAtS(a)) // the one that expires last
  if (!key) {
    const remedy = `Create one with "reelgate key create ${accountId}".`
    throw new Failure('forbidden', `The account has no live API key that may issue OTPs. ${remedy}`)
  }
  return key.id
}

/**
 * Durable when it resolves: the next request with the key, on any connection to any server, is rejected.
 * @throws Failure `not-found` when there is no such key, or it was already revoked
 */
export async function revokeKey({ write, nowS }: AccountDeps, keyId: string, by: KeyManager = 'command-line'): Promise<void> {
  await write(async (tx) => {
    if (!mayManage(by, await findAccountOfKey(tx, keyId))) throw keyNotFound(keyId)
    const accountId = await revokeApiKey(tx, keyId, nowS())
    if (accountId === undefined) throw keyNotFound(keyId)
    await recordAuditEvent(tx, { atS: nowS(), accountId, by, kind: 'key:revoked', subjects: [keyId] })
  })
}

function keyNotFound(keyId: string): Failure {
  return new Failure(
    'not-found',
    `There is no live API key ${keyId}. GET /api/keys and "reelgate key list" show those that there are.`,
  )
}
