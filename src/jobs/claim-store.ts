import { sql } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { WorkKind } from '../db/tables.ts'

/** One thing to be done. */
export type Work = { kind: WorkKind; subject: string }

/** `id` is the fence: work that another claim has taken over cannot end this one. */
export type ClaimKey = Work & { id: string }

/** The subjects that are claimed, or wait after a failure: what a search for work leaves out. */
export function claimedSubjects(db: Db, kind: WorkKind, nowS: number) {
  return db
    .selectFrom('claim')
    .select('subject')
    .where('kind', '=', kind)
    .where((of) => of.or([of('id', 'is not', null), of('endsAtS', '>', nowS)]))
}

/** Whether a process works on it now. */
export async function isClaimed(db: Db, { kind, subject }: Work): Promise<boolean> {
  return hasRow(
    db
      .selectFrom('claim')
      .where(({ and }) => and({ kind, subject }))
      .where('id', 'is not', null),
  )
}

/** False: another has claimed it, or it waits after a failure. */
export async function insertClaim(
  tx: Db,
  { kind, subject, ...holder }: ClaimKey & { server: string; endsAtS: number },
  nowS: number,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await tx
    .insertInto('claim')
    .values({ kind, subject, ...holder })
    .onConflict((conflict) =>
      conflict.columns(['kind', 'subject']).doUpdateSet(holder).where('claim.id', 'is', null).where('claim.endsAtS', '<=', nowS),
    )
    .executeTakeFirst()
  return numInsertedOrUpdatedRows > 0n
}

/** Whether the claim still stands. */
export async function hasClaim(tx: Db, { kind, subject, id }: ClaimKey): Promise<boolean> {
  return hasRow(tx.selectFrom('claim').where(({ and }) => and({ kind, subject, id })))
}

/** Ends a claim. False: it was taken over. */
export async function removeClaim(tx: Db, { kind, subject, id }: ClaimKey): Promise<boolean> {
  const removed = await tx
    .deleteFrom('claim')
    .where(({ and }) => and({ kind, subject, id }))
    .executeTakeFirst()
  return removed.numDeletedRows > 0n
}

/** Has work wait that no claim holds. @param counts whether this is a failure of the work itself. @returns how many of these there were */
export async function insertBackOff(tx: Db, { kind, subject }: Work, untilS: number, counts: boolean): Promise<number> {
  const added = counts ? 1 : 0
  const { failures } = await tx
    .insertInto('claim')
    .values({ kind, subject, endsAtS: untilS, failures: added })
    .onConflict((conflict) =>
      conflict
        .columns(['kind', 'subject'])
        .doUpdateSet((of) => ({ endsAtS: untilS, failures: of('claim.failures', '+', added) })),
    )
    .returning('failures')
    .executeTakeFirstOrThrow()
  return failures
}

export async function countFailures(db: Db, { kind, subject }: Work): Promise<number> {
  const row = await db
    .selectFrom('claim')
    .select('failures')
    .where(({ and }) => and({ kind, subject }))
    .executeTakeFirst()
  return row?.failures ?? 0
}

/** Counts from the beginning. What waits still waits. */
export async function resetFailures(tx: Db, { kind, subject }: Work): Promise<void> {
  await tx.updateTable('claim').set({ failures: 0 }).where('kind', '=', kind).where('subject', '=', subject).execute()
}

/** Forgets failures and the wait after them. */
export async function forgetFailures(tx: Db, { kind, subject }: Work): Promise<void> {
  await tx.deleteFrom('claim').where('kind', '=', kind).where('subject', '=', subject).where('id', 'is', null).execute()
}

/** @returns the ids of those that still stand */
export async function renewClaims(tx: Db, ids: readonly string[], endsAtS: number): Promise<Set<string>> {
  const rows = await tx.updateTable('claim').set({ endsAtS }).where('id', 'in', ids).returning('id').execute()
  return new Set(rows.flatMap(({ id }) => id ?? []))
}

/** Takes work on videos from other servers than this one. A chunk's subject begins with its video's id. */
export async function removeClaimsOfOthers(
  tx: Db,
  { server, kinds, videoIds }: { server: string; kinds: readonly WorkKind[]; videoIds: readonly string[] },
): Promise<void> {
  await tx
    .deleteFrom('claim')
    .where('kind', 'in', kinds)
    .where('server', '!=', server)
    .where((of) => of.fn<string>('substr', ['subject', sql.lit(1), sql.lit(32)]), 'in', videoIds)
    .execute()
}

/** Claims whose work has ended without them unless this process does it: of this server, and of others whose lease has ended. */
export async function listSuspects(
  db: Db,
  { server, isOnlyServer }: { server: string; isOnlyServer: boolean },
  nowS: number,
): Promise<ClaimKey[]> {
  return db
    .selectFrom('claim')
    .select(['kind', 'subject', 'id'])
    .where('id', 'is not', null)
    .$if(!isOnlyServer, (claims) => claims.where((of) => of.or([of('server', '=', server), of('endsAtS', '<=', nowS)])))
    .$narrowType<{ id: string }>()
    .execute()
}

/** Forgets failures. @param beforeS only those whose wait ended before then, of work that has not been attempted since */
export async function removeBackOffs(tx: Db, beforeS = Number.MAX_SAFE_INTEGER): Promise<void> {
  await tx.deleteFrom('claim').where('id', 'is', null).where('endsAtS', '<', beforeS).execute()
}
