import type pg from 'pg'
import { databaseInUse } from './connection-errors.ts'

/** A number that no other program in the same database is likely to lock. */
export const SERVER_LOCK = 7_235_118_604_271

/**
 * Only one server may use a database: the connection that writes holds this lock. PostgreSQL releases it when the connection ends, however it ends. If PostgreSQL
 * has not noticed yet that our last connection is gone, we terminate that one: what it was doing is then committed or rolled
 * back.
 */
export function createServerLock(url: string) {
  let previousHolder: { pid: number; backendStart: string } | undefined

  async function acquire(client: pg.Client): Promise<void> {
    const { rows } = await client.query<{ acquired: number; pid: number; backendStart: string }>(
      'select pg_try_advisory_lock($1)::int as acquired, pid, backend_start::text as "backendStart" from pg_stat_activity where pid = pg_backend_pid()',
      [SERVER_LOCK],
    )
    const [own] = rows
    if (own?.acquired !== 1) {
      if (!(await terminatePrevious(client))) throw databaseInUse(url)
      await client.query('select pg_advisory_lock($1)', [SERVER_LOCK])
    }
    previousHolder = own
  }

  async function terminatePrevious(client: pg.Client): Promise<boolean> {
    if (!previousHolder) return false
    const { rowCount } = await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity join pg_locks using (pid)
       where locktype = 'advisory' and (classid::bigint << 32) + objid::bigint = $1 and pid = $2 and backend_start::text = $3`,
      [SERVER_LOCK, previousHolder.pid, previousHolder.backendStart],
    )
    return rowCount !== 0
  }

  return { acquire }
}
