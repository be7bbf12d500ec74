import { listStorageLimits } from '../accounts/account-store.ts'
import { sumStoredBytes } from '../accounts/storage-store.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { DAY_S } from '../time.ts'
import { listOldestRetries } from '../webhooks/delivery-store.ts'
import { recordAlert } from './alert.ts'
import { findFirstAccount, listEndingKeys } from './alert-store.ts'
import type { OperationsCause } from './cause.ts'

// What the operator should look at. Each is a row for a day, like an alert of playback.

export const KEY_WARNING_S = 14 * DAY_S
const MAX_BACKUP_AGE_S = 7 * DAY_S
/** How long a webhook's retry may be due. */
const MAX_RETRY_DELAY_S = 3600
/** Part of an account's storage limit. */
const STORAGE_NEARLY_USED = 0.9

type OperationsAlert = {
  accountId: string
  cause: OperationsCause
  /** What it is about, where there may be several on a day. */
  subject?: string
  videoId?: string
  numbers: Readonly<Record<string, number | string>>
}

export async function recordOperationsAlert(tx: Db, alert: OperationsAlert, atS: number): Promise<void> {
  const { subject = 'installation', videoId = '', ...rest } = alert
  await recordAlert(tx, { ...rest, subject, videoId, sessionId: null, userId: null }, atS)
}

export async function alertOfDisabledWebhook(
  tx: Db,
  { id, accountId }: { id: string; accountId: string },
  reason: string,
  atS: number,
): Promise<void> {
  const numbers = { webhook: id, reason }
  await recordOperationsAlert(tx, { accountId, cause: 'webhook-disabled', subject: `webhook ${id}`, numbers }, atS)
}

type OperationsCheckDeps = {
  db: Db
  write: Write
  nowS: () => number
  wallNowS: () => number
  isDiskLow(): Promise<boolean>
  /** Whether ffmpeg may open uploads without bubblewrap, or not at all. */
  isSandboxMissing: boolean
  /** Whether no webhook is sent, as in a restored copy. */
  areWebhooksHeld(): boolean
  /** When the last good backup was made, by the wall clock. */
  findLastBackupS(): Promise<number | undefined>
}

/** Raises what holds at the moment; what concerns no single account goes to the first one. To be called once in a while. */
export async function checkOperations(deps: OperationsCheckDeps): Promise<void> {
  const { db, write, nowS, wallNowS } = deps
  const account = await findFirstAccount(db)
  if (!account) return
  const { id: accountId } = account
  const alerts: OperationsAlert[] = []
  if (await deps.isDiskLow()) alerts.push({ accountId, cause: 'disk-nearly-full', numbers: {} })
  if (deps.isSandboxMissing) alerts.push({ accountId, cause: 'sandbox-missing', numbers: {} })
  const backupAgeS = wallNowS() - ((await deps.findLastBackupS()) ?? account.createdAtS)
  if (account.videoCount > 0 && backupAgeS > MAX_BACKUP_AGE_S)
    alerts.push({ accountId, cause: 'backup-old', numbers: { ageDays: Math.floor(backupAgeS / DAY_S) } })
  for (const key of await listEndingKeys(db, nowS(), nowS() + KEY_WARNING_S)) {
    const numbers = { key: key.name, prefix: key.prefix, daysLeft: Math.floor((key.expiresAtS - nowS()) / DAY_S) }
    alerts.push({ accountId: key.accountId, cause: 'api-key-ends', subject: `key ${key.id}`, numbers })
  }
  for (const { id, storageLimitBytes: limitBytes } of await listStorageLimits(db)) {
    const storedBytes = await sumStoredBytes(db, id)
    if (storedBytes >= STORAGE_NEARLY_USED * limitBytes)
      alerts.push({ accountId: id, cause: 'storage-nearly-used', numbers: { storedBytes, limitBytes } })
  }
  if (!deps.areWebhooksHeld()) alerts.push(...(await findLateRetries(db, nowS())))
  if (alerts.length === 0) return
  await write(async (tx) => {
    for (const alert of alerts) await recordOperationsAlert(tx, alert, nowS())
  })
}

async function findLateRetries(db: Db, nowS: number): Promise<OperationsAlert[]> {
  const late = (await listOldestRetries(db)).filter(({ dueAtS }) => nowS - dueAtS > MAX_RETRY_DELAY_S)
  return late.map(({ webhookId, accountId, dueAtS }) => ({
    accountId,
    cause: 'webhook-retries-late',
    subject: `webhook ${webhookId}`,
    numbers: { webhook: webhookId, dueForS: nowS - dueAtS },
  }))
}
