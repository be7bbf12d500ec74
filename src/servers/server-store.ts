import { sql } from 'kysely'
import { hasRow } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'

type ServerRow = Tables['server']
export type ServerState = ServerRow['state']

/** Whose row it is: of one start of a server. */
type RunKey = { id: string; run: string }

/** What a beat says. */
export type Beat = { beatAtS: number; state: ServerState; knows: string; sessions: number; load: number }

/** A server that starts; a row of an earlier start on the same data folder becomes its own, and stays drained. */
export async function insertServer(
  db: Db,
  server: RunKey & Beat & { name: string; version: string; startedAtS: number; backend: string },
): Promise<void> {
  const { id: _, ...values } = server
  await db
    .insertInto('server')
    .values(server)
    .onConflict((conflict) => conflict.column('id').doUpdateSet(values))
    .execute()
}

/** Undefined: another has removed the row, since this server was silent. */
export async function saveBeat(db: Db, { id, run }: RunKey, beat: Beat): Promise<{ drained: number } | undefined> {
  return db.updateTable('server').set(beat).where('id', '=', id).where('run', '=', run).returning('drained').executeTakeFirst()
}

/** A server that is silent for so long is dead to the others. It answers nothing before they can think so. */
export const MAX_SILENCE_S = 10

export async function hasLivingServer(db: Db, nowS: number): Promise<boolean> {
  return hasRow(db.selectFrom('server').where('beatAtS', '>', nowS - MAX_SILENCE_S))
}

export async function listServers(db: Db) {
  return db.selectFrom('server').selectAll().orderBy('name').orderBy('id').execute()
}

/**
 * @param backend removes it only while this connection writes for it
 * @returns whether this call removed it: others do it at the same time
 */
export async function removeServer(db: Db, { id, run }: RunKey, backend?: string | null): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('server')
    .where('id', '=', id)
    .where('run', '=', run)
    .$if(backend !== undefined, (rows) => rows.where('backend', 'is not distinct from', backend ?? null))
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** @returns its name; undefined when there is no such server */
export async function saveDrained(tx: Db, id: string, drained: boolean): Promise<string | undefined> {
  const row = await tx
    .updateTable('server')
    .set({ drained: Number(drained) })
    .where('id', '=', id)
    .returning('name')
    .executeTakeFirst()
  return row?.name
}

/** Ends the leases of a server that is dead: its work is free without waiting for them. */
export async function endClaims(db: Db, server: string): Promise<void> {
  await db
    .updateTable('claim')
    .set({ endsAtS: sql.lit(0) })
    .where('server', '=', server)
    .where('id', 'is not', null)
    .execute()
}
