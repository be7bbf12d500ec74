import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { recordsTable } from '../db/dialect.ts'
import type { KeyValue, WrappedColumn } from './wrapped-columns.ts'

export type WrappedRow = Readonly<Record<string, KeyValue>> & { wrapped: Buffer }

/**
 * Rows whose value was not wrapped by this master key, in the order of their keys.
 * @param masterKeyId with which a wrapped value begins
 * @param after the last row of the page before
 */
export async function listWrappedByOthers(
  db: Db,
  { table, column, key, also = [] }: WrappedColumn,
  masterKeyId: Buffer,
  { after, limit }: { after: WrappedRow | undefined; limit: number },
): Promise<WrappedRow[]> {
  const names = Object.keys(key)
  const keyColumns = sql.join(names.map((name) => sql.ref(name)))
  const later = after ? sql`and (${keyColumns}) > (${sql.join(names.map((name) => sql.val(after[name])))})` : sql``
  const { rows } = await sql<WrappedRow>`
    select ${sql.join([...names, ...also].map((name) => sql.ref(name)))}, ${sql.ref(column)} as wrapped from ${sql.table(table)}
    where substr(${sql.ref(column)}, 1, ${sql.lit(masterKeyId.length)}) <> ${masterKeyId} ${later}
    order by ${keyColumns} limit ${limit}`.execute(db)
  return rows
}

/** Stores these values where those from which they were made still are. @returns how many */
export async function replaceWrapped(
  tx: Db,
  { table, column, key }: WrappedColumn,
  rows: readonly (WrappedRow & { next: Buffer })[],
): Promise<number> {
  const target = (name: string) => sql.ref(`${table}.${name}`)
  const isSameRow = Object.keys(key).map((name) => sql`${target(name)} = ${sql.ref(`change.${name}`)}`)
  const { numAffectedRows } = await sql`
    update ${sql.table(table)} set ${sql.ref(column)} = change.next
    from ${recordsTable(tx, 'change', { ...key, wrapped: 'bytea', next: 'bytea' }, rows)}
    where ${sql.join(isSameRow, sql` and `)} and ${target(column)} = change.wrapped`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
