import type { Logger } from 'pino'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { WebhookRow } from '../db/tables.ts'
import type { Write } from '../db/write.ts'
import { type Job, startDispatcher } from '../jobs/dispatcher.ts'
import { ATTEMPT_TIMEOUT_MS, type Attempt, type AttemptDeps, attemptDelivery } from './attempt.ts'
import { failPendingDeliveries } from './batch-jobs.ts'
import {
  backOffWebhook,
  type ClaimedDelivery,
  claimDelivery,
  findDueWebhook,
  recordFailure,
  recordSuccess,
  resumeInterruptedDeliveries,
  settleDelivery,
} from './delivery-store.ts'
import type { RestoredCopy } from './restored-copy.ts'
import { endpointBackOffS, isEndpointDead, retryDelayS } from './schedule.ts'
import { disableWebhook } from './webhook-store.ts'

export type WebhookSenderDeps = AttemptDeps & {
  db: Db
  write: Write
  copy: Pick<RestoredCopy, 'isPaused'>
  log: Logger
}

/** Attempts at once, in all, of one account, and of endpoints that have just failed: who hangs holds up no one else. */
const PLACES = 32
const PLACES_OF_ACCOUNT = 8
const PLACES_OF_FAILING = 16
/** Beyond the longest attempt, so that nobody sends what somebody is sending. */
const LEASE_S = ATTEMPT_TIMEOUT_MS / 1000 + 40

/** How soon a change is noticed that may have brought events, and how often what has become due. */
const LOOK_EVERY_MS = 100
const LOOK_ANYWAY_EVERY = 10

/** Sends deliveries as they become due, one after the other to each endpoint. What waits lies in the database, none of it in memory. */
export async function startWebhookSender(deps: WebhookSenderDeps): Promise<{ stop(): Promise<void> }> {
  const { db, write, nowS, copy, log } = deps
  const engaged = new Map<string, WebhookRow>()
  await write(resumeInterruptedDeliveries)

  async function claim(onlyUrgent: boolean): Promise<Job | undefined> {
    if (onlyUrgent || copy.isPaused()) return undefined
    const hook = await findDueWebhook(db, nowS(), roomBeside([...engaged.values()]))
    const delivery = hook && (await write((tx) => claimDelivery(tx, hook.id, { nowS: nowS(), endsAtS: nowS() + LEASE_S })))
    if (!delivery) return undefined
    engaged.set(hook.id, hook)
    return { key: hook.id, run: (signal) => send(deps, hook, delivery, signal).finally(() => engaged.delete(hook.id)) }
  }

  const dispatcher = startDispatcher({ places: PLACES, claim, log })
  let seenCommits = -1
  let looks = 0
  const timer = setInterval(() => {
    if (write.commits() === seenCommits && looks++ % LOOK_ANYWAY_EVERY !== 0) return
    seenCommits = write.commits()
    dispatcher.wake()
  }, LOOK_EVERY_MS)
  return {
    async stop() {
      clearInterval(timer)
      await dispatcher.stop()
    },
  }
}

function roomBeside(engaged: readonly WebhookRow[]) {
  const ofAccount = Map.groupBy(engaged, ({ accountId }) => accountId)
  return {
    hookIds: engaged.map(({ id }) => id),
    accountIds: [...ofAccount].flatMap(([accountId, hooks]) => (hooks.length < PLACES_OF_ACCOUNT ? [] : accountId)),
    onlyHealthy: engaged.filter(({ consecutiveFailures }) => consecutiveFailures > 0).length >= PLACES_OF_FAILING,
  }
}

async function send(deps: WebhookSenderDeps, hook: WebhookRow, delivery: ClaimedDelivery, signal: AbortSignal): Promise<void> {
  const outcome = await attemptDelivery(deps, hook, delivery, signal).catch((error: unknown) => {
    if (signal.aborted) return undefined
    throw error
  })
  const nowS = deps.nowS()
  const disabledReason = await deps.write(async (tx) => {
    if (!outcome) return giveBack(tx, delivery)
    if (outcome.problem === undefined) return settleSuccess(tx, delivery, outcome, nowS)
    return settleFailure(tx, delivery, outcome, nowS)
  })
  if (disabledReason === undefined) return
  deps.log.info({ accountId: hook.accountId, webhookId: hook.id, reason: disabledReason }, 'webhook: disabled')
  await failPendingDeliveries(deps, hook.id, signal)
}

/** The server stops: that is no fault of the endpoint's. */
async function giveBack(tx: Db, delivery: ClaimedDelivery): Promise<undefined> {
  await settleDelivery(tx, delivery, { state: 'waiting', dueAtS: 0, attempts: delivery.attempts - 1 })
}

async function settleSuccess(tx: Db, delivery: ClaimedDelivery, { status }: Attempt, nowS: number): Promise<undefined> {
  await settleDelivery(tx, delivery, { state: 'delivered', status: status ?? null, problem: null, finishedAtS: nowS })
  await recordSuccess(tx, delivery.webhookId, nowS)
}

/** One transaction: the delivery's next attempt or its end, and what the endpoint's failures bring about. @returns why it was switched off, if it was */
async function settleFailure(
  tx: Db,
  delivery: ClaimedDelivery,
  { status, problem = '', retryAfterS }: Attempt,
  nowS: number,
): Promise<string | undefined> {
  const hook = await recordFailure(tx, delivery.webhookId, nowS)
  if (!hook) return undefined // deleted meanwhile
  const disabledReason = status === 410 ? GONE : isEndpointDead(hook, nowS) ? DEAD : undefined
  const waitS = retryDelayS(delivery.attempts)
  const restS = endpointBackOffS(hook.consecutiveFailures, retryAfterS)
  const isOver = disabledReason !== undefined || hook.disabledReason !== null || waitS === undefined
  const next = isOver
    ? ({ state: 'failed', finishedAtS: nowS } as const)
    : ({ state: 'waiting', dueAtS: nowS + Math.max(waitS, restS) } as const)
  await settleDelivery(tx, delivery, { ...next, status: status ?? null, problem })
  await backOffWebhook(tx, hook.id, nowS + restS)
  if (disabledReason !== undefined) {
    await disableWebhook(tx, hook.id, disabledReason)
    const act = { atS: nowS, accountId: hook.accountId, by: 'server', kind: 'hook:disabled', subjects: [hook.id] } as const
    await recordAuditEvent(tx, { ...act, details: { reason: disabledReason } })
  }
  return disabledReason
}

const GONE = 'It answered 410: it wants no more deliveries.'
const DEAD = 'It has taken no delivery for five days.'
