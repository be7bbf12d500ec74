import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { DAY_S } from '../time.ts'
import { addAccountEvent, addVideoEvents } from '../webhooks/outbox.ts'
import {
  type AlertFilter,
  findSeenAlertId,
  insertAlert,
  listAlertRows,
  markAlertsSeen,
  parseVideoIds,
  removeOldAlerts,
} from './alert-store.ts'
import { type AlertCause, isAboutPlayback } from './cause.ts'
import { insertAlertMail, removeOldMails } from './mail-store.ts'

// What an owner should look at: rows that can be listed, each with a webhook event.

/** Without secrets: it is sent to webhooks. */
export type Alert = {
  accountId: string
  cause: AlertCause
  /** Whom or what it is about: `user <userId>`, `session <id>`, `otp <beginning of its hash>` or `video <id>`. */
  subject: string
  sessionId: string | null
  userId: string | null
  /** Empty: it is about no video. */
  videoId: string
  /** What was measured. */
  numbers: Readonly<Record<string, number | string>>
}

/** Of one account, so that an attack does not fill the disk and the owner's inbox. */
const MAX_ALERTS_A_DAY = 1_000
/** Rows in one transaction, so few that other writes are not delayed. */
const BATCH_SIZE = 500

/**
 * Records an alert and sends `alert`, of playback also `session:suspicious`, and the first of its cause on a day as an e-mail; what
 * occurs again on the same day only raises its count.
 * @param atS the playback clock
 */
export async function recordAlert(tx: Db, alert: Alert, atS: number): Promise<void> {
  const { accountId, cause, subject, sessionId, userId, videoId, numbers } = alert
  const common = { accountId, cause, subject, sessionId, userId, videoId, atS, day: Math.floor(atS / DAY_S) }
  if (!(await insertAlert(tx, { ...common, numbers: JSON.stringify(numbers) }, MAX_ALERTS_A_DAY))) return
  await insertAlertMail(tx, { day: common.day, cause, dueAtS: atS })
  const payload = { cause, session: sessionId, userId, numbers }
  if (isAboutPlayback(cause)) await addVideoEvents(tx, 'session:suspicious', [videoId], payload)
  await addAccountEvent(tx, 'alert', accountId, { ...payload, video: videoId || null })
}

export type AlertDeps = { db: Db }

type ListedAlert = Omit<Alert, 'accountId' | 'subject' | 'cause'> & {
  id: number
  cause: string
  atS: number
  occurrenceCount: number
  /** Of the whole day, the first ones. */
  videoIds: readonly string[]
  /** Whether an owner has marked it, or a newer one, as seen. */
  isSeen: boolean
}

/** The account's alerts, the newest first. @param page.below only alerts with a lower id */
export async function listAlerts(
  { db }: AlertDeps,
  accountId: string,
  filter: AlertFilter,
  page: { limit: number; below?: number },
): Promise<ListedAlert[]> {
  const rows = await listAlertRows(db, accountId, filter, page)
  const seenId = await findSeenAlertId(db, accountId)
  return rows.map(({ id, cause, sessionId, userId, videoId, videoIds, numbers, atS, occurrenceCount }) => ({
    ...{ id, cause, sessionId, userId, videoId, atS, occurrenceCount, videoIds: parseVideoIds(videoIds) },
    numbers: JSON.parse(numbers),
    isSeen: id <= seenId,
  }))
}

export type SeenDeps = { write: Write }

export async function markSeen({ write }: SeenDeps, accountId: string, upToId: number): Promise<void> {
  await write((tx) => markAlertsSeen(tx, accountId, upToId))
}

/** Removes alerts, and which of them were mailed, after as many days as other data about viewers. */
export async function pruneAlerts({ write, nowS }: { write: Write; nowS: () => number }, viewerDataDays: number): Promise<void> {
  while ((await write((tx) => removeOldAlerts(tx, nowS() - viewerDataDays * DAY_S, BATCH_SIZE))) > 0);
  await write((tx) => removeOldMails(tx, Math.floor(nowS() / DAY_S) - viewerDataDays))
}
