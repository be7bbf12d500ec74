import type { Logger } from 'pino'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { WebhookRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import type { Claim, Claims } from '../jobs/claims.ts'
import { type Dispatcher, type Job, startDispatcher } from '../jobs/dispatcher.ts'
import type { Signals } from '../signals/signals.ts'
import { type AttemptDeps, type AttemptResult, attemptDelivery } from './attempt.ts'
import { failPendingDeliveries } from './batch-jobs.ts'
import {
  type BusySlots,
  backOffWebhook,
  type ClaimedDelivery,
  claimDelivery,
  type DeliveryKind,
  findDueWebhook,
  listSendingWebhooks,
  otherKind,
  recordFailure,
  recordSuccess,
  settleDelivery,
} from './delivery-store.ts'
import type { RestoredCopy } from './restored-copy.ts'
import { endpointBackOffS, isEndpointDead, retryDelayS } from './schedule.ts'
import { disableWebhook } from './webhook-store.ts'

type WebhookSenderDeps = AttemptDeps & {
  db: Db
  write: Write
  claims: Pick<Claims, 'claimNext'>
  signals: Pick<Signals, 'on'>
  copy: Pick<RestoredCopy, 'isPaused'>
  /** Called in the transaction that switches a webhook off because it failed. */
  onDisabled(tx: Db, webhook: WebhookRow, reason: string): Promise<void>
  log: Logger
}

/** Concurrent attempts: in all, per account, and to endpoints whose last attempt failed, so that one that hangs delays no other. */
const MAX_ATTEMPTS = 32
const MAX_ATTEMPTS_PER_ACCOUNT = 8
const MAX_ATTEMPTS_FAILING = 16

/** How often to look for deliveries whose next attempt is due, or whose signal was missed. */
const POLL_INTERVAL_MS = 1_000

/** Sends deliveries as they become due, to each endpoint one after another. Pending deliveries are in the database, none of them in memory. */
export function startWebhookSender(deps: WebhookSenderDeps): Pick<Dispatcher, 'stop'> {
  const { db, claims, signals, nowS, copy, log } = deps
  /** Of each endpoint: the kind whose turn it is. */
  const turns = new Map<string, DeliveryKind>()

  async function claim(onlyUrgent: boolean): Promise<Job | undefined> {
    if (onlyUrgent || copy.isPaused()) return undefined
    return claims.claimNext({
      kind: 'webhook',
      find: async () => findDueWebhook(db, nowS(), busySlots(await listSendingWebhooks(db))),
      subjectOf: ({ id }) => id,
      async begin(tx, webhook) {
        if (!isWithinLimits(webhook, await listSendingWebhooks(tx))) return undefined
        const claimed = await claimDelivery(tx, webhook.id, nowS(), turns.get(webhook.id) ?? 'retry')
        return claimed && { ...claimed, webhook }
      },
      start({ webhook, delivery, kind }) {
        turns.set(webhook.id, otherKind(kind))
        return (claim, signal) => send(deps, { webhook, delivery, claim, signal })
      },
    })
  }

  const follows = { signals, work: 'webhook' } as const
  return startDispatcher({ slots: MAX_ATTEMPTS, claim, pollIntervalMs: POLL_INTERVAL_MS, follows, log })
}

type Sending = Awaited<ReturnType<typeof listSendingWebhooks>>

/** Whether no limit is exceeded with this endpoint, which is among them: another server may have claimed one since it was found. */
function isWithinLimits({ accountId, consecutiveFailures }: WebhookRow, sending: Sending): boolean {
  return (
    sending.filter((row) => row.accountId === accountId).length <= MAX_ATTEMPTS_PER_ACCOUNT &&
    (consecutiveFailures === 0 || sending.filter(isFailing).length <= MAX_ATTEMPTS_FAILING)
  )
}

function isFailing({ consecutiveFailures }: Sending[number]): boolean {
  return consecutiveFailures > 0
}

function busySlots(sending: Sending): BusySlots {
  const byAccount = Map.groupBy(sending, ({ accountId }) => accountId)
  return {
    accountIds: [...byAccount].flatMap(([accountId, rows]) => (rows.length < MAX_ATTEMPTS_PER_ACCOUNT ? [] : accountId)),
    onlyHealthy: sending.filter(isFailing).length >= MAX_ATTEMPTS_FAILING,
  }
}

type Attempt = { webhook: WebhookRow; delivery: ClaimedDelivery; claim: Claim; signal: AbortSignal }

async function send(deps: WebhookSenderDeps, { webhook, delivery, claim, signal }: Attempt): Promise<void> {
  const result = await attemptDelivery(deps, webhook, delivery, signal).catch((error: unknown) => {
    if (signal.aborted) return undefined
    throw error
  })
  const nowS = deps.nowS()
  const disabledReason = await claim.settle(async (tx) => {
    if (!result) return returnUnsent(tx, delivery)
    if (result.problem === undefined) return settleSuccess(tx, delivery, result, nowS)
    return settleFailure(deps, tx, delivery, result)
  })
  if (disabledReason === undefined) return
  deps.log.info({ accountId: webhook.accountId, webhookId: webhook.id, reason: disabledReason }, 'webhook: disabled')
  await failPendingDeliveries(deps, webhook.id, signal)
}

/** The server is stopping: this does not count as an attempt. */
async function returnUnsent(tx: Db, delivery: ClaimedDelivery): Promise<undefined> {
  await settleDelivery(tx, delivery, { state: 'waiting', dueAtS: 0, attempts: delivery.attempts - 1 })
}

async function settleSuccess(tx: Db, delivery: ClaimedDelivery, { status }: AttemptResult, nowS: number): Promise<undefined> {
  await settleDelivery(tx, delivery, { state: 'delivered', status: status ?? null, problem: null, finishedAtS: nowS })
  await recordSuccess(tx, delivery.webhookId, nowS)
}

/** In one transaction: the delivery's next attempt or its end, and the endpoint's back-off. @returns why the webhook was disabled, if it was */
async function settleFailure(
  deps: WebhookSenderDeps,
  tx: Db,
  delivery: ClaimedDelivery,
  { status, problem = '', retryAfterS }: AttemptResult,
): Promise<string | undefined> {
  const nowS = deps.nowS()
  const webhook = await recordFailure(tx, delivery.webhookId, nowS)
  if (!webhook) return undefined // deleted meanwhile
  const disabledReason = status === 410 ? GONE : isEndpointDead(webhook, nowS) ? DEAD : undefined
  const delayS = retryDelayS(delivery.attempts)
  const backOffS = endpointBackOffS(webhook.consecutiveFailures, retryAfterS)
  const isFinished = disabledReason !== undefined || webhook.disabledReason !== null || delayS === undefined
  const next = isFinished
    ? ({ state: 'failed', finishedAtS: nowS } as const)
    : ({ state: 'waiting', dueAtS: nowS + Math.max(delayS, backOffS) } as const)
  await settleDelivery(tx, delivery, { ...next, status: status ?? null, problem })
  await backOffWebhook(tx, webhook.id, nowS + backOffS)
  if (disabledReason !== undefined) {
    await disableWebhook(tx, webhook.id, disabledReason)
    const event = {
      atS: nowS,
      accountId: webhook.accountId,
      by: 'server',
      kind: 'hook:disabled',
      subjects: [webhook.id],
    } as const
    await recordAuditEvent(tx, { ...event, details: { reason: disabledReason } })
    await deps.onDisabled(tx, webhook, disabledReason)
  }
  return disabledReason
}

const GONE = 'The endpoint returned 410 Gone.'
const DEAD = 'No successful delivery for five days.'
