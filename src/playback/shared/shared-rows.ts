import { hash } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../db/database.ts'
import { prepared, type ValueOf } from '../../db/prepared.ts'
import type { KeyBudgetRow } from '../../db/tables.ts'
import type { BudgetKey } from '../keys/key-budget-store.ts'
import type { EndReason } from '../refusal.ts'
import type { SharedColumns } from './shared-session.ts'
import type { SlotRow } from './viewer-slots.ts'

// Statements on PostgreSQL, each on the rows of all requests of a transaction. They are sent without waiting for one another.
// Their values are lists, one for each column: each statement has one text, however many rows it is for.

type Lists<Row> = { [Column in keyof Row]: Row[Column][] }

function listsOf<Row, Column extends keyof Row>(rows: readonly Row[], columns: readonly Column[]): Lists<Pick<Row, Column>> {
  const lists = columns.map((column) => [column, rows.map((row) => row[column])])
  return Object.fromEntries(lists)
}

/** Whose slots. */
export type SlotOwner = { accountId: string; userId: string }

/** A lock by name until the end of the transaction, also for a row that does not exist yet. */
export function lockNumber(...name: readonly (string | number)[]): bigint {
  return hash('sha256', JSON.stringify(name), 'buffer').readBigInt64BE()
}

const takeLocksInOrder = prepared<{ numbers: string[] }>()((_, value) => {
  return sql`select pg_advisory_xact_lock(number) from unnest(${value('numbers')}::bigint[]) as lock (number)`
})

/** Takes locks in the order of their numbers, which is the same on all servers: none waits for one that waits for it. */
export async function takeLocks(tx: Db, locks: ReadonlySet<bigint>): Promise<void> {
  const numbers = [...locks].sort((a, b) => (a < b ? -1 : 1)).map(String)
  await takeLocksInOrder(tx, { numbers })
}

const SLOT_OWNER = ['accountId', 'userId'] as const

const lockSessionsAndTheirs = prepared<{ ids: readonly string[] } & Lists<SlotOwner>>()(
  (_, value) => sql<SharedColumns & { epoch: string | null }>`
    select id, pages, last_seen_at_s, left_at_s, ended_at_s, end_reason, viewed_at_s, key_windows, version, seq_highest, seq_seen, live,
      (select epoch from proof_epoch) as epoch
    from playback_session where id = any(${value('ids')}::text[] || array(
      select session_id from unnest(${value('accountId')}::text[], ${value('userId')}::text[]) as viewer (account_id, user_id)
        join stream_slot using (account_id, user_id)
    )) order by id for update`,
)

/**
 * Locks sessions, and reads what requests change of them, with the epoch of the proofs. `viewers` are those of the requests: sessions that
 * have their slots may lose them, and are locked here with the others, in one order.
 */
export async function lockSessions(tx: Db, ids: readonly string[], viewers: readonly SlotOwner[]) {
  const { rows } = await lockSessionsAndTheirs(tx, { ids, ...listsOf(viewers, SLOT_OWNER) })
  return rows
}

const readSlotsOf = prepared<Lists<SlotOwner>>()(
  (_, value) => sql<SlotRow & { streamLimitPolicy: string }>`
    select slot.account_id, slot.user_id, slot.n, slot.session_id, slot.taken_at_s, slot.ends_at_s, stream_limit_policy
    from unnest(${value('accountId')}::text[], ${value('userId')}::text[]) as viewer (account_id, user_id)
    join stream_slot as slot using (account_id, user_id) join account on account.id = slot.account_id`,
)

export async function readSlots(tx: Db, owners: readonly SlotOwner[]) {
  const { rows } = await readSlotsOf(tx, listsOf(owners, SLOT_OWNER))
  return rows
}

const BUDGET_KEY = ['accountId', 'viewer', 'videoId', 'sourceNumber'] as const

const readKeyBudgetsOf = prepared<Lists<BudgetKey>>()(
  (_, value) => sql<KeyBudgetRow>`
    select key_budget.* from unnest(${value('accountId')}::text[], ${value('viewer')}::text[], ${value('videoId')}::text[],
      ${value('sourceNumber')}::bigint[]) as wanted (account_id, viewer, video_id, source_number)
    join key_budget using (account_id, viewer, video_id, source_number)`,
)

export async function readKeyBudgets(tx: Db, keys: readonly BudgetKey[]): Promise<KeyBudgetRow[]> {
  const { rows } = await readKeyBudgetsOf(tx, listsOf(keys, BUDGET_KEY))
  return rows
}

const CHANGED_OF_SESSION = [
  ...(['id', 'pages', 'lastSeenAtS', 'leftAtS', 'endedAtS', 'endReason', 'keyWindows'] as const),
  ...(['seqHighest', 'seqSeen', 'live'] as const),
]

const updateSessions = prepared<Lists<Pick<SharedColumns, (typeof CHANGED_OF_SESSION)[number]>>>()(
  (_, value) => sql`update playback_session as session set pages = changed.pages, last_seen_at_s = changed.last_seen_at_s,
      left_at_s = changed.left_at_s, ended_at_s = changed.ended_at_s, end_reason = changed.end_reason,
      key_windows = changed.key_windows, seq_highest = changed.seq_highest, seq_seen = changed.seq_seen, live = changed.live,
      version = version + 1
    from unnest(${value('id')}::text[], ${value('pages')}::text[], ${value('lastSeenAtS')}::bigint[], ${value('leftAtS')}::bigint[],
      ${value('endedAtS')}::bigint[], ${value('endReason')}::text[], ${value('keyWindows')}::bytea[],
      ${value('seqHighest')}::bigint[], ${value('seqSeen')}::bigint[], ${value('live')}::text[])
      as changed (id, pages, last_seen_at_s, left_at_s, ended_at_s, end_reason, key_windows, seq_highest, seq_seen, live)
    where session.id = changed.id`,
)

/** The rows are locked, so they have the version that was read. */
export async function writeSessions(tx: Db, rows: readonly SharedColumns[]): Promise<void> {
  await updateSessions(tx, listsOf(rows, CHANGED_OF_SESSION))
}

type NumberedSlot = SlotOwner & { n: number }

const removeSlots = prepared<Lists<NumberedSlot>>()(
  (_, value) => sql`delete from stream_slot using unnest(${value('accountId')}::text[], ${value('userId')}::text[],
      ${value('n')}::bigint[]) as emptied (account_id, user_id, n)
    where stream_slot.account_id = emptied.account_id and stream_slot.user_id = emptied.user_id and stream_slot.n = emptied.n`,
)

const upsertSlots = prepared<Lists<SlotRow>>()(
  (_, value) => sql`insert into stream_slot (account_id, user_id, n, session_id, taken_at_s, ends_at_s)
    select * from unnest(${value('accountId')}::text[], ${value('userId')}::text[], ${value('n')}::bigint[],
      ${value('sessionId')}::text[], ${value('takenAtS')}::bigint[], ${value('endsAtS')}::bigint[])
    on conflict (account_id, user_id, n) do update set session_id = excluded.session_id, taken_at_s = excluded.taken_at_s,
      ends_at_s = excluded.ends_at_s`,
)

/** Writes slots as they are now, and removes those in `emptied`. */
export async function writeSlots(tx: Db, rows: readonly SlotRow[], emptied: readonly NumberedSlot[]): Promise<void> {
  await Promise.all([
    emptied.length > 0 && removeSlots(tx, listsOf(emptied, [...SLOT_OWNER, 'n'])),
    rows.length > 0 && upsertSlots(tx, listsOf(rows, [...SLOT_OWNER, 'n', 'sessionId', 'takenAtS', 'endsAtS'])),
  ])
}

type BudgetColumns = Omit<KeyBudgetRow, 'version'>

const BUDGET_COLUMNS = [...BUDGET_KEY, ...(['levelS', 'earnedAtS', 'released', 'releasedOf', 'earning', 'usedAtS'] as const)]

const unnestBudgets = (
  value: ValueOf<Lists<BudgetColumns>>,
) => sql`unnest(${value('accountId')}::text[], ${value('viewer')}::text[],
  ${value('videoId')}::text[], ${value('sourceNumber')}::bigint[], ${value('levelS')}::double precision[],
  ${value('earnedAtS')}::double precision[], ${value('released')}::bytea[], ${value('releasedOf')}::bigint[],
  ${value('earning')}::text[], ${value('usedAtS')}::bigint[])`

const updateKeyBudgets = prepared<Lists<BudgetColumns>>()(
  (_, value) => sql`update key_budget as budget set level_s = changed.level_s, earned_at_s = changed.earned_at_s,
      released = changed.released, released_of = changed.released_of, earning = changed.earning, used_at_s = changed.used_at_s,
      version = version + 1
    from ${unnestBudgets(value)} as changed
      (account_id, viewer, video_id, source_number, level_s, earned_at_s, released, released_of, earning, used_at_s)
    where budget.account_id = changed.account_id and budget.viewer = changed.viewer and budget.video_id = changed.video_id
      and budget.source_number = changed.source_number`,
)

const upsertKeyBudgets = prepared<Lists<BudgetColumns>>()(
  (_, value) => sql`insert into key_budget
      (account_id, viewer, video_id, source_number, level_s, earned_at_s, released, released_of, earning, used_at_s, version)
    select *, 1 from ${unnestBudgets(value)}
    on conflict (account_id, viewer, video_id, source_number) do update set level_s = excluded.level_s,
      earned_at_s = excluded.earned_at_s, released = excluded.released, released_of = excluded.released_of,
      earning = excluded.earning, used_at_s = excluded.used_at_s, version = key_budget.version + 1`,
)

/** An update takes PostgreSQL half as long as an insert that finds its row: `stored` had theirs when they were read. */
export async function writeKeyBudgets(
  tx: Db,
  { stored, others }: { stored: readonly BudgetColumns[]; others: readonly BudgetColumns[] },
): Promise<void> {
  const [updated] = await Promise.all([
    stored.length > 0 ? updateKeyBudgets(tx, listsOf(stored, BUDGET_COLUMNS)) : undefined,
    others.length > 0 && upsertKeyBudgets(tx, listsOf(others, BUDGET_COLUMNS)),
  ])
  const wereRemoved = Number(updated?.numAffectedRows ?? 0) < stored.length // unused for a day until now
  if (wereRemoved) await upsertKeyBudgets(tx, listsOf(stored, BUDGET_COLUMNS))
}

/** Ends sessions whose slot another one has taken, and which are locked. */
export async function endTakenSessions(tx: Db, ids: readonly string[], endedAtS: number): Promise<void> {
  const why: EndReason = 'taken'
  await sql`update playback_session set ended_at_s = ${endedAtS}, end_reason = ${why}, version = version + 1
    where id = any(${ids}::text[]) and ended_at_s is null`.execute(tx)
}
