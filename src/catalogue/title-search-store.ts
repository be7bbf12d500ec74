import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'

const selectState = prepared<{ accountId: string }>()((db, value) =>
  db.selectFrom('account').select(['changeNumber', 'videoCount']).where('id', '=', value('accountId')),
)

/** An account's change number and number of videos. */
export async function findTitleState(db: Db, accountId: string) {
  const { rows } = await selectState(db, { accountId })
  return rows[0]
}

/** A video with the texts that searches compare. */
export type TitleRow = { position: number; id: string; title: string }

/** The account's videos from after a position, oldest first. */
export async function listTitles(db: Db, accountId: string, afterPosition: number, limit: number): Promise<TitleRow[]> {
  return db
    .selectFrom('video')
    .innerJoin('videoText', 'videoText.rowid', 'video.position')
    .select(['video.position', 'videoText.id', 'videoText.title'])
    .where('video.accountId', '=', accountId)
    .where('video.deletedAtS', 'is', null)
    .where('video.position', '>', afterPosition)
    .orderBy('video.position')
    .limit(limit)
    .execute()
}

/** What became of the videos whose title was added, changed, removed or restored since a change number. Null: it is deleted. */
export type TitleChange = { position: number; id: string | null; title: string | null }

export async function listTitleChanges(db: Db, accountId: string, sinceNumber: number, limit: number): Promise<TitleChange[]> {
  return db
    .selectFrom('titleChange')
    .leftJoin('video', (on) => on.onRef('video.position', '=', 'titleChange.position').on('video.deletedAtS', 'is', null))
    .leftJoin('videoText', 'videoText.rowid', 'video.position')
    .select(['titleChange.position', 'videoText.id', 'videoText.title'])
    .where('titleChange.accountId', '=', accountId)
    .where('titleChange.changeNumber', '>', sinceNumber)
    .orderBy('titleChange.changeNumber')
    .orderBy('titleChange.position')
    .limit(limit)
    .execute()
}

/** Removes some of the changes that are more than `kept` numbers old. @returns how many */
export async function removeOldTitleChanges(tx: Db, kept: number, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`delete from title_change where (account_id, change_number, position) in (
    select account_id, title_change.change_number, position
    from account join title_change on account_id = account.id || '' -- so that accounts are looked at first, and their oldest changes
    where title_change.change_number <= account.change_number - ${sql.lit(kept)} limit ${sql.lit(limit)})`.execute(tx)
  return Number(numAffectedRows)
}
