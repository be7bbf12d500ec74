import { type ActKind, type Actor, noteAct } from '../audit/audit-log.ts'
import { type MasterKey, unwrap, wrap } from '../crypto/master-key.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { HookRow } from '../db/tables.ts'
import type { Alongside, Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { type Outbound, refuseInside } from '../outbound/policy.ts'
import { AT_ONCE, failWaiting } from './batch-jobs.ts'
import { failSomeWaiting, removeDeliveries } from './delivery-store.ts'
import type { HookEvent } from './event.ts'
import { newHookSecret } from './signature.ts'
import {
  disableHook,
  enableHook,
  findHook,
  type Hook,
  insertHook,
  listHooks,
  removeHook,
  replaceSecret,
} from './webhook-store.ts'

/** `nowS` is the playback clock: no step of the wall clock brings a retry forward or ends a rotation. */
export type HookDeps = { db: Db; write: Write; nowS: () => number; masterKey: MasterKey; outbound: Outbound }

/** With its secret, which is shown this once. */
export type NewHook = Hook & { secret: string }

const MOST_HOOKS = 20
/** How long an older secret signs beside its successor. */
const ROTATION_S = 24 * 3600
const SWITCHED_OFF = 'It was switched off.'

export async function findHooks({ db }: Pick<HookDeps, 'db'>, accountId: string): Promise<Hook[]> {
  return listHooks(db, accountId)
}

/**
 * Makes an endpoint, from the next event on.
 * @param request.event undefined: all of them
 * @throws Failure `invalid` for an address that may not be asked; `conflict` when the account has too many
 */
export async function createHook(
  deps: HookDeps,
  accountId: string,
  by: Actor,
  request: { url: string; event: HookEvent | undefined; isOn: boolean },
  alongside?: Alongside<NewHook>,
): Promise<NewHook> {
  const { href: url } = await refuseInside(deps.outbound, accountId, request.url)
  const id = newId()
  const secret = newHookSecret()
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
    if (!(await insertHook(tx, hook, MOST_HOOKS)))
      throw new Failure('conflict', `An account has at most ${MOST_HOOKS} hooks. Delete one first.`)
    await note(deps, tx, accountId, by, 'hook:created', id)
    await alongside?.(tx, made)
  })
  return made
}

/** Deletes an endpoint with everything that waits for it, and its log. @throws Failure `not-found` */
export async function deleteHook(deps: HookDeps, accountId: string, by: Actor, hookId: string): Promise<void> {
  async function isDeleted(tx: Db): Promise<boolean> {
    await getHook({ db: tx }, accountId, hookId)
    if ((await removeDeliveries(tx, hookId, AT_ONCE)) === AT_ONCE) return false
    await removeHook(tx, accountId, hookId)
    await note(deps, tx, accountId, by, 'hook:deleted', hookId)
    return true
  }
  while (!(await deps.write(isDeleted)));
}

/** Switches an endpoint on or off. What happens while it is off is listed as failed. @throws Failure `not-found` */
export async function switchHook(deps: HookDeps, accountId: string, by: Actor, hookId: string, isOn: boolean): Promise<Hook> {
  async function isSwitched(tx: Db): Promise<boolean> {
    await getHook({ db: tx }, accountId, hookId)
    // What has waited since it went off is listed as failed, too, before anything is sent again.
    if ((await failSomeWaiting(tx, hookId, deps.nowS(), AT_ONCE)) === AT_ONCE) return false
    if (isOn) await enableHook(tx, hookId)
    else await disableHook(tx, hookId, SWITCHED_OFF)
    await note(deps, tx, accountId, by, isOn ? 'hook:enabled' : 'hook:disabled', hookId)
    return true
  }
  while (!(await deps.write(isSwitched)));
  await failWaiting(deps, hookId)
  return getHook(deps, accountId, hookId)
}

/**
 * Gives an endpoint a new secret. For a day what is sent is signed with the one before, too, so that a receiver can change over.
 * @returns the new one; the only time that it is shown
 * @throws Failure `not-found`
 */
export async function rotateSecret(deps: HookDeps, accountId: string, by: Actor, hookId: string): Promise<string> {
  const secret = newHookSecret()
  const wrapped = wrapSecret(deps.masterKey, hookId, secret)
  const olderEndsAtS = deps.nowS() + ROTATION_S
  await deps.write(async (tx) => {
    if (!(await replaceSecret(tx, accountId, hookId, { wrapped, olderEndsAtS }))) throw notFound()
    await note(deps, tx, accountId, by, 'hook:rotated', hookId)
  })
  return secret
}

async function note({ nowS }: HookDeps, tx: Db, accountId: string, by: Actor, kind: ActKind, hookId: string): Promise<void> {
  await noteAct(tx, { atS: nowS(), accountId, by, kind, subjects: [hookId] })
}

/** The secrets with which a delivery is signed now, the newest first. */
export function secretsOf({ masterKey, nowS }: Pick<HookDeps, 'masterKey' | 'nowS'>, hook: HookRow): string[] {
  const isOlderValid = hook.olderWrappedSecret !== null && nowS() < (hook.olderSecretEndsAtS ?? 0)
  const wrapped = isOlderValid ? [hook.wrappedSecret, hook.olderWrappedSecret] : [hook.wrappedSecret]
  return wrapped.flatMap((secret) => (secret === null ? [] : unwrap(masterKey, secretPurpose(hook.id), secret).toString('ascii')))
}

function wrapSecret(masterKey: MasterKey, hookId: string, secret: string): Buffer {
  return wrap(masterKey, secretPurpose(hookId), Buffer.from(secret, 'ascii'))
}

function secretPurpose(hookId: string): string {
  return `reelgate hook-secret 1 ${hookId}`
}

/** @throws Failure `not-found`, the same for an id that does not exist and for another account's */
export async function getHook({ db }: Pick<HookDeps, 'db'>, accountId: string, hookId: string): Promise<HookRow> {
  const hook = await findHook(db, accountId, hookId)
  if (!hook) throw notFound()
  return hook
}

function notFound(): Failure {
  return new Failure('not-found', 'Hook not found')
}
