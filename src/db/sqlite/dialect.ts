import { CamelCasePlugin, type Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { type Execute, kyselyOver, type Writing } from '../single-connection-kysely.ts'
import type { Tables } from '../tables.ts'

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl() {
    return true
  }
}

const SQLITE: Writing = {
  adapter: new TransactionalAdapter(),
  compiler: new SqliteQueryCompiler(),
  begin: 'begin immediate',
  plugins: [new CamelCasePlugin()],
  createIntrospector: (db) => new SqliteIntrospector(db),
}

export function sqliteOver(executeQuery: Execute, close: () => Promise<void>): Kysely<Tables> {
  return kyselyOver(SQLITE, executeQuery, close)
}
