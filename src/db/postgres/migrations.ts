import type { Migration } from 'kysely/migration'
import { tables } from './migrations/0001-tables.ts'
import { version030 } from './migrations/0002-version-0.3.0.ts'

/**
 * In order; a released one never changes. Until its release a changed 0002 takes a new name, so that a database of a state in between
 * is refused in one sentence.
 */
export const MIGRATIONS: Record<string, Migration> = { '0001-tables': tables, '0002-version-0.3.0-dev.9': version030 }
