import { mkdir } from 'node:fs/promises'
import { onTestFinished } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import type { Database } from '../../src/db/database.ts'
import { openDatabase } from '../../src/installation/database.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { DATABASE, type DatabaseKind } from '../postgres.ts'

/** A database of the test's own, of the kind that the run is about or the one that the test names. */
export async function openOwnDatabase(kind: DatabaseKind = DATABASE): Promise<Database> {
  const database = await openSharedDatabase(kind)
  onTestFinished(() => database.close())
  return database
}

/** For a file whose tests share one: the caller closes it in `afterAll`. */
export async function openSharedDatabase(kind: DatabaseKind = DATABASE): Promise<Database> {
  const location = await makeLocation({ database: kind })
  const database = await openDatabaseAt(location)
  return {
    ...database,
    async close() {
      await database.close()
      await location.remove()
    },
  }
}

/** Opens the database of an installation that no server uses, or creates it. */
export async function openDatabaseAt({ dataDir, env }: Pick<Location, 'dataDir' | 'env'>): Promise<Database> {
  await mkdir(dataDir, { recursive: true })
  return openDatabase(readConfig(env))
}
