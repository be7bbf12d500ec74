import {
  CompiledQuery,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  type DialectAdapter,
  type Driver,
  Kysely,
  type KyselyPlugin,
  type QueryCompiler,
} from 'kysely'
import type { Tables } from './tables.ts'

/** Runs a compiled statement. */
export type Execute = DatabaseConnection['executeQuery']

export type SqlFlavor = Pick<Dialect, 'createIntrospector'> & {
  adapter: DialectAdapter
  compiler: QueryCompiler
  /** Begins a transaction, for migrations. */
  begin: string
  plugins: KyselyPlugin[]
}

/**
 * Kysely over one connection that is always available. Kysely's own dialects acquire the connection for each statement, which
 * takes longer than most statements, and run SQLite's migrations without a transaction.
 */
export function createSingleConnectionKysely(
  { adapter, compiler, begin, plugins, createIntrospector }: SqlFlavor,
  executeQuery: Execute,
  close: () => Promise<void>,
): Kysely<Tables> {
  const connection: DatabaseConnection = { executeQuery, streamQuery: rejectStreams }
  const run = async (statement: string) => void (await connection.executeQuery(CompiledQuery.raw(statement)))
  const driver: Driver = {
    init: async () => {},
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
    beginTransaction: () => run(begin),
    commitTransaction: () => run('commit'),
    rollbackTransaction: () => run('rollback'),
    destroy: close,
  }
  const dialect: Dialect = {
    createAdapter: () => adapter,
    createDriver: () => driver,
    createIntrospector,
    createQueryCompiler: () => compiler,
  }
  const provider = { provideConnection: <T>(consume: (connection: DatabaseConnection) => Promise<T>) => consume(connection) }
  const executor = new DefaultQueryExecutor(compiler, adapter, provider, plugins)
  return new Kysely<Tables>({ config: { dialect }, dialect, driver, executor })
}

function rejectStreams(): never {
  throw new Error('streaming of rows is not supported')
}
