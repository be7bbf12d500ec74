import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { insertAuditEvents, listAuditRows, removeAuditEventsBefore } from './audit-store.ts'

// The audit record: who did what to an account, written in the transaction that does it, so that there is neither without the other.

const ACT_KINDS = [
  'account:created',
  'account:changed',
  'account:disabled',
  'account:enabled',
  'key:created',
  'key:rotated',
  'key:revoked',
  'ban:began',
  'ban:lifted',
  'video:edited',
  'video:deleted',
  'tags:added',
  'tags:replaced',
  'tags:removed',
  'folder:created',
  'folder:changed',
  'folder:deleted',
  'file:added',
  'file:deleted',
  'file:downloaded',
  'mp4:requested',
  'otp:reused',
  'hook:created',
  'hook:enabled',
  'hook:disabled',
  'hook:resumed',
  'hook:rotated',
  'hook:replayed',
  'hook:deleted',
] as const
export type AuditAction = (typeof ACT_KINDS)[number]

/** Who acts: an API key, or whoever is not asked for one. */
export type Actor = { apiKeyId: string } | 'command-line' | 'server' | 'viewer'

export type AuditEvent = {
  atS: number
  /** Undefined where it concerns no account. */
  accountId: string | undefined
  by: Actor
  kind: AuditAction
  /** Ids of what it is done to, each of which gets a row. */
  subjects: readonly string[]
  /** Small, and never a secret. */
  details?: Readonly<Record<string, unknown>>
}

/** Notes a management act, in the transaction that does it. */
export async function recordAuditEvent(tx: Db, { atS, accountId, by, kind, subjects, details }: AuditEvent): Promise<void> {
  const actor = typeof by === 'string' ? by : by.apiKeyId
  const rest = { atS, accountId: accountId ?? null, actor, action: kind, details: details ? JSON.stringify(details) : null }
  await insertAuditEvents(
    tx,
    subjects.map((subject) => ({ ...rest, subject })),
  )
}

/** The newest acts first: of an account, or of all. */
export async function listAuditEvents(db: Db, accountId: string | undefined, limit: number) {
  const rows = await listAuditRows(db, accountId, limit)
  return rows.map(({ details, ...row }) => ({ ...row, details: details === null ? null : JSON.parse(details) }))
}

const KEPT_S = 366 * 24 * 3600
const REMOVED_AT_ONCE = 1_000

/** Removes acts of more than a year ago. */
export async function pruneAuditLog({ write, nowS }: { write: Write; nowS: () => number }): Promise<void> {
  while ((await write((tx) => removeAuditEventsBefore(tx, nowS() - KEPT_S, REMOVED_AT_ONCE))) > 0);
}
