import { existsSync, statSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { type Finding, failure, ok, warning } from '../../health-check.ts'
import { isFull } from './commit.ts'
import { MAX_CHECKED_BYTES } from './database.ts'

/** Looks at a database that a server may be using; one too large to be read in a moment is checked by the server itself. */
export function examineSqlite(path: string): Finding {
  if (!existsSync(path)) return ok('There is none yet: the first start makes it.')
  if (statSync(path).size > MAX_CHECKED_BYTES) return ok(`${path} is there; it is checked by each start while it serves.`)
  try {
    const connection = new SqliteDatabase(path, { readonly: true, timeout: 5_000 })
    try {
      const found = connection.pragma('quick_check(1)', { simple: true })
      if (found !== 'ok') throw new Error(String(found))
      return ok(`${path} is whole.`)
    } finally {
      connection.close()
    }
  } catch (error) {
    if (isFull(error)) return warning(`${path} cannot be looked at: the disk is full. Free some space and look again.`)
    return failure(
      `${path} is damaged or cannot be read. Stop Reelgate and restore it from a backup, or correct its permissions.`,
    )
  }
}
