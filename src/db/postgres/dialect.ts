import {
  CamelCasePlugin,
  HandleEmptyInListsPlugin,
  type Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  replaceWithNoncontingentExpression,
} from 'kysely'
import { createSingleConnectionKysely, type Execute, type SqlFlavor } from '../single-connection-kysely.ts'
import type { Tables } from '../tables.ts'

const POSTGRES: SqlFlavor = {
  adapter: new PostgresAdapter(),
  compiler: new PostgresQueryCompiler(),
  // Not serializable: who has waited for another's migration must see what it did.
  begin: 'begin isolation level read committed',
  // SQLite takes an empty list, PostgreSQL does not.
  plugins: [new CamelCasePlugin(), new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
  createIntrospector: (db) => new PostgresIntrospector(db),
}

export function createPostgresKysely(executeQuery: Execute, close: () => Promise<void>): Kysely<Tables> {
  return createSingleConnectionKysely(POSTGRES, executeQuery, close)
}
