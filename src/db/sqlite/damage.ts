import { sql } from 'kysely'
import { Failure } from '../../errors.ts'
import type { Db } from '../database.ts'

/** The first damage, in SQLite's words; undefined: the database is whole. About a millisecond per MiB. */
export async function findDamage(db: Db): Promise<string | undefined> {
  return damageIn(await sql<Result>`pragma quick_check(1)`.execute(db))
}

/**
 * Checks a large database in a thread of its own. What is damaged must not grow: reads go on as far as they can, writes do not.
 * @param mayGoOn asked before each table; undefined is returned when it says no
 */
export async function findDamageInWorker(
  checker: Db,
  write: { forbid(why: Failure): void },
  mayGoOn: () => boolean,
): Promise<string | undefined> {
  const damage = await findDamageByTable(checker, mayGoOn).catch((error: Error) => {
    // The thread's errors have words only. It also ends, without a result, when the database is closed.
    return /malformed|not a database/.test(error.message) ? error.message : undefined
  })
  if (damage !== undefined)
    write.forbid(
      new Failure('unavailable', 'The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.'),
    )
  return damage
}

/**
 * Looks table by table, each with its indexes, and first at the list of free pages: a call into SQLite ends when it ends, and a stop
 * waits for it (F-09). What remains: a stop waits for the table that is being checked, and a page that two tables use is not found.
 */
async function findDamageByTable(db: Db, mayGoOn: () => boolean): Promise<string | undefined> {
  const { rows } = await sql<{ name: string }>`select name from sqlite_master where type = 'table'`.execute(db)
  for (const table of ['sqlite_schema', ...rows.map(({ name }) => name)]) {
    if (!mayGoOn()) return undefined
    const damage = damageIn(await sql<Result>`pragma quick_check(${sql.raw(`"${table.replaceAll('"', '""')}"`)})`.execute(db))
    if (damage !== undefined) return damage
  }
  return undefined
}

type Result = { quickCheck: string }

function damageIn({ rows }: { rows: Result[] }): string | undefined {
  return rows[0]?.quickCheck === 'ok' ? undefined : `quick_check: ${rows[0]?.quickCheck}`
}
