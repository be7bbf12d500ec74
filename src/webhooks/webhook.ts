import { type Actor, type AuditKind, recordAuditEvent } from '../audit/audit-log.ts'
import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { WebhookRow } from '../db/tables.ts'
import type { AlsoInTransaction, Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { assertPublicDestination, type OutboundPolicy } from '../outbound/policy.ts'
import { BATCH_SIZE, failPendingDeliveries } from './batch-jobs.ts'
import { failPendingBatch, removeDeliveries } from './delivery-store.ts'
import type { WebhookEvent } from './event.ts'
import { newWebhookSecret } from './signature.ts'
import {
  disableWebhook,
  enableWebhook,
  findWebhook,
  insertWebhook,
  listWebhookRows,
  removeWebhook,
  replaceSecret,
  type Webhook,
} from './webhook-store.ts'

/** `nowS` is the playback clock: a step of the wall clock neither causes an early retry nor ends a rotation. */
export type WebhookDeps = { db: Db; write: Write; nowS: () => number; masterKey: MasterKey; outbound: OutboundPolicy }

/** With its secret, which is shown only once. */
export type NewWebhook = Webhook & { secret: string }

/** The webhook that an owner's call changes, and who makes the call. */
export type WebhookTarget = { accountId: string; by: Actor; webhookId: string }

const MAX_WEBHOOKS = 20
/** How long an older secret is used for signing in addition to its successor. */
const ROTATION_S = 24 * 3600
const DISABLED_BY_OWNER = 'It was switched off.'

export async function listWebhooks({ db }: Pick<WebhookDeps, 'db'>, accountId: string): Promise<Webhook[]> {
  return listWebhookRows(db, accountId)
}

/**
 * Creates a webhook. It gets every event from then on.
 * @param request.event undefined: all events
 * @throws Failure `invalid` for a URL that must not be called; `conflict` when the account has too many webhooks
 */
export async function createWebhook(
  deps: WebhookDeps,
  request: { accountId: string; by: Actor; url: string; event: WebhookEvent | undefined; isEnabled: boolean },
  alsoInTransaction?: AlsoInTransaction<NewWebhook>,
): Promise<NewWebhook> {
  const { accountId, by } = request
  const { href: url } = await assertPublicDestination(deps.outbound, accountId, request.url)
  const id = newId()
  const secret = newWebhookSecret()
  const row = {
    id,
    accountId,
    url,
    event: request.event ?? null,
    createdAtS: deps.nowS(),
    disabledReason: request.isEnabled ? null : DISABLED_BY_OWNER,
  }
  const created = { ...row, failingSinceS: null, secret }
  await deps.write(async (tx) => {
    if (!(await insertWebhook(tx, { ...row, wrappedSecret: wrapSecret(deps.masterKey, id, secret) }, MAX_WEBHOOKS)))
      throw new Failure('conflict', `An account may have at most ${MAX_WEBHOOKS} webhooks. Delete one first.`)
    await recordWebhookEvent(deps, tx, { accountId, by, webhookId: id }, 'hook:created')
    await alsoInTransaction?.(tx, created)
  })
  return created
}

/** Deletes a webhook with its pending deliveries and its log, in batches. @throws Failure `not-found` */
export async function deleteWebhook(deps: WebhookDeps, target: WebhookTarget): Promise<void> {
  const { accountId, webhookId } = target
  /** @returns whether the webhook is gone; false: deliveries are left */
  async function deleteBatch(tx: Db): Promise<boolean> {
    await getWebhook({ db: tx }, accountId, webhookId)
    if ((await removeDeliveries(tx, webhookId, BATCH_SIZE)) === BATCH_SIZE) return false
    await removeWebhook(tx, accountId, webhookId)
    await recordWebhookEvent(deps, tx, target, 'hook:deleted')
    return true
  }
  while (!(await deps.write(deleteBatch)));
}

/** Enables or disables a webhook. Events while it is disabled are listed as failed deliveries. @throws Failure `not-found` */
export async function setWebhookEnabled(deps: WebhookDeps, target: WebhookTarget, isEnabled: boolean): Promise<Webhook> {
  const { accountId, webhookId } = target
  /** @returns whether the change is made; false: deliveries are still pending */
  async function failBatchThenSwitch(tx: Db): Promise<boolean> {
    await getWebhook({ db: tx }, accountId, webhookId)
    // What has been pending since it was disabled is listed as failed, too, before anything is sent again.
    if ((await failPendingBatch(tx, webhookId, deps.nowS(), BATCH_SIZE)) === BATCH_SIZE) return false
    if (isEnabled) await enableWebhook(tx, webhookId)
    else await disableWebhook(tx, webhookId, DISABLED_BY_OWNER)
    await recordWebhookEvent(deps, tx, target, isEnabled ? 'hook:enabled' : 'hook:disabled')
    return true
  }
  while (!(await deps.write(failBatchThenSwitch)));
  await failPendingDeliveries(deps, webhookId)
  return getWebhook(deps, accountId, webhookId)
}

/**
 * Gives a webhook a new secret. For a day deliveries are signed with the previous one as well, so that the receiver can change over.
 * @returns the new secret; it is shown only here
 * @throws Failure `not-found`
 */
export async function rotateSecret(deps: WebhookDeps, target: WebhookTarget): Promise<string> {
  const { accountId, webhookId } = target
  const secret = newWebhookSecret()
  const previousEndsAtS = deps.nowS() + ROTATION_S
  await deps.write(async (tx) => {
    const wrapped = wrapSecret(deps.masterKey, webhookId, secret)
    if (!(await replaceSecret(tx, accountId, webhookId, { wrapped, previousEndsAtS }))) throw webhookNotFound()
    await recordWebhookEvent(deps, tx, target, 'hook:rotated')
  })
  return secret
}

async function recordWebhookEvent(
  { nowS }: Pick<WebhookDeps, 'nowS'>,
  tx: Db,
  { accountId, by, webhookId }: WebhookTarget,
  kind: AuditKind,
): Promise<void> {
  await recordAuditEvent(tx, { atS: nowS(), accountId, by, kind, subjects: [webhookId] })
}

/** The secrets that sign deliveries now, newest first. */
export function getSigningSecrets({ masterKey, nowS }: Pick<WebhookDeps, 'masterKey' | 'nowS'>, webhook: WebhookRow): string[] {
  const isOlderValid = webhook.previousWrappedSecret !== null && nowS() < (webhook.previousSecretExpiresAtS ?? 0)
  const wrapped = isOlderValid ? [webhook.wrappedSecret, webhook.previousWrappedSecret] : [webhook.wrappedSecret]
  return wrapped.flatMap((secret) =>
    secret === null ? [] : unwrap(masterKey, webhookSecretPurpose(webhook.id), secret).toString('ascii'),
  )
}

function wrapSecret(masterKey: MasterKey, webhookId: string, secret: string): Buffer {
  return wrap(masterKey, webhookSecretPurpose(webhookId), Buffer.from(secret, 'ascii'))
}

export function webhookSecretPurpose(webhookId: string): string {
  return `reelgate hook-secret 1 ${webhookId}`
}

/** @throws Failure `not-found`, the same for an id that does not exist and for another account's */
export async function getWebhook({ db }: Pick<WebhookDeps, 'db'>, accountId: string, webhookId: string): Promise<WebhookRow> {
  const webhook = await findWebhook(db, accountId, webhookId)
  if (!webhook) throw webhookNotFound()
  return webhook
}

function webhookNotFound(): Failure {
  return new Failure('not-found', 'Webhook not found')
}
