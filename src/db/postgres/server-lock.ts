import type pg from 'pg'
import { databaseInUse } from './connection-errors.ts'

/** A number that no other program in the same database is likely to lock. */
export const SERVER_LOCK = 7_235_118_604_271

/** The row of this server, once it has one: a connection that writes belongs to it. */
type ServerRow = { id: string; run: string }

type Backend = { pid: number; since: string }

/**
 * Who may use a database: one server alone, or several that all share it, whose files are in a bucket. The connection that writes holds
 * this lock, shared or not. PostgreSQL releases it when the connection ends, however it ends. If PostgreSQL has not noticed yet that our
 * last connection is gone, we terminate that one: what it was doing is then committed or rolled back.
 */
export function createServerLock(url: string, isShared: boolean) {
  const shared = isShared ? '_shared' : ''
  let previousHolder: Backend | undefined
  let row: ServerRow | undefined

  async function acquire(client: pg.Client): Promise<void> {
    if (isShared && previousHolder) await terminatePrevious(client, previousHolder) // its lock keeps us from nothing
    const { rows } = await client.query<Backend & { acquired: number }>(
      `select pg_try_advisory_lock${shared}($1)::int as acquired, pid, extract(epoch from backend_start)::text as since
       from pg_stat_activity where pid = pg_backend_pid()`,
      [SERVER_LOCK],
    )
    const [own] = rows
    if (own?.acquired !== 1) {
      if (!previousHolder || !(await terminatePrevious(client, previousHolder))) throw databaseInUse(url)
      await client.query(`select pg_advisory_lock${shared}($1)`, [SERVER_LOCK])
    }
    previousHolder = own
    if (row) await record(client, row)
  }

  async function terminatePrevious(client: pg.Client, { pid, since }: Backend): Promise<boolean> {
    const { rowCount } = await client.query(
      `select pg_terminate_backend(pid, $4) from pg_stat_activity join pg_locks using (pid)
       where locktype = 'advisory' and (classid::bigint << 32) + objid::bigint = $1 and pid = $2
         and extract(epoch from backend_start)::text = $3`,
      [SERVER_LOCK, pid, since, MAX_TERMINATION_MS],
    )
    return rowCount !== 0
  }

  /** Others terminate this connection when they take this server for dead, and remove its row: it may then not go on. */
  async function record(client: pg.Client, { id, run }: ServerRow): Promise<void> {
    const { rowCount } = await client.query('update server set backend = $3 where id = $1 and run = $2', [id, run, backendName()])
    if (rowCount === 0) throw databaseInUse(url)
  }

  function backendName(): string {
    return `${previousHolder?.pid} ${previousHolder?.since}`
  }

  return {
    acquire,
    /** From now on connections that write belong to this row. @returns the one of now, as `terminate` of a channel takes it */
    own(newRow: ServerRow): string {
      row = newRow
      return backendName()
    },
  }
}

const MAX_TERMINATION_MS = 2_000
