import { sql } from 'kysely'
import type { Db } from './database.ts'
import type { Tables } from './tables.ts'

/**
 * Removes some of a table's rows from before a time or day, the oldest first.
 * @param key the columns that name a row
 * @returns how many
 */
export async function removeOldRows<Table extends keyof Tables>(
  tx: Db,
  { table, key, age }: { table: Table; key: readonly (keyof Tables[Table] & string)[]; age: keyof Tables[Table] & string },
  before: number | string,
  limit: number,
): Promise<number> {
  const columns = sql.join(key.map((name) => sql.ref(name)))
  const { numAffectedRows } = await sql`delete from ${sql.table(table)} where (${columns}) in
    (select ${columns} from ${sql.table(table)} where ${sql.ref(age)} < ${before} order by ${sql.ref(age)} limit ${limit})`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
