import type { Insertable } from 'kysely'
import type { Db } from '../db/database.ts'
import type { Tables, WebhookRow } from '../db/tables.ts'

type NewHook = Pick<
  Insertable<Tables['hook']>,
  'id' | 'accountId' | 'url' | 'event' | 'wrappedSecret' | 'createdAtS' | 'disabledReason'
>

/** False: the account has as many as it may. */
export async function insertWebhook(tx: Db, hook: NewHook, most: number): Promise<boolean> {
  const { count } = await tx
    .selectFrom('hook')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('accountId', '=', hook.accountId)
    .executeTakeFirstOrThrow()
  if (Number(count) >= most) return false
  await tx.insertInto('hook').values(hook).execute()
  return true
}

/** An endpoint as its owner sees it: without its secret. */
export type Webhook = Pick<WebhookRow, 'id' | 'url' | 'event' | 'disabledReason' | 'failingSinceS' | 'createdAtS'>

/** In the order in which they were made. */
export async function listWebhookRows(db: Db, accountId: string): Promise<Webhook[]> {
  return db
    .selectFrom('hook')
    .select(['id', 'url', 'event', 'disabledReason', 'failingSinceS', 'createdAtS'])
    .where('accountId', '=', accountId)
    .orderBy('createdAtS')
    .orderBy('id')
    .execute()
}

export async function findWebhook(db: Db, accountId: string, hookId: string): Promise<WebhookRow | undefined> {
  return db.selectFrom('hook').selectAll().where('accountId', '=', accountId).where('id', '=', hookId).executeTakeFirst()
}

/** The older secret goes on for a while beside the new one. False: the account has no such hook. */
export async function replaceSecret(
  tx: Db,
  accountId: string,
  hookId: string,
  secret: { wrapped: Buffer; olderEndsAtS: number },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('hook')
    .set((hook) => ({
      olderWrappedSecret: hook.ref('wrappedSecret'),
      olderSecretEndsAtS: secret.olderEndsAtS,
      wrappedSecret: secret.wrapped,
    }))
    .where('accountId', '=', accountId)
    .where('id', '=', hookId)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Switches a hook on; its failures are forgotten. */
export async function enableWebhook(tx: Db, hookId: string): Promise<void> {
  await tx
    .updateTable('hook')
    .set({ disabledReason: null, failuresInRow: 0, failingSinceS: null, restsUntilS: 0 })
    .where('id', '=', hookId)
    .execute()
}

/** Switches a hook off, if it is on. Nothing is sent to it from then on; `failWaiting` lists what waits for it as failed. */
export async function disableWebhook(tx: Db, hookId: string, reason: string): Promise<void> {
  await tx
    .updateTable('hook')
    .set({ disabledReason: reason, replayFrom: null })
    .where('id', '=', hookId)
    .where('disabledReason', 'is', null)
    .execute()
}

/** Notes that everything which failed is to be sent once more; `replayFailed` does it. */
export async function beginReplay(tx: Db, hookId: string): Promise<void> {
  await tx.updateTable('hook').set({ replayFrom: 0 }).where('id', '=', hookId).execute()
}

export async function removeWebhook(tx: Db, accountId: string, hookId: string): Promise<void> {
  await tx.deleteFrom('hook').where('accountId', '=', accountId).where('id', '=', hookId).execute()
}
