import { remembered } from '../db/remembered.ts'
import type { Db } from '../db/sqlite.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { hashSecret, isSecret, newId, newSecret } from '../protect/secret.ts'
import { findKeyHolder, insertApiKey, listApiKeys, revokeApiKey } from './api-key-store.ts'

/** What a key may do: every read, issuing OTPs, uploads and imports, all management (wire-contract.md, section 1). */
export const PERMISSIONS = ['viewer', 'otpCreator', 'uploader', 'editor'] as const
export type Permission = (typeof PERMISSIONS)[number]

export type AccountDeps = { db: Db; write: Write; nowS: () => number }

/** Who a request speaks for. */
export type KeyHolder = {
  accountId: string
  apiKeyId: string
  permissions: readonly Permission[]
  mayUpload: boolean
  mayImport: boolean
  pageMax: number
  /** Stands as long as nothing that a list of the account's videos could show has changed. */
  changeNumber: number
  /** How many times the limits it may ask for. */
  limitFactor: number
}

/** Characters of a key that are shown in lists. */
export const PREFIX_LENGTH = 6

/**
 * Finds whom an API secret speaks for. What it finds is remembered until the next commit, so a revoked key fails at the next request.
 * @throws Failure `unauthenticated` for every unknown, revoked or malformed secret alike
 */
export type Authenticate = (secret: string) => Promise<KeyHolder>

export function createAuthenticate({ db, write }: Pick<AccountDeps, 'db' | 'write'>): Authenticate {
  const findHolder = remembered(write, (secret) => findKeyHolder(db, hashSecret(secret)))
  return async (secret) => {
    const holder = isSecret(secret) ? await findHolder(secret) : undefined
    if (!holder) throw new Failure('unauthenticated', 'The API key is unknown or was revoked. Use a key of this account.')
    return holder
  }
}

/** @throws Failure `forbidden` when the key lacks the permission */
export function requirePermission(holder: KeyHolder, permission: Permission): void {
  if (!holder.permissions.includes(permission)) {
    throw new Failure('forbidden', `This API key lacks the permission "${permission}". Use a key that has it.`)
  }
}

/** @returns the key's text, the only copy */
export async function createApiKey(
  deps: AccountDeps,
  accountId: string,
  key: { name: string; permissions: readonly Permission[] },
) {
  const secret = newSecret()
  const id = newId()
  const made = await deps.write((tx) =>
    insertApiKey(tx, accountId, {
      id,
      hash: hashSecret(secret),
      prefix: secret.slice(0, PREFIX_LENGTH),
      name: key.name,
      permissions: JSON.stringify(key.permissions),
      createdAtS: deps.nowS(),
    }),
  )
  if (!made) throw new Failure('not-found', `There is no account ${accountId}. See "reelgate account list".`)
  return { keyId: id, apiKey: secret }
}

export async function findApiKeys({ db }: AccountDeps, accountId: string) {
  return listApiKeys(db, accountId)
}

/**
 * A live key of the account that may issue OTPs, for what acts on the account's behalf on this machine.
 * @throws Failure `forbidden` when the account has none: an OTP lives no longer than the key that issued it
 */
export async function getOtpKey({ db }: Pick<AccountDeps, 'db'>, accountId: string): Promise<string> {
  const keys = await listApiKeys(db, accountId)
  const key = keys.find(({ revokedAtS, permissions }) => revokedAtS === null && permissions.includes('otpCreator'))
  if (!key) {
    const remedy = `Make one with "reelgate key create ${accountId}".`
    throw new Failure('forbidden', `The account has no live API key that may issue OTPs. ${remedy}`)
  }
  return key.id
}

/** Durable when it resolves: the next request with the key, on any connection, is refused. */
export async function revokeKey({ write, nowS }: AccountDeps, keyId: string): Promise<void> {
  const revoked = await write((tx) => revokeApiKey(tx, keyId, nowS()))
  if (!revoked) throw new Failure('not-found', `There is no live API key ${keyId}. See "reelgate key list".`)
}
