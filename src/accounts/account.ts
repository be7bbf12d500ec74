import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import { isCommitOutcomeUnknown } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { findAccountId } from './account-id.ts'
import { type AccountChanges, countAccounts, insertAccount, listAccounts, setDisabled, updateAccount } from './account-store.ts'
import { type AccountDeps, addApiKey } from './api-key.ts'
import { PERMISSIONS } from './permission.ts'

/**
 * Makes an account with one key that holds every permission.
 * @returns the key's text, the only copy: the database keeps its SHA-256
 */
export async function createAccount({ write, nowS }: AccountDeps, name: string, switches: AccountSettings) {
  return write((tx) => addAccount(tx, name, switches, nowS(), 'command-line'))
}

export type AccountSettings = { mayUpload: boolean; mayImport: boolean }

/** The same inside a transaction that makes more than the account. */
export async function addAccount(tx: Db, name: string, switches: AccountSettings, nowS: number, by: Actor) {
  const accountId = newId()
  await insertAccount(tx, { id: accountId, name, createdAtS: nowS, ...switches })
  const { apiKey } = await addApiKey(tx, accountId, { name: 'first key', permissions: PERMISSIONS }, nowS)
  const details = { name, ...switches }
  await recordAuditEvent(tx, { atS: nowS, accountId, by, kind: 'account:created', subjects: [accountId], details })
  return { accountId, apiKey }
}

/**
 * Changes what an account may ask for; its next request has it.
 * @throws Failure as `accountIdOf`
 */
export async function changeAccount({ write, nowS }: AccountDeps, idOrName: string, changes: AccountChanges) {
  return write(async (tx) => {
    const accountId = await findAccountId(tx, idOrName)
    await updateAccount(tx, accountId, changes)
    const act = { accountId, by: 'command-line', kind: 'account:changed', subjects: [accountId], details: changes } as const
    await recordAuditEvent(tx, { atS: nowS(), ...act })
    return { accountId, ...changes }
  })
}

/** The playback sessions of an account, which end with it. */
export type AccountSessions = {
  /** Ends them, inside the transaction that disables it. */
  end(tx: Db, accountId: string): Promise<void>
  /** Told after that commit: memory tells viewers. */
  ended(accountId: string): void
}

/**
 * Closes an account, or opens it again. Durable when it resolves: its keys are refused from their next request on, its viewers get no
 * further key, its OTPs open nothing until it is enabled. Its videos stay, and what is being encoded is encoded to the end.
 * @throws Failure as `accountIdOf`
 */
export async function setAccountDisabled(deps: AccountDeps & { sessions: AccountSessions }, idOrName: string, disabled: boolean) {
  const accountId = await findAccountId(deps.db, idOrName)
  const tellSessions = () => disabled && deps.sessions.ended(accountId)
  await deps
    .write(async (tx) => {
      if (!(await setDisabled(tx, accountId, disabled))) return
      if (disabled) await deps.sessions.end(tx, accountId)
      const kind = disabled ? 'account:disabled' : 'account:enabled'
      await recordAuditEvent(tx, { atS: deps.nowS(), accountId, by: 'command-line', kind, subjects: [accountId] })
    })
    .catch((error) => {
      if (isCommitOutcomeUnknown(error)) tellSessions() // nobody may watch on if it was kept
      throw error
    })
  tellSessions()
  return { accountId, disabled }
}

/** True until the first account exists. */
export async function hasNoAccounts({ db }: Pick<AccountDeps, 'db'>): Promise<boolean> {
  return (await countAccounts(db)) === 0
}

export async function findAccounts({ db }: AccountDeps) {
  return listAccounts(db)
}

/**
 * The account of this name or id; without one, the oldest that may upload.
 * @throws Failure `not-found`, or `conflict` when two have the name
 */
export async function getAccount({ db }: Pick<AccountDeps, 'db'>, nameOrId: string | undefined) {
  const accounts = (await listAccounts(db)).filter(({ disabled }) => !disabled)
  const wanted = nameOrId === undefined ? undefined : await findAccountId(db, nameOrId)
  const found = accounts.find(({ id, mayUpload }) => (wanted === undefined ? mayUpload : id === wanted))
  if (found) return found
  if (wanted !== undefined)
    throw new Failure('forbidden', `The account "${nameOrId}" is disabled. Enable it with "reelgate account enable".`)
  throw new Failure('not-found', 'No account may upload. Make one with "reelgate account create NAME".')
}
