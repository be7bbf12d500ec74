import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../db/database.ts'
import type { KeyBudgetRow } from '../../db/tables.ts'
import type { BudgetKey } from '../keys/key-budget-store.ts'
import type { EndReason } from '../refusal.ts'
import type { SharedColumns } from './shared-session.ts'
import type { SlotRow } from './viewer-slots.ts'

// Statements on PostgreSQL, each on the rows of all requests of a transaction. They are sent without waiting for one another.

/** Whose slots. */
export type SlotOwner = { accountId: string; userId: string }

/** A lock by name until the end of the transaction, also for a row that does not exist yet. */
export function lockNumber(...name: readonly (string | number)[]): bigint {
  return createHash('sha256').update(JSON.stringify(name)).digest().readBigInt64BE()
}

/** Takes locks in the order of their numbers, which is the same on all servers: none waits for one that waits for it. */
export async function takeLocks(tx: Db, locks: ReadonlySet<bigint>): Promise<void> {
  const numbers = [...locks].sort((a, b) => (a < b ? -1 : 1)).map(String)
  await sql`select pg_advisory_xact_lock(number) from unnest(${numbers}::bigint[]) as lock (number)`.execute(tx)
}

/**
 * Locks sessions, and reads what requests change of them, with the epoch of the proofs. `viewers` are those of the requests: sessions that
 * have their slots may lose them, and are locked here with the others, in one order.
 */
export async function lockSessions(tx: Db, ids: readonly string[], viewers: readonly SlotOwner[]) {
  const { rows } = await sql<SharedColumns & { epoch: string | null }>`
    select id, pages, last_seen_at_s, left_at_s, ended_at_s, end_reason, viewed_at_s, key_windows, version, seq_highest, seq_seen, live,
      (select epoch from proof_epoch) as epoch
    from playback_session where id = any(${ids}::text[] || array(
      select session_id from ${unnestOwners(viewers)} join stream_slot using (account_id, user_id)
    )) order by id for update`.execute(tx)
  return rows
}

const unnestOwners = (owners: readonly SlotOwner[]) =>
  sql`unnest(${owners.map(({ accountId }) => accountId)}::text[], ${owners.map(({ userId }) => userId)}::text[])
    as viewer (account_id, user_id)`

export async function readSlots(tx: Db, owners: readonly SlotOwner[]) {
  const { rows } = await sql<SlotRow & { streamLimitPolicy: string }>`
    select slot.account_id, slot.user_id, slot.n, slot.session_id, slot.taken_at_s, slot.ends_at_s, stream_limit_policy
    from ${unnestOwners(owners)} join stream_slot as slot using (account_id, user_id) join account on account.id = slot.account_id`.execute(
    tx,
  )
  return rows
}

export async function readKeyBudgets(tx: Db, keys: readonly BudgetKey[]): Promise<KeyBudgetRow[]> {
  const { rows } = await sql<KeyBudgetRow>`
    select key_budget.* from unnest(${keys.map(({ accountId }) => accountId)}::text[], ${keys.map(({ viewer }) => viewer)}::text[],
      ${keys.map(({ videoId }) => videoId)}::text[], ${keys.map(({ sourceNumber }) => sourceNumber)}::bigint[])
      as wanted (account_id, viewer, video_id, source_number)
    join key_budget using (account_id, viewer, video_id, source_number)`.execute(tx)
  return rows
}

/** The rows are locked, so they have the version that was read. */
export async function writeSessions(tx: Db, rows: readonly SharedColumns[]): Promise<void> {
  await sql`update playback_session as session set pages = changed.pages, last_seen_at_s = changed.last_seen_at_s,
      left_at_s = changed.left_at_s, ended_at_s = changed.ended_at_s, end_reason = changed.end_reason,
      key_windows = changed.key_windows, seq_highest = changed.seq_highest, seq_seen = changed.seq_seen, live = changed.live,
      version = version + 1
    from unnest(${rows.map(({ id }) => id)}::text[], ${rows.map(({ pages }) => pages)}::text[],
      ${rows.map(({ lastSeenAtS }) => lastSeenAtS)}::bigint[], ${rows.map(({ leftAtS }) => leftAtS)}::bigint[],
      ${rows.map(({ endedAtS }) => endedAtS)}::bigint[], ${rows.map(({ endReason }) => endReason)}::text[],
      ${rows.map(({ keyWindows }) => keyWindows)}::bytea[], ${rows.map(({ seqHighest }) => seqHighest)}::bigint[],
      ${rows.map(({ seqSeen }) => seqSeen)}::bigint[], ${rows.map(({ live }) => live)}::text[])
      as changed (id, pages, last_seen_at_s, left_at_s, ended_at_s, end_reason, key_windows, seq_highest, seq_seen, live)
    where session.id = changed.id`.execute(tx)
}

/** Writes slots as they are now, and removes those of `owners` with a number in `emptied`. */
export async function writeSlots(
  tx: Db,
  rows: readonly SlotRow[],
  emptied: readonly (SlotOwner & { n: number })[],
): Promise<void> {
  const deleting =
    emptied.length > 0 &&
    sql`delete from stream_slot using unnest(${emptied.map(({ accountId }) => accountId)}::text[],
        ${emptied.map(({ userId }) => userId)}::text[], ${emptied.map(({ n }) => n)}::bigint[]) as emptied (account_id, user_id, n)
      where stream_slot.account_id = emptied.account_id and stream_slot.user_id = emptied.user_id and stream_slot.n = emptied.n`.execute(
      tx,
    )
  const writing =
    rows.length > 0 &&
    sql`insert into stream_slot (account_id, user_id, n, session_id, taken_at_s, ends_at_s)
      select * from unnest(${rows.map(({ accountId }) => accountId)}::text[], ${rows.map(({ userId }) => userId)}::text[],
        ${rows.map(({ n }) => n)}::bigint[], ${rows.map(({ sessionId }) => sessionId)}::text[],
        ${rows.map(({ takenAtS }) => takenAtS)}::bigint[], ${rows.map(({ endsAtS }) => endsAtS)}::bigint[])
      on conflict (account_id, user_id, n) do update set session_id = excluded.session_id, taken_at_s = excluded.taken_at_s,
        ends_at_s = excluded.ends_at_s`.execute(tx)
  await Promise.all([deleting, writing])
}

export async function writeKeyBudgets(tx: Db, rows: readonly Omit<KeyBudgetRow, 'version'>[]): Promise<void> {
  await sql`insert into key_budget
      (account_id, viewer, video_id, source_number, level_s, earned_at_s, released, released_of, earning, used_at_s, version)
    select *, 1 from unnest(${rows.map(({ accountId }) => accountId)}::text[], ${rows.map(({ viewer }) => viewer)}::text[],
      ${rows.map(({ videoId }) => videoId)}::text[], ${rows.map(({ sourceNumber }) => sourceNumber)}::bigint[],
      ${rows.map(({ levelS }) => levelS)}::double precision[], ${rows.map(({ earnedAtS }) => earnedAtS)}::double precision[],
      ${rows.map(({ released }) => released)}::bytea[], ${rows.map(({ releasedOf }) => releasedOf)}::bigint[],
      ${rows.map(({ earning }) => earning)}::text[], ${rows.map(({ usedAtS }) => usedAtS)}::bigint[])
    on conflict (account_id, viewer, video_id, source_number) do update set level_s = excluded.level_s,
      earned_at_s = excluded.earned_at_s, released = excluded.released, released_of = excluded.released_of,
      earning = excluded.earning, used_at_s = excluded.used_at_s, version = key_budget.version + 1`.execute(tx)
}

/** Ends sessions whose slot another one has taken, and which are locked. */
export async function endTakenSessions(tx: Db, ids: readonly string[], endedAtS: number): Promise<void> {
  const why: EndReason = 'taken'
  await sql`update playback_session set ended_at_s = ${endedAtS}, end_reason = ${why}, version = version + 1
    where id = any(${ids}::text[]) and ended_at_s is null`.execute(tx)
}
