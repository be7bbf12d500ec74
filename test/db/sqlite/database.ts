import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import type { Database } from '../../../src/db/database.ts'
import { openSqlite } from '../../../src/db/sqlite/database.ts'

/** A path for a database of the test's own. */
export async function newPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-db-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return join(folder, 'reelgate.db')
}

/** A database of the test's own. */
export async function openOwnSqlite(): Promise<Database & { path: string }> {
  const path = await newPath()
  const database = await openSqlite(path)
  onTestFinished(() => database.close())
  return { ...database, path }
}

/** Opens a database file directly, without the service's code. */
export function using<T>(path: string, work: (database: SqliteDatabase.Database) => T): T {
  const database = new SqliteDatabase(path)
  try {
    return work(database)
  } finally {
    database.close()
  }
}
