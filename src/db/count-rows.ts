import { type SelectQueryBuilder, sql } from 'kysely'
import type { Tables } from './tables.ts'

/** How many rows a query without columns selects. */
export async function countRows<Name extends keyof Tables>(
  // biome-ignore lint/complexity/noBannedTypes: Kysely's type of a row without columns
  rows: SelectQueryBuilder<Tables, Name, {}>,
): Promise<number> {
  const { count } = await rows.select((row) => row.fn.countAll<number>().as('count')).executeTakeFirstOrThrow()
  return Number(count)
}

/** Whether there is one. */
// biome-ignore lint/complexity/noBannedTypes: as above
export async function hasRow<Name extends keyof Tables>(rows: SelectQueryBuilder<Tables, Name, {}>): Promise<boolean> {
  const row = await rows.select(sql.lit(1).as('one')).limit(1).executeTakeFirst()
  return row !== undefined
}
