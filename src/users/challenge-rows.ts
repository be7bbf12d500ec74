import { sql } from 'kysely'
import type { Db } from '../db/database.ts'

// Rows without a log, on PostgreSQL: after a crash each challenge is asked for again.

/** `consoleUserId`: who may spend it; empty: any who signs in. */
type ChallengeRow = { challenge: string; consoleUserId: string; endsAtS: number }

/** Adds a challenge, and removes those that have expired. */
export async function insertChallenge(tx: Db, { challenge, consoleUserId, endsAtS }: ChallengeRow, nowS: number): Promise<void> {
  await Promise.all([
    sql`delete from passkey_challenge where ends_at_s <= ${nowS}`.execute(tx),
    sql`insert into passkey_challenge (challenge, console_user_id, ends_at_s) values (${challenge}, ${consoleUserId}, ${endsAtS})`.execute(
      tx,
    ),
  ])
}

/** @returns what was removed; undefined: there is no such challenge, or another call has spent it */
export async function removeChallenge(tx: Db, challenge: string): Promise<ChallengeRow | undefined> {
  const { rows } = await sql<ChallengeRow>`delete from passkey_challenge where challenge = ${challenge}
    returning challenge, console_user_id, ends_at_s`.execute(tx)
  return rows[0]
}
