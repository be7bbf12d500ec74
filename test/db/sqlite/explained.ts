import SqliteDatabase from 'better-sqlite3'
import type { CompiledQuery, Kysely } from 'kysely'
import { onTestFinished } from 'vitest'
import { foldCase } from '../../../src/db/fold-case.ts'
import { createSqliteKysely } from '../../../src/db/sqlite/dialect.ts'
import type { Tables } from '../../../src/db/tables.ts'
import { hashOf, idOf } from '../large.ts'

/** A statement and its query plan. */
export type Explained = { text: string; steps: string[] }

/** A connection that returns the query plans of statements, except those of triggers. */
export function connectExplaining(path: string) {
  const connection = new SqliteDatabase(path)
  onTestFinished(() => void connection.close())
  connection.pragma('synchronous = OFF')
  connection.function('fold', { deterministic: true }, (text) => foldCase(String(text)))
  connection.function('id', (n) => idOf(Number(n)))
  connection.function('hash', (n) => hashOf(Number(n)))
  let plans: Explained[] = []

  async function execute<R>({ sql: text, parameters }: CompiledQuery) {
    const steps = connection.prepare<unknown[], { detail: string }>(`explain query plan ${text}`).all(parameters)
    plans.push({ text, steps: steps.map(({ detail }) => detail) })
    const statement = connection.prepare<unknown[], R>(text)
    if (statement.reader) return { rows: statement.all(parameters) }
    return { rows: [], numAffectedRows: BigInt(statement.run(parameters).changes) }
  }
  const db = createSqliteKysely(execute, async () => undefined)

  /** Runs a call, rolls it back, and returns the query plans of its statements. */
  async function explain(call: (db: Kysely<Tables>) => Promise<unknown>): Promise<Explained[]> {
    connection.exec('begin')
    try {
      plans = []
      await call(db)
      return plans
    } finally {
      connection.exec('rollback')
    }
  }

  return { db, explain }
}
