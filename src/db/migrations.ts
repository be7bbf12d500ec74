import { type Kysely, sql } from 'kysely'
import { type Migration, type MigrationProvider, Migrator } from 'kysely/migration'
import { Failure } from '../errors.ts'
import { firstTables } from './migrations/0001-first-tables.ts'
import { tagsAndSearch } from './migrations/0002-tags-and-search.ts'
import { markImages } from './migrations/0003-mark-images.ts'
import { streamSlots } from './migrations/0005-stream-slots.ts'
import { limits } from './migrations/0006-limits.ts'
import { keysAndActs } from './migrations/0007-keys-and-acts.ts'
import { folders } from './migrations/0008-folders.ts'
import { imports } from './migrations/0009-imports.ts'
import { hooks } from './migrations/0010-hooks.ts'
import { files } from './migrations/0011-files.ts'
import { otpRules } from './migrations/0012-otp-rules.ts'
import { usage } from './migrations/0013-usage.ts'
import { idempotency } from './migrations/0014-idempotency.ts'
import { mp4 } from './migrations/0015-mp4.ts'
import { boundedWork } from './migrations/0016-bounded-work.ts'
import { mp4Tries } from './migrations/0018-mp4-tries.ts'
import { chunksInTurn } from './migrations/0019-chunks-in-turn.ts'
import type { Tables } from './tables.ts'

/** In order; a released one never changes. */
export const MIGRATIONS: Record<string, Migration> = {
  '0001-first-tables': firstTables,
  '0002-tags-and-search': tagsAndSearch,
  '0003-mark-images': markImages,
  '0005-stream-slots': streamSlots,
  '0006-limits': limits,
  '0007-keys-and-acts': keysAndActs,
  '0008-folders': folders,
  '0009-imports': imports,
  '0010-hooks': hooks,
  '0011-files': files,
  '0012-otp-rules': otpRules,
  '0013-usage': usage,
  '0014-idempotency': idempotency,
  '0015-mp4': mp4,
  '0016-bounded-work': boundedWork,
  '0018-mp4-tries': mp4Tries,
  '0019-chunks-in-turn': chunksInTurn,
}

/**
 * Brings the tables up to this version, each migration in a transaction.
 * @throws Failure `unavailable` when the database was made by a newer Reelgate, or a migration fails
 */
export async function migrate(db: Kysely<Tables>): Promise<void> {
  const provider: MigrationProvider = { getMigrations: async () => MIGRATIONS }
  await refuseNewer(db)
  const { error } = await new Migrator({ db, provider }).migrateToLatest()
  if (error)
    throw new Failure('unavailable', 'The database could not be brought up to this version; nothing was changed.', {
      cause: error,
    })
}

async function refuseNewer(db: Kysely<Tables>): Promise<void> {
  const tables = await sql<{ name: string }>`select name from sqlite_master where name = 'kysely_migration'`.execute(db)
  if (tables.rows.length === 0) return
  const done = await sql<{ name: string }>`select name from kysely_migration`.execute(db)
  const newer = done.rows.find(({ name }) => !(name in MIGRATIONS))
  if (newer) {
    throw new Failure(
      'unavailable',
      `The database was made by a newer version of Reelgate (it has step ${newer.name}). Start that version, or restore a backup made by this one.`,
    )
  }
}
