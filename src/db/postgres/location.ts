import { Failure } from '../../errors.ts'
import type { DatabaseLocation } from '../database.ts'
import type { Connection } from './connection.ts'
import { redactedUrl } from './connection-errors.ts'
import { openPostgres } from './database.ts'
import { MIGRATIONS } from './migrations.ts'
import { rows, tableExists, withProbeConnection } from './probe.ts'

/** An installation's database on a PostgreSQL server. */
export function postgresLocation(url: string): DatabaseLocation & { hasUnfinishedMove(): Promise<boolean> } {
  const name = redactedUrl(url)
  const readSettings = (where: string, ...values: string[]) =>
    withProbeConnection(url, async (connection) => {
      await assertMoveFinished(connection, url)
      if (!(await tableExists(connection, 'setting'))) return []
      return rows<{ value: string }>(connection, `select value from setting ${where} limit 1`, ...values)
    })
  return {
    name,
    address: name,
    possibleRollbackCause: 'it is an old copy, a standby that lacks the last changes, or was replaced by reelgate.db again',
    exists: async () => (await readSettings('')).length > 0,
    assertWritable: async () => undefined,
    peekSetting: async (name) => (await readSettings('where name = $1', name))[0]?.value,
    peekRows: <Row>(table: string, query: string) =>
      withProbeConnection(url, async (connection) =>
        (await tableExists(connection, table)) ? rows<Row>(connection, query) : [],
      ),
    appliedMigrations: () =>
      withProbeConnection(url, async (connection) => {
        if (!(await tableExists(connection, 'kysely_migration'))) return []
        const applied = await rows<{ name: string }>(connection, 'select name from kysely_migration')
        return applied.map(({ name }) => name)
      }),
    migrations: Object.keys(MIGRATIONS),
    hasUnfinishedMove: () => withProbeConnection(url, (connection) => tableExists(connection, UNFINISHED_MOVE_TABLE)),
    open: (withOthers) => openPostgres(url, withOthers),
  }
}

/** The table that exists in a database while an installation is moved into it (db/move). */
export const UNFINISHED_MOVE_TABLE = 'unfinished_move'

async function assertMoveFinished(connection: Connection, url: string): Promise<void> {
  if (await tableExists(connection, UNFINISHED_MOVE_TABLE))
    throw new Failure(
      'unavailable',
      `The database ${redactedUrl(url)} contains an unfinished move. Run reelgate migrate again: it resumes. Or start without REELGATE_DATABASE_URL, as before the move.`,
    )
}
