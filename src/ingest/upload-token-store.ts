import type { Insertable } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import { removeOldRows } from '../db/remove-old-rows.ts'
import type { Tables, UploadTokenRow } from '../db/tables.ts'

export async function insertUploadToken(tx: Db, row: Insertable<Tables['uploadToken']>): Promise<void> {
  await tx.insertInto('uploadToken').values(row).execute()
}

/** A token with what it depends on, whether it lives or not: its account, and the key or the person that made it. */
export async function findUploadToken(db: Db, hash: Buffer) {
  return db
    .selectFrom('uploadToken')
    .innerJoin('account', 'account.id', 'uploadToken.accountId')
    .leftJoin('apiKey', 'apiKey.id', 'uploadToken.apiKeyId')
    .leftJoin('consoleUser', 'consoleUser.id', 'uploadToken.consoleUserId')
    .selectAll('uploadToken')
    .select(['account.mayUpload', 'account.disabled', 'apiKey.revokedAtS as keyRevokedAtS', 'apiKey.expiresAtS as keyExpiresAtS'])
    .select(['consoleUser.role', 'consoleUser.disabled as personDisabled'])
    .where('uploadToken.hash', '=', hash)
    .executeTakeFirst()
}

/** Whether there is a token for pages of an origin that has neither expired nor been revoked. */
export async function hasLiveToken(db: Db, origin: string, nowS: number): Promise<boolean> {
  return hasRow(
    db.selectFrom('uploadToken').where('origin', '=', origin).where('expiresAtS', '>', nowS).where('revokedAtS', 'is', null),
  )
}

/** The newest of an account, with positions below that. @param madeBy lists only those that this person made */
export async function listUploadTokens(
  db: Db,
  accountId: string,
  { limit, below, madeBy }: { limit: number; below: number | undefined; madeBy: string | undefined },
): Promise<UploadTokenRow[]> {
  return db
    .selectFrom('uploadToken')
    .selectAll()
    .where('accountId', '=', accountId)
    .$if(below !== undefined, (tokens) => tokens.where('position', '<', below ?? 0))
    .$if(madeBy !== undefined, (tokens) => tokens.where('consoleUserId', '=', madeBy ?? ''))
    .orderBy('position', 'desc')
    .limit(limit)
    .execute()
}

/** What owners call the users of these tokens. */
export async function listTokenReferences(db: Db, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db.selectFrom('uploadToken').select(['id', 'reference']).where('id', 'in', ids).execute()
  return new Map(rows.flatMap(({ id, reference }): [string, string][] => (reference === null ? [] : [[id, reference]])))
}

/** Undefined: there is no such token, or it had ended. @param madeBy revokes only one that this person made */
export async function revokeLiveToken(
  tx: Db,
  accountId: string,
  { id, madeBy, nowS }: { id: string; madeBy: string | undefined; nowS: number },
): Promise<{ videoId: string | null } | undefined> {
  return tx
    .updateTable('uploadToken')
    .set({ revokedAtS: nowS })
    .where(({ and }) => and({ accountId, id }))
    .where('expiresAtS', '>', nowS)
    .where('revokedAtS', 'is', null)
    .$if(madeBy !== undefined, (tokens) => tokens.where('consoleUserId', '=', madeBy ?? ''))
    .returning('videoId')
    .executeTakeFirst()
}

/** Takes one of the files that a token is good for. False: there is none left, or it has ended. */
export async function takeFile(tx: Db, id: string, nowS: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('uploadToken')
    .set((token) => ({ files: token('files', '+', 1) }))
    .where('id', '=', id)
    .whereRef('files', '<', 'maxFiles')
    .where('expiresAtS', '>', nowS)
    .where('revokedAtS', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Records which token a new video comes by. */
export async function setUploadToken(
  tx: Db,
  videoId: string,
  { id, reference, consoleUserId }: Pick<UploadTokenRow, 'id' | 'reference' | 'consoleUserId'>,
): Promise<void> {
  await tx
    .updateTable('video')
    .set({ uploadTokenId: id, uploadReference: reference, addedBy: consoleUserId })
    .where('id', '=', videoId)
    .execute()
}

/** Records whose token brings the next file of a video; null: it comes another way. */
export async function setUploadReference(tx: Db, videoId: string, tokenId: string | null): Promise<void> {
  const token = tx
    .selectFrom('uploadToken')
    .select('reference')
    .where('id', '=', tokenId ?? '')
  await tx.updateTable('video').set({ uploadReference: token }).where('id', '=', videoId).execute()
}

/** Removes what a token had begun to replace, in videos that stay. */
export async function removeReplacingOfToken(tx: Db, tokenId: string, videoId: string): Promise<void> {
  await tx
    .deleteFrom('resumableUpload')
    .where(({ and }) => and({ videoId, uploadTokenId: tokenId }))
    .where('finishedAtS', 'is', null)
    .execute()
}

/** The videos of a token whose files have not arrived. */
export async function listUnfinishedOfToken(db: Db, id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('video')
    .select('id')
    .where(({ and }) => and({ uploadTokenId: id, status: 'PRE-Upload' }))
    .where('deletedAtS', 'is', null)
    .execute()
  return rows.map((row) => row.id)
}

/** Removes up to `limit` tokens that expired before then, the oldest first. @returns how many */
export function removeExpiredTokens(tx: Db, beforeS: number, limit: number): Promise<number> {
  return removeOldRows(tx, { table: 'uploadToken', key: ['position'], age: 'expiresAtS' }, beforeS, limit)
}
