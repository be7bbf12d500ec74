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
  // Not serializable: a process that waited for another's migration must see its changes.
  begin: 'begin isolation level read committed',
  // SQLite accepts an empty list, PostgreSQL does not.
  plugins: [new CamelCasePlugin(), new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })],
  createIntrospector: (db) => new PostgresIntrospector(db),
}

export function createPostgresKysely(executeQuery: Execute, close: () => Promise<void>): Kysely<Tables> {
  return createSingleConnectionKysely(POSTGRES, executeQuery, close)
}
