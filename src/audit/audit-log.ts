import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { findLastOfInstallation, insertAuditEvents, listAuditRows, removeAuditEventsBefore } from './audit-store.ts'

// Who did what to an account, written in the transaction that does it, so that there is neither without the other.

const AUDIT_KINDS = [
  'account:created',
  'account:changed',
  'account:disabled',
  'account:enabled',
  'key:created',
  'key:rotated',
  'key:revoked',
  'upload-token:created',
  'upload-token:revoked',
  'user:created',
  'user:link-made',
  'user:signed-in',
  'user:changed',
  'user:deleted',
  'user:password-set',
  'sign-in:ended',
  'account:looked-at',
  'passkey:added',
  'passkey:removed',
  'master-key:rotated',
  'storage:move-began',
  'worker:added',
  'worker:changed',
  'worker:removed',
  'server:changed',
  'ban:began',
  'ban:lifted',
  'video:edited',
  'video:moved-in',
  'video:reencrypted',
  'video:part-encoded',
  'video:part-same',
  'video:retried',
  'video:replacement-requested',
  'video:trimmed',
  'video:replacement-cancelled',
  'video:replacement-undone',
  'video:kept-deleted',
  'video:trashed',
  'video:restored',
  'video:deleted',
  'tags:added',
  'tags:replaced',
  'tags:removed',
  'folder:created',
  'folder:changed',
  'folder:deleted',
  'chapters:changed',
  'audio-track:changed',
  'audio-track:added',
  'audio-track:removed',
  'file:added',
  'file:deleted',
  'file:downloaded',
  'caption:shown',
  'caption:hidden',
  'caption:reviewed',
  'transcription:requested',
  'mp4:requested',
  'otp:reused',
  'otp-defaults:changed',
  'session:stopped',
  'viewer:erased',
  'backup:made',
  'platform:link-made',
  'platform:added',
  'platform:confirmed',
  'platform:changed',
  'platform:removed',
  'hook:created',
  'hook:enabled',
  'hook:disabled',
  'hook:resumed',
  'hook:rotated',
  'hook:tested',
  'hook:replayed',
  'hook:deleted',
] as const
export type AuditKind = (typeof AUDIT_KINDS)[number]

/** Who caused an event: an API key, a person who is signed in, a page with an upload token, or one that needs none of these. */
export type Actor =
  | { apiKeyId: string }
  | { consoleUserId: string }
  | { uploadTokenId: string }
  | 'command-line'
  | 'server'
  | 'viewer'

type AuditEvent = {
  atS: number
  /** Undefined where it concerns no account. */
  accountId: string | undefined
  by: Actor
  kind: AuditKind
  /** Ids of the objects it was done to; each gets a row. */
  subjects: readonly string[]
  /** Small, without secrets. */
  details?: Readonly<Record<string, unknown>>
}

/** Records a management action, in the transaction that performs it. */
export async function recordAuditEvent(tx: Db, { atS, accountId, by, kind, subjects, details }: AuditEvent): Promise<void> {
  const actor = nameActor(by)
  const common = { atS, accountId: accountId ?? null, actor, kind, details: details ? JSON.stringify(details) : null }
  await insertAuditEvents(
    tx,
    subjects.map((subject) => ({ ...common, subject })),
  )
}

function nameActor(by: Actor): string {
  if (typeof by === 'string') return by
  if ('uploadTokenId' in by) return `upload-token:${by.uploadTokenId}`
  return 'apiKeyId' in by ? by.apiKeyId : `user:${by.consoleUserId}`
}

/** The newest events first: of one account, or of all. @param below lists only those with a lower id */
export async function listAuditEvents(db: Db, accountId: string | undefined, limit: number, below?: number) {
  const rows = await listAuditRows(db, accountId, { limit, below })
  return rows.map(({ details, ...row }) => ({ ...row, details: details === null ? null : JSON.parse(details) }))
}

/** When the master key with this id replaced another; undefined for the first one, and after the event was pruned. */
export async function findMasterKeyRotation(db: Db, masterKeyId: string): Promise<number | undefined> {
  return findLastOfInstallation(db, 'master-key:rotated', masterKeyId)
}

/** How long events are kept. */
export const AUDIT_LOG_S = 366 * 24 * 3600
const BATCH_SIZE = 1_000

/** Removes events that are more than a year old. */
export async function pruneAuditLog({ write, nowS }: { write: Write; nowS: () => number }): Promise<void> {
  while ((await write((tx) => removeAuditEventsBefore(tx, nowS() - AUDIT_LOG_S, BATCH_SIZE))) > 0);
}
