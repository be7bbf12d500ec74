import type { Db } from '../db/database.ts'
import type { AlertRow, MailRow } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'
import { DAY_S } from '../time.ts'
import { parseVideoIds } from './alert-store.ts'

/** Adds the e-mail about the alerts of a day and cause, unless there is one already. */
export async function insertAlertMail(tx: Db, mail: Pick<MailRow, 'day' | 'cause' | 'dueAtS'>): Promise<void> {
  await tx
    .insertInto('mail')
    .values({ id: `${mail.day} ${mail.cause}`, ...mail })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .execute()
}

/** An e-mail to one person, which is due immediately. */
export type Notice = { id: string; cause: string; recipient: string; subject: string; text: string }

export async function insertNotice(tx: Db, notice: Notice, atS: number): Promise<void> {
  await tx
    .insertInto('mail')
    .values({ ...notice, day: Math.floor(atS / DAY_S), dueAtS: atS })
    .execute()
}

export type DueMail = Pick<MailRow, 'id' | 'day' | 'cause' | 'recipient' | 'subject' | 'text' | 'attempts'>

/** @param from.day earlier days are not looked at. @param limits.maxAttempts after so many a mail is given up */
export async function findDueMail(
  db: Db,
  fromDay: number,
  { nowS, maxAttempts }: { nowS: number; maxAttempts: number },
): Promise<DueMail | undefined> {
  return db
    .selectFrom('mail')
    .select(['id', 'day', 'cause', 'recipient', 'subject', 'text', 'attempts'])
    .where('day', '>=', fromDay)
    .where('sentAtS', 'is', null)
    .where('attempts', '<', maxAttempts)
    .where('dueAtS', '<=', nowS)
    .where('mail.id', 'not in', claimedSubjects(db, 'mail', nowS))
    .orderBy('day')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

/** Counts an attempt before it is made, so that a crash in between does not repeat it immediately. False: it is not as it was found. */
export async function beginAttempt(tx: Db, { id, attempts }: Pick<DueMail, 'id' | 'attempts'>, nextDueAtS: number) {
  const { numUpdatedRows } = await tx
    .updateTable('mail')
    .set({ attempts: attempts + 1, dueAtS: nextDueAtS })
    .where(({ and }) => and({ id, attempts }))
    .where('sentAtS', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function endAttempt(tx: Db, id: string, result: Pick<MailRow, 'sentAtS' | 'problem'>): Promise<void> {
  await tx.updateTable('mail').set(result).where('id', '=', id).execute()
}

/** `videos`: the first ones of the day; a title is empty when the video was deleted. */
export type MailedAlert = Pick<AlertRow, 'userId' | 'numbers' | 'occurrenceCount'> & {
  accountName: string
  videos: readonly { id: string; title: string }[]
}

const MAX_MAILED_VIDEOS = 5

/** The alerts of a day and cause, of all accounts, the first ones first. */
export async function listAlertsOfMail(
  db: Db,
  { day, cause }: Pick<DueMail, 'day' | 'cause'>,
  limit: number,
): Promise<MailedAlert[]> {
  const alerts = await db
    .selectFrom('alert')
    .innerJoin('account', 'account.id', 'alert.accountId')
    .select(['account.name as accountName', 'alert.userId', 'alert.videoIds', 'alert.numbers', 'alert.occurrenceCount'])
    .where('alert.atS', '>=', day * DAY_S)
    .where('alert.atS', '<', (day + 1) * DAY_S)
    .where('alert.cause', '=', cause)
    .orderBy('alert.atS')
    .orderBy('alert.id')
    .limit(limit)
    .execute()
  const idsOf = alerts.map(({ videoIds }) => parseVideoIds(videoIds).slice(0, MAX_MAILED_VIDEOS))
  const titlesOf = (ids: readonly string[]) => db.selectFrom('video').select(['id', 'title']).where('id', 'in', ids).execute()
  const rows = idsOf.flat().length > 0 ? await titlesOf(idsOf.flat()) : []
  const titles = new Map(rows.map(({ id, title }) => [id, title]))
  return alerts.map(({ videoIds: _, ...alert }, index) => ({
    ...alert,
    videos: (idsOf[index] ?? []).map((id) => ({ id, title: titles.get(id) ?? '' })),
  }))
}

/** Removes those from before a day. */
export async function removeOldMails(tx: Db, beforeDay: number): Promise<void> {
  await tx.deleteFrom('mail').where('day', '<', beforeDay).execute()
}
