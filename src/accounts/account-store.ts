import { countRows } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'

type NewAccount = { id: string; name: string; createdAtS: number; mayUpload: boolean; mayImport: boolean }

export async function insertAccount(db: Db, account: NewAccount): Promise<void> {
  await db
    .insertInto('account')
    .values({ ...account, mayUpload: Number(account.mayUpload), mayImport: Number(account.mayImport), normalizesLoudness: 1 })
    .execute()
}

export type AccountChanges = {
  name?: string
  mayUpload?: boolean
  mayImport?: boolean
  pageMax?: number
  limitFactor?: number
  streamLimit?: number
  whenFull?: 'refuse' | 'stop-oldest'
  /** Null: no limit. */
  storageLimitBytes?: number | null
  otpDefaultsRemovable?: boolean
  deletesToTrash?: boolean
  normalizesLoudness?: boolean
  /** Null: none. */
  transcribeLanguage?: string | null
  /** Null: none. */
  watchUrl?: string | null
  /** As `formatPlayerSentences` returns them. Null: none. */
  playerSentences?: string | null
}

/** Writes the named settings alone, whatever else the object has. */
export async function updateAccount(tx: Db, accountId: string, changes: AccountChanges): Promise<void> {
  const {
    name,
    pageMax,
    limitFactor,
    streamLimit,
    whenFull,
    storageLimitBytes,
    transcribeLanguage,
    watchUrl,
    playerSentences,
    ...flags
  } = changes
  const { mayUpload, mayImport, otpDefaultsRemovable, deletesToTrash, normalizesLoudness } = flags
  await tx
    .updateTable('account')
    .set({
      ...{ name, pageMax, limitFactor, streamLimit, streamLimitPolicy: whenFull, storageLimitBytes, transcribeLanguage },
      ...{ mayUpload: numberOf(mayUpload), mayImport: numberOf(mayImport) },
      ...{ otpDefaultsRemovable: numberOf(otpDefaultsRemovable), deletesToTrash: numberOf(deletesToTrash) },
      ...{ normalizesLoudness: numberOf(normalizesLoudness), watchUrl, playerSentences },
    })
    .where('id', '=', accountId)
    .execute()
}

function numberOf(flag: boolean | undefined): number | undefined {
  return flag === undefined ? undefined : Number(flag)
}

/** False: it already was. */
export async function setDisabled(tx: Db, accountId: string, disabled: boolean): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('account')
    .set({ disabled: Number(disabled) })
    .where('id', '=', accountId)
    .where('disabled', '!=', Number(disabled))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function isAccountDisabled(db: Db, accountId: string): Promise<boolean> {
  const row = await db.selectFrom('account').select('disabled').where('id', '=', accountId).executeTakeFirst()
  return row?.disabled === 1
}

/** Whether the account of a video wants sound at one loudness; false once the video is gone. */
export async function isLoudnessNormalized(db: Db, videoId: string): Promise<boolean> {
  const row = await db
    .selectFrom('video')
    .innerJoin('account', 'account.id', 'video.accountId')
    .select('account.normalizesLoudness')
    .where('video.id', '=', videoId)
    .executeTakeFirst()
  return row?.normalizesLoudness === 1
}

/** The language in which new videos of an account are transcribed; undefined: they are not. */
export async function findTranscribeLanguage(db: Db, accountId: string): Promise<string | undefined> {
  const row = await db.selectFrom('account').select('transcribeLanguage').where('id', '=', accountId).executeTakeFirst()
  return row?.transcribeLanguage ?? undefined
}

/** Where the viewers of an account watch; undefined: it has not said. */
export async function findWatchUrl(db: Db, accountId: string): Promise<string | undefined> {
  const row = await db.selectFrom('account').select('watchUrl').where('id', '=', accountId).executeTakeFirst()
  return row?.watchUrl ?? undefined
}

/** As they are stored; null: none. */
export async function findStoredSentences(db: Db, accountId: string): Promise<string | null> {
  const row = await db.selectFrom('account').select('playerSentences').where('id', '=', accountId).executeTakeFirst()
  return row?.playerSentences ?? null
}

/** What an account's videos may take on the disk; undefined: no limit, or no such account. */
export async function findStorageLimit(db: Db, accountId: string): Promise<number | undefined> {
  const row = await db.selectFrom('account').select('storageLimitBytes').where('id', '=', accountId).executeTakeFirst()
  return row?.storageLimitBytes ?? undefined
}

/** The accounts that have one. */
export async function listStorageLimits(db: Db): Promise<{ id: string; storageLimitBytes: number }[]> {
  const rows = await db
    .selectFrom('account')
    .select(['id', 'storageLimitBytes'])
    .where('storageLimitBytes', 'is not', null)
    .orderBy('id')
    .execute()
  return rows.map(({ id, storageLimitBytes }) => ({ id, storageLimitBytes: storageLimitBytes ?? 0 }))
}

export async function findAccountIds(db: Db, idOrName: string): Promise<string[]> {
  const rows = await db
    .selectFrom('account')
    .select('id')
    .where(({ or, eb }) => or([eb('id', '=', idOrName), eb('name', '=', idOrName)]))
    .execute()
  return rows.map(({ id }) => id)
}

export async function countAccounts(db: Db): Promise<number> {
  return countRows(db.selectFrom('account'))
}

export async function listAccountIds(db: Db): Promise<string[]> {
  return (await db.selectFrom('account').select('id').orderBy('id').execute()).map(({ id }) => id)
}

/** The oldest first. */
export async function listAccounts(db: Db) {
  const rows = await selectAccounts(db).orderBy('createdAtS').execute()
  return rows.map((row) => withFlags(row))
}

export async function findAccountById(db: Db, id: string) {
  const row = await selectAccounts(db).where('id', '=', id).executeTakeFirst()
  return row && withFlags(row)
}

function selectAccounts(db: Db) {
  return db
    .selectFrom('account')
    .select([
      'id',
      'name',
      'createdAtS',
      'mayUpload',
      'mayImport',
      'disabled',
      'pageMax',
      'limitFactor',
      'streamLimit',
      'streamLimitPolicy as whenFull',
      'storageLimitBytes',
      'otpDefaultsRemovable',
      'deletesToTrash',
      'normalizesLoudness',
      'transcribeLanguage',
      'watchUrl',
      'videoCount',
    ])
}

type AccountRow = Awaited<ReturnType<ReturnType<typeof selectAccounts>['execute']>>[number]

function withFlags(row: AccountRow) {
  return {
    ...row,
    mayUpload: row.mayUpload === 1,
    mayImport: row.mayImport === 1,
    disabled: row.disabled === 1,
    otpDefaultsRemovable: row.otpDefaultsRemovable === 1,
    deletesToTrash: row.deletesToTrash === 1,
    normalizesLoudness: row.normalizesLoudness === 1,
  }
}
