import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import type { Database } from '../src/db/database.ts'
import { type Claims, type ClaimsDeps, openClaims } from '../src/jobs/claims.ts'
import { createSignals, type Signals } from '../src/signals/signals.ts'

let servers = 0

/** The claims of one more server of a database. */
export async function openTestClaims(
  { db, write, nowS, signals = createSignals(write) }: Pick<Database, 'db' | 'write'> & { nowS: () => number; signals?: Signals },
  release: ClaimsDeps['release'] = {},
  identity: Partial<Pick<ClaimsDeps, 'server' | 'isOnlyServer'>> = {},
): Promise<Claims> {
  const claims = await openClaims({
    ...{ db, write, nowS, signals, release, log: pino({ level: 'silent' }) },
    ...{ server: `server ${++servers}`, isOnlyServer: false, ...identity },
  })
  onTestFinished(() => claims.stop())
  return claims
}
