import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { DeliveryRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { replayFailedDeliveries } from './batch-jobs.ts'
import { countDeliveries, listDeliveryRows, replayDelivery } from './delivery-store.ts'
import { getWebhook, type WebhookDeps, type WebhookTarget } from './webhook.ts'
import { beginReplay } from './webhook-store.ts'

/** `slowQueryDb`: a log may be long, so it is read in its own thread. */
export type DeliveryLogDeps = WebhookDeps & { slowQueryDb: Db }

/** A page of a webhook's deliveries, newest first, and the number of all of them. @throws Failure `not-found` */
export async function listDeliveries(
  deps: DeliveryLogDeps,
  accountId: string,
  webhookId: string,
  { page, limit }: { page: number; limit: number },
): Promise<{ count: number; deliveries: DeliveryRow[] }> {
  await getWebhook(deps, accountId, webhookId)
  const count = await countDeliveries(deps.slowQueryDb, webhookId)
  const offset = (page - 1) * limit
  return { count, deliveries: offset < count ? await listDeliveryRows(deps.slowQueryDb, webhookId, { limit, offset }) : [] }
}

/**
 * Sends deliveries again. Their ids stay the same, so a receiver recognizes what it already has.
 * @param sequence one delivery; undefined: all that failed
 * @returns how many
 * @throws Failure `not-found`; `conflict` while the webhook is disabled
 */
export async function replayDeliveries(deps: WebhookDeps, target: WebhookTarget, sequence?: number): Promise<number> {
  const { accountId, by, webhookId } = target
  const atS = deps.nowS()
  await deps.write(async (tx) => {
    const { disabledReason } = await getWebhook({ db: tx }, accountId, webhookId)
    if (disabledReason !== null) throw new Failure('conflict', 'This webhook is disabled. Enable it with {"status":1} first.')
    const details = { deliveries: sequence ?? 'all that failed' }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'hook:replayed', subjects: [webhookId], details })
    if (sequence === undefined) await beginReplay(tx, webhookId)
    else if (!(await replayDelivery(tx, webhookId, sequence))) throw new Failure('not-found', 'Delivery not found')
  })
  return sequence === undefined ? replayFailedDeliveries(deps, webhookId) : 1
}
