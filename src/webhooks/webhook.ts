import { type Actor, type AuditAction, recordAuditEvent } from '../audit/audit-log.ts'
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

/** `nowS` is the playback clock: no step of the wall clock brings a retry forward or ends a rotation. */
export type WebhookDeps = { db: Db; write: Write; nowS: () => number; masterKey: MasterKey; outbound: OutboundPolicy }

/** With its secret, which is shown this once. */
export type NewWebhook = Webhook & { secret: string }

const MOST_HOOKS = 20
/** How long an older secret signs beside its successor. */
const ROTATION_S = 24 * 3600
const SWITCHED_OFF = 'It was switched off.'

export async function listWebhooks({ db }: Pick<WebhookDeps, 'db'>, accountId: string): Promise<Webhook[]> {
  return listWebhookRows(db, accountId)
}

/**
 * Makes an endpoint, from the next event on.
 * @param request.event undefined: all of them
 * @throws Failure `invalid` for an address that may not be asked; `conflict` when the account has too many
 */
export async function createWebhook(
  deps: WebhookDeps,
  accountId: string,
  by: Actor,
  request: { url: string; event: WebhookEvent | undefined; isOn: boolean },
  alongside?: AlsoInTransaction<NewWebhook>,
): Promise<NewWebhook> {
  const { href: url } = await assertPublicDestination(deps.outbound, accountId, request.url)
  const id = newId()
  const secret = newWebhookSecret()
  const hook = {
    id,
    accountId,
    url,
    event: request.event ?? null,
    wrappedSecret: wrapSecret(deps.masterKey, id, secret),
    createdAtS: deps.nowS(),
    disabledReason: request.isOn ? null : SWITCHED_OFF,
  }
  const made = { ...hook, failingSinceS: null, secret }
  await deps.write(async (tx) => {
    if (!(await insertWebhook(tx, hook, MOST_HOOKS)))
      throw new Failure('conflict', `An account has at most ${MOST_HOOKS} hooks. Delete one first.`)
    await note(deps, tx, accountId, by, 'hook:created', id)
    await alongside?.(tx, made)
  })
  return made
}

/** Deletes an endpoint with everything that waits for it, and its log. @throws Failure `not-found` */
export async function deleteWebhook(deps: WebhookDeps, accountId: string, by: Actor, webhookId: string): Promise<void> {
  async function isDeleted(tx: Db): Promise<boolean> {
    await getWebhook({ db: tx }, accountId, webhookId)
    if ((await removeDeliveries(tx, webhookId, BATCH_SIZE)) === BATCH_SIZE) return false
    await removeWebhook(tx, accountId, webhookId)
    await note(deps, tx, accountId, by, 'hook:deleted', webhookId)
    return true
  }
  while (!(await deps.write(isDeleted)));
}

/** Switches an endpoint on or off. What happens while it is off is listed as failed. @throws Failure `not-found` */
export async function setWebhookEnabled(
  deps: WebhookDeps,
  accountId: string,
  by: Actor,
  webhookId: string,
  isOn: boolean,
): Promise<Webhook> {
  async function isSwitched(tx: Db): Promise<boolean> {
    await getWebhook({ db: tx }, accountId, webhookId)
    // What has waited since it went off is listed as failed, too, before anything is sent again.
    if ((await failPendingBatch(tx, webhookId, deps.nowS(), BATCH_SIZE)) === BATCH_SIZE) return false
    if (isOn) await enableWebhook(tx, webhookId)
    else await disableWebhook(tx, webhookId, SWITCHED_OFF)
    await note(deps, tx, accountId, by, isOn ? 'hook:enabled' : 'hook:disabled', webhookId)
    return true
  }
  while (!(await deps.write(isSwitched)));
  await failPendingDeliveries(deps, webhookId)
  return getWebhook(deps, accountId, webhookId)
}

/**
 * Gives an endpoint a new secret. For a day what is sent is signed with the one before, too, so that a receiver can change over.
 * @returns the new one; the only time that it is shown
 * @throws Failure `not-found`
 */
export async function rotateSecret(deps: WebhookDeps, accountId: string, by: Actor, webhookId: string): Promise<string> {
  const secret = newWebhookSecret()
  const wrapped = wrapSecret(deps.masterKey, webhookId, secret)
  const olderEndsAtS = deps.nowS() + ROTATION_S
  await deps.write(async (tx) => {
    if (!(await replaceSecret(tx, accountId, webhookId, { wrapped, olderEndsAtS }))) throw notFound()
    await note(deps, tx, accountId, by, 'hook:rotated', webhookId)
  })
  return secret
}

async function note(
  { nowS }: WebhookDeps,
  tx: Db,
  accountId: string,
  by: Actor,
  kind: AuditAction,
  webhookId: string,
): Promise<void> {
  await recordAuditEvent(tx, { atS: nowS(), accountId, by, kind, subjects: [webhookId] })
}

/** The secrets with which a delivery is signed now, the newest first. */
export function getSigningSecrets({ masterKey, nowS }: Pick<WebhookDeps, 'masterKey' | 'nowS'>, hook: WebhookRow): string[] {
  const isOlderValid = hook.previousWrappedSecret !== null && nowS() < (hook.previousSecretExpiresAtS ?? 0)
  const wrapped = isOlderValid ? [hook.wrappedSecret, hook.previousWrappedSecret] : [hook.wrappedSecret]
  return wrapped.flatMap((secret) => (secret === null ? [] : unwrap(masterKey, secretPurpose(hook.id), secret).toString('ascii')))
}

function wrapSecret(masterKey: MasterKey, webhookId: string, secret: string): Buffer {
  return wrap(masterKey, secretPurpose(webhookId), Buffer.from(secret, 'ascii'))
}

function secretPurpose(webhookId: string): string {
  return `reelgate hook-secret 1 ${webhookId}`
}

/** @throws Failure `not-found`, the same for an id that does not exist and for another account's */
export async function getWebhook({ db }: Pick<WebhookDeps, 'db'>, accountId: string, webhookId: string): Promise<WebhookRow> {
  const hook = await findWebhook(db, accountId, webhookId)
  if (!hook) throw notFound()
  return hook
}

function notFound(): Failure {
  return new Failure('not-found', 'Hook not found')
}
