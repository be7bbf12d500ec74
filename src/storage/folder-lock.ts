import { existsSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'

/** Proof that this process alone writes to a data folder; the kernel gives it up when the process ends, however it ends. */
export type FolderLock = { release(): void }

/** Takes the lock of a data folder. Undefined: another process holds it. */
export function takeFolderLock(path: string): FolderLock | undefined {
  const connection = new SqliteDatabase(path, { timeout: 0 })
  try {
    connection.pragma('journal_mode = MEMORY') // a journal, though nothing is ever written, would need room on a full disk
    connection.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    connection.close()
    if (error instanceof SqliteDatabase.SqliteError && error.code.startsWith('SQLITE_BUSY')) return undefined
    throw error
  }
  // The closure keeps the handle referenced: a collected handle would free the lock.
  return { release: () => connection.close() }
}

/**
 * Whether a process holds the lock of a data folder. Nothing is changed.
 * @throws SqliteError when the file is no lock
 */
export function isFolderLocked(path: string): boolean {
  if (!existsSync(path)) return false
  const connection = new SqliteDatabase(path, { readonly: true, timeout: 0 })
  try {
    connection.prepare('select 1 from sqlite_master').get()
    return false
  } catch (error) {
    if (error instanceof SqliteDatabase.SqliteError && error.code.startsWith('SQLITE_BUSY')) return true
    throw error
  } finally {
    connection.close()
  }
}

/** Whether an error of the two above says that the file is something else than a lock. */
export function isNoLock(error: unknown): boolean {
  return error instanceof SqliteDatabase.SqliteError && ['SQLITE_NOTADB', 'SQLITE_CORRUPT'].includes(error.code)
}
