import { type Kysely, sql } from 'kysely'
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration'
import { Failure } from '../errors.ts'
import type { Tables } from './tables.ts'

/**
 * Brings the tables up to this version, each migration in a transaction.
 * @param migrations in order; a released one never changes
 * @throws Failure `unavailable` when the database was made by a newer Reelgate, or a migration fails
 */
export async function migrate(db: Kysely<Tables>, migrations: Record<string, Migration>): Promise<void> {
  const provider: MigrationProvider = { getMigrations: async () => migrations }
  assertNotNewer(await listApplied(db), Object.keys(migrations))
  const { error } = await new Migrator({ db, provider }).migrateToLatest()
  if (error)
    throw new Failure('unavailable', 'The database could not be brought up to this version; nothing was changed.', {
      cause: error,
    })
}

async function listApplied(db: Kysely<Tables>): Promise<string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some(({ name }) => name === 'kysely_migration')) return []
  const applied = await sql<{ name: string }>`select name from kysely_migration`.execute(db)
  return applied.rows.map(({ name }) => name)
}

/** @throws Failure `unavailable` when the database was made by a newer Reelgate, or between two versions */
export function assertNotNewer(applied: readonly string[], known: readonly string[]): void {
  const newer = applied.find((name) => !known.includes(name))
  if (newer === undefined) return
  throw new Failure(
    'unavailable',
    known.every((name) => applied.includes(name))
      ? `The database was made by a newer version of Reelgate (it has the migration ${newer}). Start that version, or restore a backup made by this one.`
      : `The database was made by an unreleased state of Reelgate (it has the migration ${newer}), which no version upgrades. Start that state, or restore a backup made by a release.`,
  )
}
