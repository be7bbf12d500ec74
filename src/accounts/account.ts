import type { Db } from '../db/sqlite.ts'
import { Failure } from '../errors.ts'
import { hashSecret, newId, newSecret } from '../protect/secret.ts'
import { type AccountChanges, countAccounts, insertAccount, listAccounts, updateAccounts } from './account-store.ts'
import { type AccountDeps, PERMISSIONS, PREFIX_LENGTH } from './api-key.ts'
import { insertApiKey } from './api-key-store.ts'

/**
 * Makes an account with one key that holds every permission.
 * @returns the key's text, the only copy: the database keeps its SHA-256
 */
export async function createAccount({ write, nowS }: AccountDeps, name: string, switches: Switches) {
  return write((tx) => addAccount(tx, name, switches, nowS()))
}

export type Switches = { mayUpload: boolean; mayImport: boolean }

/** The same inside a transaction that makes more than the account. */
export async function addAccount(tx: Db, name: string, switches: Switches, nowS: number) {
  const accountId = newId()
  const apiKey = newSecret()
  await insertAccount(tx, { id: accountId, name, createdAtS: nowS, ...switches })
  await insertApiKey(tx, accountId, {
    id: newId(),
    hash: hashSecret(apiKey),
    prefix: apiKey.slice(0, PREFIX_LENGTH),
    name: 'first key',
    permissions: JSON.stringify(PERMISSIONS),
    createdAtS: nowS,
  })
  return { accountId, apiKey }
}

/**
 * Changes what an account may ask for; its next request has it.
 * @param idOrName its id, or its name where no other account has it
 * @throws Failure `not-found`, or `conflict` when several accounts have the name
 */
export async function changeAccount({ write }: AccountDeps, idOrName: string, changes: AccountChanges) {
  const [accountId] = await write(async (tx) => {
    const changed = await updateAccounts(tx, idOrName, changes)
    if (changed.length > 1)
      throw new Failure(
        'conflict',
        `${changed.length} accounts are named "${idOrName}": ${changed.join(', ')}. Give one of these ids.`,
      )
    return changed
  })
  if (accountId === undefined) throw new Failure('not-found', `There is no account "${idOrName}". See "reelgate account list".`)
  return { accountId, ...changes }
}

/** True until the first account exists. */
export async function isUnused({ db }: AccountDeps): Promise<boolean> {
  return (await countAccounts(db)) === 0
}

export async function findAccounts({ db }: AccountDeps) {
  return listAccounts(db)
}

/**
 * The account of this name or id; without one, the oldest that may upload.
 * @throws Failure `not-found`, or `conflict` when two have the name
 */
export async function getAccount({ db }: Pick<AccountDeps, 'db'>, nameOrId: string | undefined) {
  const accounts = (await listAccounts(db)).filter(({ disabled }) => !disabled)
  if (nameOrId === undefined) {
    const first = accounts.find(({ mayUpload }) => mayUpload)
    if (!first) throw new Failure('not-found', 'No account may upload. Make one with "reelgate account create NAME".')
    return first
  }
  const [found, ...others] = accounts.filter(({ id, name }) => id === nameOrId || name === nameOrId)
  if (!found) throw new Failure('not-found', 'There is no account of this name or id. See "reelgate account list".')
  if (others.length > 0)
    throw new Failure('conflict', 'Several accounts have this name: give the id instead. See "reelgate account list".')
  return found
}
