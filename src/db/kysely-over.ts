import {
  CamelCasePlugin,
  CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  type Driver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { Tables } from './tables.ts'

/** Runs a compiled statement. */
export type Execute = DatabaseConnection['executeQuery']

/**
 * Kysely over one SQLite connection that is always at hand. Kysely's own dialect asks for the connection with each statement, which
 * costs more than most statements take, and runs migrations without a transaction.
 */
export function kyselyOver(executeQuery: Execute, close: () => Promise<void>): Kysely<Tables> {
  const connection: DatabaseConnection = { executeQuery, streamQuery: refuseStreams }
  const [adapter, compiler] = [new TransactionalAdapter(), new SqliteQueryCompiler()]
  const driver = driverOf(connection, close)
  const dialect: Dialect = {
    createAdapter: () => adapter,
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => compiler,
  }
  const provider = { provideConnection: <T>(consume: (given: DatabaseConnection) => Promise<T>) => consume(connection) }
  const executor = new DefaultQueryExecutor(compiler, adapter, provider, [new CamelCasePlugin()])
  return new Kysely<Tables>({ config: { dialect }, dialect, driver, executor })
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl() {
    return true
  }
}

function driverOf(connection: DatabaseConnection, close: () => Promise<void>): Driver {
  const run = async (statement: string) => void (await connection.executeQuery(CompiledQuery.raw(statement)))
  return {
    init: async () => {},
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
    beginTransaction: () => run('begin immediate'),
    commitTransaction: () => run('commit'),
    rollbackTransaction: () => run('rollback'),
    destroy: close,
  }
}

function refuseStreams(): never {
  throw new Error('rows come all at once')
}
