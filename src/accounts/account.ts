import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { Failure } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import { findAccountId } from './account-id.ts'
import {
  type AccountChanges,
  countAccounts,
  findAccountById,
  insertAccount,
  listAccounts,
  setDisabled,
  updateAccount,
} from './account-store.ts'
import { type AccountDeps, addApiKey } from './api-key.ts'
import { PERMISSIONS } from './permission.ts'

/**
 * Creates an account with one API key that has every permission.
 * @returns the key's secret, the only copy: the database stores its SHA-256
 */
export async function createAccount({ write, nowS }: AccountDeps, name: string, settings: AccountSettings) {
  return write((tx) => addAccount(tx, { name, ...settings, createdAtS: nowS(), by: 'command-line' }))
}

type AccountSettings = { mayUpload: boolean; mayImport: boolean }

type NewAccount = AccountSettings & { name: string; createdAtS: number; by: Actor }

/** Creates an account with one API key, within a larger transaction. */
export async function addAccount(tx: Db, account: NewAccount) {
  const accountId = await addEmptyAccount(tx, account)
  const { apiKey } = await addApiKey(tx, accountId, { name: 'first key', permissions: PERMISSIONS }, account.createdAtS)
  return { accountId, apiKey }
}

/** Creates an account without an API key: its people make their own. @returns its id */
export async function createEmptyAccount({ write, nowS }: AccountDeps, account: AccountSettings & { name: string }, by: Actor) {
  return write((tx) => addEmptyAccount(tx, { ...account, by, createdAtS: nowS() }))
}

/** The same within a larger transaction. */
async function addEmptyAccount(tx: Db, { by, ...account }: NewAccount): Promise<string> {
  const accountId = newId()
  const { createdAtS, ...details } = account
  await insertAccount(tx, { id: accountId, ...account })
  await recordAuditEvent(tx, { atS: createdAtS, accountId, by, kind: 'account:created', subjects: [accountId], details })
  return accountId
}

/**
 * Changes the settings of an account. They apply from its next request on.
 * @throws Failure as `findAccountId`
 */
export async function changeAccount(
  { write, nowS }: AccountDeps,
  idOrName: string,
  changes: AccountChanges,
  by: Actor = 'command-line',
) {
  return write(async (tx) => {
    const accountId = await findAccountId(tx, idOrName)
    if (Object.values(changes).every((value) => value === undefined)) return { accountId }
    await updateAccount(tx, accountId, changes)
    const { playerSentences, ...others } = changes
    // The log is no place for pages of text.
    const details = { ...others, ...(playerSentences !== undefined && { playerSentences: playerSentences !== null }) }
    const event = { accountId, by, kind: 'account:changed', subjects: [accountId], details } as const
    await recordAuditEvent(tx, { atS: nowS(), ...event })
    return { accountId, ...changes }
  })
}

export type AccountDisablingDeps = AccountDeps & {
  /** Ends the playback sessions of an account, in the transaction that disables it. */
  endAccountSessions(tx: Db, accountId: string, nowS: number): Promise<void>
  signals: Pick<Signals, 'send'>
}

/**
 * Disables an account, or enables it again. Durable when it resolves: its API keys are rejected from the next request on, its viewers get
 * no more content keys, its OTPs cannot be redeemed until it is enabled. Its videos remain, and running encodes are finished.
 * @throws Failure as `findAccountId`
 */
export async function setAccountDisabled(
  deps: AccountDisablingDeps,
  idOrName: string,
  disabled: boolean,
  by: Actor = 'command-line',
) {
  const accountId = await findAccountId(deps.db, idOrName)
  const reportEnd = () => disabled && void deps.signals.send('session-ended', { accountId, why: 'account-disabled' })
  const changed = deps.write(async (tx) => {
    if (!(await setDisabled(tx, accountId, disabled))) return
    if (disabled) await deps.endAccountSessions(tx, accountId, deps.nowS())
    const kind = disabled ? 'account:disabled' : 'account:enabled'
    await recordAuditEvent(tx, { atS: deps.nowS(), accountId, by, kind, subjects: [accountId] })
  })
  await changed.catch((error) => {
    if (isCommitOutcomeUnknown(error)) reportEnd() // if it was committed, no viewer may continue
    throw error
  })
  reportEnd()
  return { accountId, disabled }
}

/** An account with its settings. @throws Failure `not-found` */
export async function getAccountById({ db }: Pick<AccountDeps, 'db'>, accountId: string) {
  const account = await findAccountById(db, accountId)
  if (!account) throw new Failure('not-found', 'There is no such account.')
  return account
}

/** True until the first account exists. */
export async function hasNoAccounts({ db }: Pick<AccountDeps, 'db'>): Promise<boolean> {
  return (await countAccounts(db)) === 0
}

export async function findAccounts({ db }: AccountDeps) {
  return listAccounts(db)
}

/**
 * The account with this name or id; without one, the oldest account that may upload.
 * @throws Failure `not-found`, or `conflict` when two have the name
 */
export async function getAccount({ db }: Pick<AccountDeps, 'db'>, nameOrId: string | undefined) {
  const accounts = (await listAccounts(db)).filter(({ disabled }) => !disabled)
  const wantedId = nameOrId === undefined ? undefined : await findAccountId(db, nameOrId)
  const found = accounts.find(({ id, mayUpload }) => (wantedId === undefined ? mayUpload : id === wantedId))
  if (found) return found
  if (wantedId !== undefined)
    throw new Failure('forbidden', `The account "${nameOrId}" is disabled. Enable it with "reelgate account enable".`)
  throw new Failure('not-found', 'No account may upload. Create one with "reelgate account create NAME".')
}
