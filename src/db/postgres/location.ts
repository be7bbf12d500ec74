import { Failure } from '../../errors.ts'
import type { DatabaseLocation } from '../database.ts'
import type { Connection } from './connection.ts'
import { redactedUrl } from './connection-errors.ts'
import { openPostgres } from './database.ts'
import { rows, tableExists, withProbeConnection } from './probe.ts'

/** An installation's database on a PostgreSQL server. */
export function postgresLocation(url: string): DatabaseLocation & { isInMove(): Promise<boolean> } {
  const name = redactedUrl(url)
  const settings = (where: string, ...values: string[]) =>
    withProbeConnection(url, async (connection) => {
      await refuseUnfinishedMove(connection, url)
      if (!(await tableExists(connection, 'setting'))) return []
      return rows<{ value: string }>(connection, `select value from setting ${where} limit 1`, ...values)
    })
  return {
    name,
    address: name,
    olderBecause: 'it is an old copy, a standby that had not heard of the last changes, or was left for reelgate.db again',
    exists: async () => (await settings('')).length > 0,
    peekSetting: async (name) => (await settings('where name = $1', name))[0]?.value,
    isInMove: () => withProbeConnection(url, (connection) => tableExists(connection, UNFINISHED_MOVE_TABLE)),
    open: () => openPostgres(url),
  }
}

/** The table that stands in a database while an installation is moved into it (db/move). */
export const UNFINISHED_MOVE_TABLE = 'unfinished_move'

async function refuseUnfinishedMove(connection: Connection, url: string): Promise<void> {
  if (await tableExists(connection, UNFINISHED_MOVE_TABLE))
    throw new Failure(
      'unavailable',
      `An installation was moved to ${redactedUrl(url)} in part only. Run reelgate migrate again: it goes on where it was. Or start without REELGATE_DATABASE_URL, as before the move.`,
    )
}
