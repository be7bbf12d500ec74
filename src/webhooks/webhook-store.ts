import type { Insertable } from 'kysely'
import { countRows } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { Tables, WebhookRow } from '../db/tables.ts'

type NewWebhook = Pick<
  Insertable<Tables['webhook']>,
  'id' | 'accountId' | 'url' | 'event' | 'wrappedSecret' | 'createdAtS' | 'disabledReason'
>

/** False: the account has as many as it may. */
export async function insertWebhook(tx: Db, webhook: NewWebhook, most: number): Promise<boolean> {
  if ((await countRows(tx.selectFrom('webhook').where('accountId', '=', webhook.accountId))) >= most) return false
  await tx.insertInto('webhook').values(webhook).execute()
  return true
}

/** An endpoint as its owner sees it: without its secret. */
export type Webhook = Pick<WebhookRow, 'id' | 'url' | 'event' | 'disabledReason' | 'failingSinceS' | 'createdAtS'>

/** In the order in which they were made. */
export async function listWebhookRows(db: Db, accountId: string): Promise<Webhook[]> {
  return db
    .selectFrom('webhook')
    .select(['id', 'url', 'event', 'disabledReason', 'failingSinceS', 'createdAtS'])
    .where('accountId', '=', accountId)
    .orderBy('createdAtS')
    .orderBy('id')
    .execute()
}

export async function findWebhook(db: Db, accountId: string, webhookId: string): Promise<WebhookRow | undefined> {
  return db.selectFrom('webhook').selectAll().where('accountId', '=', accountId).where('id', '=', webhookId).executeTakeFirst()
}

export async function findAccountOfWebhook(db: Db, webhookId: string): Promise<string | undefined> {
  const row = await db.selectFrom('webhook').select('accountId').where('id', '=', webhookId).executeTakeFirst()
  return row?.accountId
}

/** The old secret stays valid for a while in addition to the new one. False when the account has no such webhook. */
export async function replaceSecret(
  tx: Db,
  accountId: string,
  webhookId: string,
  secret: { wrapped: Buffer; previousEndsAtS: number },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('webhook')
    .set((webhook) => ({
      previousWrappedSecret: webhook.ref('wrappedSecret'),
      previousSecretExpiresAtS: secret.previousEndsAtS,
      wrappedSecret: secret.wrapped,
    }))
    .where(({ and }) => and({ accountId, id: webhookId }))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Switches a webhook on; its failures are forgotten. */
export async function enableWebhook(tx: Db, webhookId: string): Promise<void> {
  await tx
    .updateTable('webhook')
    .set({ disabledReason: null, consecutiveFailures: 0, failingSinceS: null, nextAttemptAtS: 0 })
    .where('id', '=', webhookId)
    .execute()
}

/** Switches a webhook off, if it is on. Nothing is sent to it from then on; `failPendingDeliveries` lists what waits for it as failed. */
export async function disableWebhook(tx: Db, webhookId: string, reason: string): Promise<void> {
  await tx
    .updateTable('webhook')
    .set({ disabledReason: reason, replayFromSequence: null })
    .where('id', '=', webhookId)
    .where('disabledReason', 'is', null)
    .execute()
}

/** Notes that everything which failed is to be sent once more; `replayFailedBatch` does it. */
export async function beginReplay(tx: Db, webhookId: string): Promise<void> {
  await tx.updateTable('webhook').set({ replayFromSequence: 0 }).where('id', '=', webhookId).execute()
}

export async function removeWebhook(tx: Db, accountId: string, webhookId: string): Promise<void> {
  await tx.deleteFrom('webhook').where('accountId', '=', accountId).where('id', '=', webhookId).execute()
}

/** Endpoints that are switched off, for whatever reason. */
export async function countDisabledWebhooks(db: Db): Promise<number> {
  return countRows(db.selectFrom('webhook').where('disabledReason', 'is not', null))
}
