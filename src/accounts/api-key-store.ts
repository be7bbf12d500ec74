import { prepared } from '../db/prepared.ts'
import type { Db } from '../db/sqlite.ts'
import type { KeyHolder, Permission } from './api-key.ts'

type NewApiKey = { id: string; hash: Buffer; prefix: string; name: string; permissions: string; createdAtS: number }

/** Inserts a key of an existing account. False: no such account. */
export async function insertApiKey(db: Db, accountId: string, key: NewApiKey): Promise<boolean> {
  const account = await db.selectFrom('account').select('id').where('id', '=', accountId).executeTakeFirst()
  if (!account) return false
  await db
    .insertInto('apiKey')
    .values({ ...key, accountId })
    .execute()
  return true
}

const selectKeyHolder = prepared<{ hash: Buffer }>()((db, value) =>
  db
    .selectFrom('apiKey')
    .innerJoin('account', 'account.id', 'apiKey.accountId')
    .select([
      'apiKey.id as apiKeyId',
      'apiKey.permissions',
      'account.id as accountId',
      'mayUpload',
      'mayImport',
      'pageMax',
      'changeNumber',
      'limitFactor',
    ])
    .where('apiKey.hash', '=', value('hash'))
    .where('apiKey.revokedAtS', 'is', null)
    .where('account.disabled', '=', 0),
)

/** The account behind a live key; undefined when the key is unknown or revoked, or its account disabled. */
export async function findKeyHolder(db: Db, hash: Buffer): Promise<KeyHolder | undefined> {
  const [row] = (await selectKeyHolder(db, { hash })).rows
  if (!row) return undefined
  return { ...row, permissions: asPermissions(row.permissions), mayUpload: row.mayUpload === 1, mayImport: row.mayImport === 1 }
}

export async function listApiKeys(db: Db, accountId: string) {
  const rows = await db
    .selectFrom('apiKey')
    .select(['id', 'name', 'prefix', 'permissions', 'createdAtS', 'revokedAtS'])
    .where('accountId', '=', accountId)
    .orderBy('createdAtS')
    .execute()
  return rows.map((row) => ({ ...row, permissions: asPermissions(row.permissions) }))
}

export async function revokeApiKey(db: Db, keyId: string, nowS: number): Promise<boolean> {
  const revoked = await db
    .updateTable('apiKey')
    .set({ revokedAtS: nowS })
    .where('id', '=', keyId)
    .where('revokedAtS', 'is', null)
    .executeTakeFirst()
  return revoked.numUpdatedRows > 0n
}

// Our own text, written from a typed list.
function asPermissions(text: string): Permission[] {
  return JSON.parse(text)
}
