import { sql } from 'kysely'
import { countRows } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { DeliveryRow, WebhookRow } from '../db/tables.ts'
import { claimedSubjects } from '../jobs/claim-store.ts'

// Deliveries in their states: waiting → sending → delivered, failed, or waiting once more. An endpoint gets one at a time: retries that
// are due and new events take turns, each in their order.

/** The endpoints that any process sends to. */
export async function listSendingWebhooks(db: Db): Promise<Pick<WebhookRow, 'accountId' | 'consecutiveFailures'>[]> {
  return db
    .selectFrom('claim')
    .innerJoin('webhook', 'webhook.id', 'claim.subject')
    .select(['accountId', 'consecutiveFailures'])
    .where('claim.kind', '=', 'webhook')
    .where('claim.id', 'is not', null)
    .execute()
}

/** What the senders that are at work leave to others. */
export type BusySlots = { accountIds: readonly string[]; onlyHealthy: boolean }

/** The endpoint that has waited longest for something that is due. */
export async function findDueWebhook(
  db: Db,
  nowS: number,
  { accountIds, onlyHealthy }: BusySlots,
): Promise<WebhookRow | undefined> {
  return db
    .selectFrom('webhook')
    .selectAll()
    .where('disabledReason', 'is', null)
    .where('nextAttemptAtS', '<=', nowS)
    .where('webhook.id', 'not in', claimedSubjects(db, 'webhook', nowS))
    .$if(accountIds.length > 0, (webhooks) => webhooks.where('accountId', 'not in', accountIds))
    .$if(onlyHealthy, (webhooks) => webhooks.where('consecutiveFailures', '=', 0))
    .where((webhook) =>
      webhook.exists(
        webhook
          .selectFrom('delivery')
          .select('sequence')
          .whereRef('webhookId', '=', 'webhook.id')
          .where('finishedAtS', 'is', null)
          .where('dueAtS', '<=', nowS),
      ),
    )
    .orderBy('nextAttemptAtS')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

/** Deliveries of all endpoints that are neither delivered nor failed for good. */
export async function countOpenDeliveries(db: Db): Promise<number> {
  return countRows(db.selectFrom('delivery').where('finishedAtS', 'is', null))
}

/** Of each endpoint that is on and has retries: when its oldest one became due, or will. */
export async function listOldestRetries(db: Db): Promise<{ webhookId: string; accountId: string; dueAtS: number }[]> {
  const rows = await db
    .selectFrom('webhook')
    .select((webhook) => [
      'id as webhookId',
      'accountId',
      webhook
        .selectFrom('delivery')
        .select(({ fn }) => fn.min('dueAtS').as('dueAtS'))
        .whereRef('webhookId', '=', 'webhook.id')
        .where('finishedAtS', 'is', null)
        .where('dueAtS', '>', 0)
        .as('dueAtS'),
    ])
    .where('disabledReason', 'is', null)
    .execute()
  return rows.flatMap(({ dueAtS, ...webhook }) => (dueAtS === null ? [] : { ...webhook, dueAtS: Number(dueAtS) }))
}

/** What one attempt sends. `attempts` counts it. */
export type ClaimedDelivery = Pick<DeliveryRow, 'webhookId' | 'sequence' | 'body' | 'attempts'>

/** New events are due from the beginning, retries from a time on. */
export type DeliveryKind = 'new' | 'retry'

/**
 * Takes the endpoint's next delivery. The caller has the claim on the endpoint.
 * @param first the kind whose turn it is; without one that is due, the other has it
 */
export async function claimDelivery(
  tx: Db,
  webhookId: string,
  nowS: number,
  first: DeliveryKind,
): Promise<{ delivery: ClaimedDelivery; kind: DeliveryKind } | undefined> {
  for (const kind of [first, otherKind(first)]) {
    const delivery = await claimOfKind(tx, webhookId, nowS, kind)
    if (delivery) return { delivery, kind }
  }
  return undefined
}

export function otherKind(kind: DeliveryKind): DeliveryKind {
  return kind === 'new' ? 'retry' : 'new'
}

async function claimOfKind(tx: Db, webhookId: string, nowS: number, kind: DeliveryKind): Promise<ClaimedDelivery | undefined> {
  return tx
    .updateTable('delivery')
    .set((delivery) => ({ state: 'sending' as const, attempts: delivery('attempts', '+', 1), triedAtS: nowS }))
    .where('webhookId', '=', webhookId)
    .where('sequence', '=', (of) =>
      of
        .selectFrom('delivery')
        .select('sequence')
        .where('webhookId', '=', webhookId)
        .where('finishedAtS', 'is', null)
        .where('dueAtS', '<=', kind === 'new' ? 0 : nowS)
        .where('dueAtS', '>', kind === 'new' ? -1 : 0)
        .orderBy('dueAtS')
        .orderBy('sequence')
        .limit(1),
    )
    .returning(['webhookId', 'sequence', 'body', 'attempts'])
    .executeTakeFirst()
}

type Settled = Partial<Pick<DeliveryRow, 'state' | 'status' | 'problem' | 'finishedAtS' | 'dueAtS' | 'attempts'>>

/** Records what became of an attempt. False: another has been made since, which speaks for the delivery. */
export async function settleDelivery(tx: Db, { webhookId, sequence, attempts }: ClaimedDelivery, settled: Settled) {
  const { numUpdatedRows } = await tx
    .updateTable('delivery')
    .set(settled)
    .where(({ and }) => and({ webhookId, sequence, attempts, state: 'sending' }))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function recordSuccess(tx: Db, webhookId: string, nowS: number): Promise<void> {
  await tx
    .updateTable('webhook')
    .set({ consecutiveFailures: 0, failingSinceS: null, nextAttemptAtS: nowS })
    .where('id', '=', webhookId)
    .execute()
}

/** @returns the webhook with this failure counted; undefined when it was deleted meanwhile */
export async function recordFailure(tx: Db, webhookId: string, nowS: number): Promise<WebhookRow | undefined> {
  return tx
    .updateTable('webhook')
    .set((webhook) => ({
      consecutiveFailures: webhook('consecutiveFailures', '+', 1),
      failingSinceS: webhook.fn.coalesce('failingSinceS', webhook.val(nowS)),
    }))
    .where('id', '=', webhookId)
    .returningAll()
    .executeTakeFirst()
}

export async function backOffWebhook(tx: Db, webhookId: string, untilS: number): Promise<void> {
  await tx.updateTable('webhook').set({ nextAttemptAtS: untilS }).where('id', '=', webhookId).execute()
}

/** What a sender that ended was sending to an endpoint is due again: whether it arrived is not known. */
export async function releaseDeliveries(tx: Db, webhookId: string): Promise<void> {
  await tx
    .updateTable('delivery')
    .set({ state: 'waiting', dueAtS: 0 })
    .where('webhookId', '=', webhookId)
    .where('finishedAtS', 'is', null)
    .where('dueAtS', '>=', 0) // always true: selects the index of open deliveries
    .where('state', '=', 'sending')
    .execute()
}

/** Newest first. */
export async function listDeliveryRows(
  db: Db,
  webhookId: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<DeliveryRow[]> {
  return db
    .selectFrom('delivery')
    .selectAll()
    .where('webhookId', '=', webhookId)
    .orderBy('sequence', 'desc')
    .limit(limit)
    .offset(offset)
    .execute()
}

export async function countDeliveries(db: Db, webhookId: string): Promise<number> {
  return countRows(db.selectFrom('delivery').where('webhookId', '=', webhookId))
}

const AS_NEW = { state: 'waiting', attempts: 0, dueAtS: 0, finishedAtS: null } as const

/** Sends a delivery once more, from the beginning of its schedule. False: the webhook has no such delivery. */
export async function replayDelivery(tx: Db, webhookId: string, sequence: number): Promise<boolean> {
  const row = await tx
    .selectFrom('delivery')
    .select('state')
    .where(({ and }) => and({ webhookId, sequence }))
    .executeTakeFirst()
  if (!row) return false
  if (row.state === 'sending') return true // it is on its way
  await tx.updateTable('delivery').set(AS_NEW).where('webhookId', '=', webhookId).where('sequence', '=', sequence).execute()
  return true
}

/** Sends some of what failed once more, in its order, from where the webhook's replay has come to. @returns how many */
export async function replayFailedBatch(tx: Db, webhookId: string, limit: number): Promise<number> {
  const webhook = await tx.selectFrom('webhook').select('replayFromSequence').where('id', '=', webhookId).executeTakeFirst()
  if (!webhook || webhook.replayFromSequence === null) return 0
  const failed = await tx
    .selectFrom('delivery')
    .select('sequence')
    .where('webhookId', '=', webhookId)
    .where('state', '=', sql.lit('failed')) // written out, for the index of these alone
    .where('sequence', '>=', webhook.replayFromSequence)
    .orderBy('sequence')
    .limit(limit)
    .execute()
  const sequences = failed.map(({ sequence }) => sequence)
  await tx.updateTable('delivery').set(AS_NEW).where('webhookId', '=', webhookId).where('sequence', 'in', sequences).execute()
  const replayFromSequence = sequences.length < limit ? null : (sequences.at(-1) ?? 0) + 1
  await tx.updateTable('webhook').set({ replayFromSequence }).where('id', '=', webhookId).execute()
  return sequences.length
}

/** Lists as failed some of what waits for a webhook that is off. @returns how many; none while it is on */
export async function failPendingBatch(tx: Db, webhookId: string, nowS: number, limit: number): Promise<number> {
  const webhook = await tx.selectFrom('webhook').select('disabledReason').where('id', '=', webhookId).executeTakeFirst()
  if (!webhook || webhook.disabledReason === null) return 0
  const { numUpdatedRows } = await tx
    .updateTable('delivery')
    .set({ state: 'failed', problem: webhook.disabledReason, finishedAtS: nowS })
    .where('webhookId', '=', webhookId)
    .where('sequence', 'in', waitingFor(tx, webhookId).orderBy('dueAtS').limit(limit))
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

function waitingFor(db: Db, webhookId: string) {
  return db
    .selectFrom('delivery')
    .select('sequence')
    .where('webhookId', '=', webhookId)
    .where('finishedAtS', 'is', null)
    .where('state', '=', 'waiting')
}

/** Webhooks that are off while something waits for them, or whose replay has not come to its end. */
export async function listInterruptedBatches(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('webhook')
    .select('id')
    .where((webhook) =>
      webhook.or([
        webhook('replayFromSequence', 'is not', null),
        webhook.and([
          webhook('disabledReason', 'is not', null),
          webhook.exists(
            webhook
              .selectFrom('delivery')
              .select('sequence')
              .whereRef('webhookId', '=', 'webhook.id')
              .where('finishedAtS', 'is', null)
              .where('dueAtS', '>=', 0) // always true: selects the index of open deliveries
              .where('state', '=', 'waiting'),
          ),
        ]),
      ]),
    )
    .execute()
  return rows.map(({ id }) => id)
}

/** Removes some of a webhook's deliveries. @returns how many */
export async function removeDeliveries(tx: Db, webhookId: string, limit: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('delivery')
    .where('webhookId', '=', webhookId)
    .where('sequence', 'in', (of) => of.selectFrom('delivery').select('sequence').where('webhookId', '=', webhookId).limit(limit))
    .executeTakeFirst()
  return Number(numDeletedRows)
}

/** Removes some of the deliveries that were finished before then, the oldest first. @returns how many */
export async function removeOldDeliveries(tx: Db, beforeS: number, limit: number): Promise<number> {
  const old = await tx
    .selectFrom('delivery')
    .select(['webhookId', 'sequence'])
    .where('finishedAtS', '<', beforeS)
    .orderBy('finishedAtS')
    .limit(limit)
    .execute()
  for (const [webhookId, rows] of Map.groupBy(old, (row) => row.webhookId))
    await tx
      .deleteFrom('delivery')
      .where('webhookId', '=', webhookId)
      .where(
        'sequence',
        'in',
        rows.map(({ sequence }) => sequence),
      )
      .execute()
  return old.length
}
