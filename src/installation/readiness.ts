import { access, constants } from 'node:fs/promises'
import { sql } from 'kysely'
import { readVersion, tryBubblewrap } from '../encode/sandbox.ts'
import type { Foundation } from './open-foundation.ts'

/** What `/readyz` reports. */
export type Readiness = {
  /** Each rejects when the server is not ready; `low` leaves it ready, without some of what it does. */
  checks: Record<'database' | 'storage' | 'ffmpeg' | 'sandbox', () => Promise<'low' | undefined>>
  notices(): Promise<{ space: 'ok' | 'low'; webhooks?: 'held' }>
}

export function createReadiness({
  db,
  folders,
  ownership,
  sandbox,
  space,
  restoredCopy,
}: Pick<Foundation, 'db' | 'folders' | 'ownership' | 'sandbox' | 'space' | 'restoredCopy'>): Readiness {
  return {
    checks: {
      async database() {
        const refusal = ownership.refusal()
        if (refusal) throw refusal
        if (ownership.damage() !== undefined) throw new Error('the database is damaged')
        await sql`select 1`.execute(db)
        return undefined
      },
      async storage() {
        for (const folder of Object.values(folders)) await access(folder.root, constants.R_OK | constants.W_OK)
        return undefined
      },
      async ffmpeg() {
        await readVersion(sandbox)
        return undefined
      },
      sandbox: async () => ((await tryBubblewrap(sandbox)) ? undefined : 'low'),
    },
    notices: async () => ({
      space: (await space.isLow()) ? 'low' : 'ok',
      ...(restoredCopy.isPaused() && { webhooks: 'held' as const }),
    }),
  }
}
