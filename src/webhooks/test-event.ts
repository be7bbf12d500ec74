import { recordAuditEvent } from '../audit/audit-log.ts'
import { Failure } from '../errors.ts'
import { type AttemptDeps, attemptDelivery } from './attempt.ts'
import { getWebhook, type WebhookDeps, type WebhookTarget } from './webhook.ts'
import { findAccountOfWebhook } from './webhook-store.ts'

export type TestDeps = Pick<WebhookDeps, 'db' | 'write'> & AttemptDeps

/** What the endpoint answered. `status` is null where there was no response, `problem` where it accepted the event. */
type TestResult = { status: number | null; problem: string | null }

/**
 * Sends one event `test` now, also to a webhook that is off. It is not a delivery: it is neither listed nor repeated, and changes
 * nothing about the webhook.
 * @throws Failure `not-found`
 */
export async function testWebhook(deps: TestDeps, { accountId, by, webhookId }: WebhookTarget): Promise<TestResult> {
  const webhook = await getWebhook(deps, accountId, webhookId)
  const timeMs = deps.wallNowS() * 1000
  const body = JSON.stringify({ hookId: webhookId, event: 'test', time: timeMs, sequence: 0, payload: {} })
  const event = { atS: deps.nowS(), accountId, by, kind: 'hook:tested', subjects: [webhookId] } as const
  await deps.write((tx) => recordAuditEvent(tx, event))
  // A number that no delivery has: the receiver must not take the event for one that it knows.
  const { status, problem } = await attemptDelivery(
    deps,
    webhook,
    { webhookId, sequence: timeMs, body, attempts: 1 },
    AbortSignal.timeout(60_000),
  )
  return { status: status ?? null, problem: problem ?? null }
}

/** The same for the operator, who may name a webhook of any account. */
export async function testWebhookOfAnyAccount(deps: TestDeps, webhookId: string): Promise<TestResult> {
  const accountId = await findAccountOfWebhook(deps.db, webhookId)
  if (accountId === undefined)
    throw new Failure('not-found', `There is no webhook ${webhookId}. See reelgate webhook list ACCOUNT.`)
  return testWebhook(deps, { accountId, by: 'command-line', webhookId })
}
