import { CamelCasePlugin, type Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { createSingleConnectionKysely, type Execute, type SqlFlavor } from '../single-connection-kysely.ts'
import type { Tables } from '../tables.ts'

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl() {
    return true
  }
}

const SQLITE: SqlFlavor = {
  adapter: new TransactionalAdapter(),
  compiler: new SqliteQueryCompiler(),
  begin: 'begin immediate',
  plugins: [new CamelCasePlugin()],
  createIntrospector: (db) => new SqliteIntrospector(db),
}

export function createSqliteKysely(executeQuery: Execute, close: () => Promise<void>): Kysely<Tables> {
  return createSingleConnectionKysely(SQLITE, executeQuery, close)
}
