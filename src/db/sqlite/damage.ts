import { sql } from 'kysely'
import { Failure } from '../../errors.ts'
import type { Db } from '../database.ts'

/** The first damage, as SQLite describes it; undefined when there is none. Takes about a millisecond per MiB. */
export async function findDamage(db: Db): Promise<string | undefined> {
  return damageIn(await sql<Result>`pragma quick_check(1)`.execute(db))
}

/**
 * Checks a large database in a thread of its own. Damage must not spread: after it was found, reads continue and writes are
 * blocked.
 * @param mayContinue called before each table; when it returns false, the check ends with undefined
 */
export async function findDamageInWorker(checker: Db, write: { blockWrites(reason: Failure): void }, mayContinue: () => boolean) {
  const damage = await findDamageByTable(checker, mayContinue).catch((error: Error) => {
    // Errors of the thread have only a message. The thread also ends, without a result, when the database is closed.
    return /malformed|not a database/.test(error.message) ? error.message : undefined
  })
  if (damage !== undefined)
    write.blockWrites(
      new Failure('unavailable', 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.'),
    )
  return damage
}

/**
 * Checks table by table, each with its indexes, after the list of free pages: a call into SQLite cannot be interrupted, and a
 * stop waits for it (F-09). Limits: a stop still waits for the table that is being checked, and a page that two tables use is
 * not found.
 */
async function findDamageByTable(db: Db, mayContinue: () => boolean): Promise<string | undefined> {
  const { rows } = await sql<{ name: string }>`select name from sqlite_master where type = 'table'`.execute(db)
  for (const table of ['sqlite_schema', ...rows.map(({ name }) => name)]) {
    if (!mayContinue()) return undefined
    const damage = damageIn(await sql<Result>`pragma quick_check(${sql.raw(`"${table.replaceAll('"', '""')}"`)})`.execute(db))
    if (damage !== undefined) return damage
  }
  return undefined
}

type Result = { quickCheck: string }

function damageIn({ rows }: { rows: Result[] }): string | undefined {
  return rows[0]?.quickCheck === 'ok' ? undefined : `quick_check: ${rows[0]?.quickCheck}`
}
