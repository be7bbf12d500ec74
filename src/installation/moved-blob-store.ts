import type { Database, Db } from '../db/database.ts'

/**
 * Which blobs are in the new place while all move there, each as `FOLDER/NAME`. A name that is not listed is in the old place, or nowhere.
 * Names stay listed when their blobs are removed: no later blob has the same.
 */
export type MovedBlobs = {
  find(names: readonly string[]): Promise<ReadonlySet<string>>
  /** Durable when it resolves. */
  add(name: string): Promise<void>
  /** Of a move that is turned round: it is in the old place again. */
  remove(name: string): Promise<void>
  /** Forgets all of them, in small transactions. */
  clear(): Promise<void>
}

const CLEARED_AT_ONCE = 2_000

export function movedBlobs({ db, write }: Pick<Database, 'db' | 'write'>): MovedBlobs {
  return {
    find: (names) => findMovedBlobs(db, names),
    add: (name) => write((tx) => addMovedBlob(tx, name)),
    remove: (name) => write((tx) => removeMovedBlobs(tx, [name])),
    async clear() {
      for (let names = await listMovedBlobs(db); names.length > 0; names = await listMovedBlobs(db)) {
        const forgotten = names
        await write((tx) => removeMovedBlobs(tx, forgotten))
      }
    },
  }
}

export async function findMovedBlobs(db: Db, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set()
  const rows = await db.selectFrom('movedBlob').select('name').where('name', 'in', names).execute()
  return new Set(rows.map(({ name }) => name))
}

export async function addMovedBlob(tx: Db, name: string): Promise<void> {
  const row = tx.insertInto('movedBlob').values({ name })
  await row.onConflict((conflict) => conflict.column('name').doNothing()).execute()
}

/** Some of them. */
export async function listMovedBlobs(db: Db): Promise<string[]> {
  const rows = await db.selectFrom('movedBlob').select('name').limit(CLEARED_AT_ONCE).execute()
  return rows.map(({ name }) => name)
}

export async function removeMovedBlobs(tx: Db, names: readonly string[]): Promise<void> {
  await tx.deleteFrom('movedBlob').where('name', 'in', names).execute()
}
