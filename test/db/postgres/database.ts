import type { Kysely } from 'kysely'
import { onTestFinished } from 'vitest'
import type { Database } from '../../../src/db/database.ts'
import { openConnection } from '../../../src/db/postgres/connection.ts'
import { createPostgresKysely } from '../../../src/db/postgres/dialect.ts'
import type { Tables } from '../../../src/db/tables.ts'
import { makeLocation } from '../../installation-folder.ts'
import type { DatabaseOptions } from '../../postgres.ts'
import { openDatabaseAt } from '../database.ts'

/** A database of the test's own, and its URL. */
export async function openOwnPostgres(database: DatabaseOptions['database'] = 'postgres'): Promise<Database & { url: string }> {
  const location = await makeLocation({ database })
  onTestFinished(() => location.remove())
  const opened = await openDatabaseAt(location)
  onTestFinished(() => opened.close())
  return { ...opened, url: location.databaseUrl ?? '' }
}

/**
 * Another program's connection, with any settings: one statement, or one transaction (READ COMMITTED), after the other.
 */
export function connectTo(url: string, settings: Readonly<Record<string, string | number>> = {}): Kysely<Tables> {
  const connection = openConnection({ url, settings })
  onTestFinished(() => connection.close())
  return createPostgresKysely(connection.execute, connection.close)
}
