import type { Kysely } from 'kysely'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import {
  clientOptions,
  configureSession,
  prepared,
  type Statement,
  toStatementResult,
} from '../../../src/db/postgres/connection.ts'
import { createPostgresKysely } from '../../../src/db/postgres/dialect.ts'
import type { Tables } from '../../../src/db/tables.ts'

/** What PostgreSQL did for a statement, one of a trigger as well. */
export type Explained = { 'Query Text': string; Plan: Step }

export type Step = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Subplan Name'?: string
  /** Pages of 8 kB that were looked at, by the steps below it, too. */
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Step[]
}

const EXPLAIN = {
  'auto_explain.log_min_duration': 0,
  'auto_explain.log_level': 'notice',
  'auto_explain.log_format': 'json',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
}

/** A connection with prepared statements, like the service's, that returns the plans of statements. @param url of a superuser */
export async function connectExplaining(url: string) {
  const client = new pg.Client(clientOptions({ url }))
  await client.connect()
  onTestFinished(() => client.end())
  await client.query("load 'auto_explain'")
  await configureSession(client, EXPLAIN)
  let plans: Explained[] = []
  client.on('notice', ({ message = '' }) => {
    const [, explained] = /^duration: .* plan:\n(.*)$/s.exec(message) ?? []
    if (explained !== undefined) plans.push(JSON.parse(explained))
  })
  const db = createPostgresKysely(
    async <R>(statement: Statement) => toStatementResult<R>(await client.query(prepared(statement))),
    async () => undefined,
  )

  /** Runs a call, rolls it back, and returns the plans of its statements. */
  async function explain(call: (db: Kysely<Tables>) => Promise<unknown>): Promise<Explained[]> {
    await client.query('begin')
    try {
      plans = []
      await call(db)
      return plans
    } finally {
      await client.query('rollback')
    }
  }

  return { db, explain }
}

/** A step and all of its children. */
export function flattenSteps(step: Step): Step[] {
  return [step, ...(step.Plans ?? []).flatMap(flattenSteps)]
}
