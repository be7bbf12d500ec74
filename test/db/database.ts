import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Database, openSqlite } from '../../src/db/sqlite.ts'

/** A database of the test's own. */
export async function openDatabase(): Promise<Database & { path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-db-'))
  const path = join(folder, 'reelgate.db')
  const database = await openSqlite(path)
  onTestFinished(async () => {
    await database.close()
    await rm(folder, { recursive: true })
  })
  return { ...database, path }
}
