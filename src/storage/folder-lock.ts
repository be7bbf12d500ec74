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
