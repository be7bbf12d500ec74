import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { DeliveryRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { replayFailedDeliveries } from './batch-jobs.ts'
import { countDeliveries, listDeliveryRows, replayDelivery } from './delivery-store.ts'
import { getWebhook, type WebhookDeps } from './webhook.ts'
import { beginReplay } from './webhook-store.ts'

/** Logs are long, so they are read in a thread of their own. */
export type DeliveryLogDeps = WebhookDeps & { slowDb: Db }

/** A page of what was sent to an endpoint, newest first, and how many there are. @throws Failure `not-found` */
export async function listDeliveries(
  deps: DeliveryLogDeps,
  accountId: string,
  webhookId: string,
  wanted: { page: number; limit: number },
): Promise<{ count: number; deliveries: DeliveryRow[] }> {
  await getWebhook(deps, accountId, webhookId)
  const { limit } = wanted
  const count = await countDeliveries(deps.slowDb, webhookId)
  const offset = (wanted.page - 1) * limit
  return { count, deliveries: offset < count ? await listDeliveryRows(deps.slowDb, webhookId, { limit, offset }) : [] }
}

/**
 * Sends again, under the same id, so that a receiver which has it already knows.
 * @param sequence one delivery; undefined: all that failed
 * @returns how many
 * @throws Failure `not-found`; `conflict` while the hook is off
 */
export async function replayDeliveries(
  deps: WebhookDeps,
  accountId: string,
  by: Actor,
  webhookId: string,
  sequence: number | undefined,
): Promise<number> {
  const atS = deps.nowS()
  await deps.write(async (tx) => {
    const { disabledReason } = await getWebhook({ db: tx }, accountId, webhookId)
    if (disabledReason !== null) throw new Failure('conflict', 'This hook is off. Switch it on by status 1, then replay.')
    const details = { deliveries: sequence ?? 'all that failed' }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'hook:replayed', subjects: [webhookId], details })
    if (sequence === undefined) await beginReplay(tx, webhookId)
    else if (!(await replayDelivery(tx, webhookId, sequence))) throw new Failure('not-found', 'Delivery not found')
  })
  return sequence === undefined ? replayFailedDeliveries(deps, webhookId) : 1
}
