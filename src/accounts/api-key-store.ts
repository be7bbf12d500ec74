import type { Insertable } from 'kysely'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'
import type { Tables } from '../db/tables.ts'
import type { ApiKeyHolder, Permission } from './permission.ts'

type NewApiKey = Omit<Insertable<Tables['apiKey']>, 'revokedAtS' | 'lastUsedAtS'>

export async function insertApiKey(tx: Db, key: NewApiKey): Promise<void> {
  await tx.insertInto('apiKey').values(key).execute()
}

/** A key holder, with the reasons for which the request may still be rejected. */
export type KeyHolderRow = { holder: ApiKeyHolder; disabled: boolean; expiresAtS: number | null }

const selectKeyHolder = prepared<{ hash: Buffer }>()((db, value) =>
  db
    .selectFrom('apiKey')
    .innerJoin('account', 'account.id', 'apiKey.accountId')
    .select([
      'apiKey.id as apiKeyId',
      'apiKey.permissions',
      'apiKey.expiresAtS',
      'account.id as accountId',
      'account.disabled',
      'mayUpload',
      'mayImport',
      'pageMax',
      'deletesToTrash',
      'changeNumber',
      'limitFactor',
    ])
    .where('apiKey.hash', '=', value('hash'))
    .where('apiKey.revokedAtS', 'is', null),
)

/** The holder of a key; undefined when the key is unknown or revoked. */
export async function findKeyHolder(db: Db, hash: Buffer): Promise<KeyHolderRow | undefined> {
  const [row] = (await selectKeyHolder(db, { hash })).rows
  if (!row) return undefined
  const { expiresAtS, disabled, permissions, mayUpload, mayImport, deletesToTrash, ...others } = row
  const switches = { mayUpload: mayUpload === 1, mayImport: mayImport === 1, deletesToTrash: deletesToTrash === 1 }
  const holder = { ...others, permissions: parsePermissions(permissions), ...switches }
  return { holder, disabled: disabled === 1, expiresAtS }
}

export async function listApiKeys(db: Db, accountId: string) {
  const rows = await db
    .selectFrom('apiKey')
    .select(['id', 'name', 'prefix', 'permissions', 'createdAtS', 'lastUsedAtS', 'expiresAtS', 'revokedAtS'])
    .where('accountId', '=', accountId)
    .orderBy('createdAtS')
    .execute()
  return rows.map((row) => ({ ...row, permissions: parsePermissions(row.permissions) }))
}

export async function listKeyNames(db: Db, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('apiKey').select(['id', 'name']).where('id', 'in', ids).execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** A key that is neither revoked nor expired. */
export async function findLiveKey(db: Db, keyId: string, nowS: number) {
  return db
    .selectFrom('apiKey')
    .select(['accountId', 'name', 'permissions', 'createdAtS', 'expiresAtS'])
    .where('id', '=', keyId)
    .where('revokedAtS', 'is', null)
    .where(({ eb, or }) => or([eb('expiresAtS', 'is', null), eb('expiresAtS', '>', nowS)]))
    .executeTakeFirst()
}

/** The account a key belongs to, whether it is revoked or not. */
export async function findAccountOfKey(db: Db, keyId: string): Promise<string | undefined> {
  const row = await db.selectFrom('apiKey').select('accountId').where('id', '=', keyId).executeTakeFirst()
  return row?.accountId
}

export async function setExpiry(tx: Db, keyId: string, expiresAtS: number): Promise<void> {
  await tx.updateTable('apiKey').set({ expiresAtS }).where('id', '=', keyId).execute()
}

/** @returns the key's account; undefined: there is no such key, or it was already revoked */
export async function revokeApiKey(tx: Db, keyId: string, nowS: number): Promise<string | undefined> {
  const revoked = await tx
    .updateTable('apiKey')
    .set({ revokedAtS: nowS })
    .where('id', '=', keyId)
    .where('revokedAtS', 'is', null)
    .returning('accountId')
    .executeTakeFirst()
  return revoked?.accountId
}

export const saveLastUse = prepared<{ id: string; lastUsedAtS: number }>()((db, value) =>
  db
    .updateTable('apiKey')
    .set({ lastUsedAtS: value('lastUsedAtS') })
    .where('id', '=', value('id')),
)

/** Not validated: the column is written from a typed list. */
export function parsePermissions(text: string): Permission[] {
  return JSON.parse(text)
}
