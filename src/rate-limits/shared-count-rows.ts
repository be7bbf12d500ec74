import { sql } from 'kysely'
import type { Db } from '../db/database.ts'

// Rows without a log, on PostgreSQL: a crash empties them, and with them the counts of the other servers.

/** What a server counted of a subject in one slice of a window. */
export type CountRow = {
  server: string
  name: string
  subject: string
  atS: number
  passed: number
  counted: number
  endsAtS: number
}

/** A commit may be later than the time in its rows. */
const MAX_COMMIT_S = 2

/** Adds to the rows of one server, which no other one changes. */
export async function saveCounts(tx: Db, rows: readonly CountRow[]): Promise<void> {
  await sql`insert into limit_count (server, name, subject, at_s, passed, counted, ends_at_s, changed_at_s)
    select server, name, subject, at_s, sum(passed), sum(counted), max(ends_at_s), extract(epoch from clock_timestamp())
    from unnest(${rows.map(({ server }) => server)}::text[], ${rows.map(({ name }) => name)}::text[],
      ${rows.map(({ subject }) => subject)}::text[], ${rows.map(({ atS }) => atS)}::bigint[],
      ${rows.map(({ passed }) => passed)}::double precision[], ${rows.map(({ counted }) => counted)}::double precision[],
      ${rows.map(({ endsAtS }) => endsAtS)}::bigint[]) as count (server, name, subject, at_s, passed, counted, ends_at_s)
    group by server, name, subject, at_s
    on conflict (server, name, subject, at_s) do update set passed = limit_count.passed + excluded.passed,
      counted = limit_count.counted + excluded.counted, changed_at_s = excluded.changed_at_s`.execute(tx)
}

/** The rows of other servers that have changed since then, some of them once more. @returns with when that was read, by the database */
export async function listCountsOfOthers(
  tx: Db,
  server: string,
  changedAfterS: number,
): Promise<{ rows: CountRow[]; readAtS: number }> {
  const [{ rows }, { rows: clock }] = await Promise.all([
    sql<CountRow>`select server, name, subject, at_s, passed, counted, ends_at_s from limit_count
      where changed_at_s > ${changedAfterS - MAX_COMMIT_S} and server <> ${server}`.execute(tx),
    sql<{ nowS: number }>`select extract(epoch from clock_timestamp()) as now_s`.execute(tx),
  ])
  return { rows, readAtS: clock[0]?.nowS ?? 0 }
}

export async function removeOldCounts(tx: Db, server: string, nowS: number): Promise<void> {
  await sql`delete from limit_count where ends_at_s <= ${nowS} and (server = ${server} or ends_at_s <= ${nowS - 60})`.execute(tx)
}
