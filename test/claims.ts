import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import type { Database } from '../src/db/database.ts'
import { type Claims, type ClaimsDeps, openClaims } from '../src/jobs/claims.ts'

let servers = 0

/** The claims of one more server of a database. */
export async function openTestClaims(
  { db, write, nowS }: Pick<Database, 'db' | 'write'> & { nowS: () => number },
  release: ClaimsDeps['release'] = {},
  identity: Partial<Pick<ClaimsDeps, 'server' | 'isOnlyServer'>> = {},
): Promise<Claims> {
  const claims = await openClaims({
    ...{ db, write, nowS, release, log: pino({ level: 'silent' }) },
    ...{ server: `server ${++servers}`, isOnlyServer: false, ...identity },
  })
  onTestFinished(() => claims.stop())
  return claims
}
