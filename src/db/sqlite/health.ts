import { existsSync, statSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { type Finding, failure, ok, warning } from '../../health-check.ts'
import { isDatabaseFull } from './commit.ts'
import { MAX_BYTES_CHECKED_AT_START } from './database.ts'

/** Checks a database that a server may be using. A database too large to be read quickly is checked by the server itself. */
export function examineSqlite(path: string): Finding {
  if (!existsSync(path)) return ok('Not created yet: the first start creates it.')
  if (statSync(path).size > MAX_BYTES_CHECKED_AT_START) return ok(`${path} exists; each start checks it in the background.`)
  try {
    const connection = new SqliteDatabase(path, { readonly: true, timeout: 5_000 })
    try {
      const found = connection.pragma('quick_check(1)', { simple: true })
      if (found !== 'ok') throw new Error(String(found))
      return ok(`${path} is undamaged.`)
    } finally {
      connection.close()
    }
  } catch (error) {
    if (isDatabaseFull(error))
      return warning(`${path} cannot be checked: the disk is full. Free some space, then run the doctor again.`)
    return failure(
      `${path} is damaged or cannot be read. Stop Reelgate and restore it from a backup, or correct its permissions.`,
    )
  }
}
