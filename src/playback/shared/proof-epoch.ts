import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import type { Db } from '../../db/database.ts'

/**
 * The epoch from which all servers derive the key of the nonces: 16 random bytes in a table without a log. PostgreSQL empties it whenever
 * it may have lost commits: in each crash recovery, and on a standby that is promoted. The first server that finds it empty begins the
 * next epoch, so a proof that was used before is stale, also when the row that says so was lost.
 */
export async function openProofEpoch(tx: Db): Promise<string> {
  await sql`insert into proof_epoch (epoch) values (${randomBytes(16).toString('hex')}) on conflict do nothing`.execute(tx)
  const { rows } = await sql<{ epoch: string }>`select epoch from proof_epoch`.execute(tx)
  const [row] = rows
  if (!row) throw new Error('the epoch of the proofs is gone')
  return row.epoch
}
