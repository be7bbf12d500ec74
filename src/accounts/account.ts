import { hashSecret, newId, newSecret } from '../protect/secret.ts'
import { countAccounts, insertAccount, listAccounts } from './account-store.ts'
import { type AccountDeps, PERMISSIONS, PREFIX_LENGTH } from './api-key.ts'
import { insertApiKey } from './api-key-store.ts'

/**
 * Makes an account with one key that holds every permission.
 * @returns the key's text, the only copy: the database keeps its SHA-256
 */
export async function createAccount(
  { write, nowS }: AccountDeps,
  name: string,
  switches: { mayUpload: boolean; mayImport: boolean },
) {
  const accountId = newId()
  const apiKey = newSecret()
  await write(async (tx) => {
    await insertAccount(tx, { id: accountId, name, createdAtS: nowS(), ...switches })
    await insertApiKey(tx, accountId, {
      id: newId(),
      hash: hashSecret(apiKey),
      prefix: apiKey.slice(0, PREFIX_LENGTH),
      name: 'first key',
      permissions: JSON.stringify(PERMISSIONS),
      createdAtS: nowS(),
    })
  })
  return { accountId, apiKey }
}

/** True until the first account exists. */
export async function isUnused({ db }: AccountDeps): Promise<boolean> {
  return (await countAccounts(db)) === 0
}

export async function findAccounts({ db }: AccountDeps) {
  return listAccounts(db)
}
