import type { Db } from '../db/database.ts'
import type { Signals } from '../signals/signals.ts'
import { MASTER_KEY_ID } from './master-key-id.ts'

/** A commit may be later than the time in its rows. */
const MAX_COMMIT_S = 5

/**
 * Sends the signals that other processes cannot send here. One statement on indexes finds out whether there is something to read.
 * @returns looks once, and rejects when the database does not answer or a listener fails: the next look repeats it
 */
export function createRowWatch({ db, nowS, signals }: { db: Db; nowS: () => number; signals: Signals }): () => Promise<void> {
  let known: Partial<Newest> = {}
  let lookedAtS = nowS()

  return async () => {
    const atS = nowS()
    const newest = await findNewest(db)
    const sinceS = lookedAtS - MAX_COMMIT_S
    if (newest.endedAtS >= sinceS) await signals.notify('session-ended', { sinceS })
    if (newest.bans !== known.bans) await signals.notify('bans-changed', undefined)
    if (newest.masterKeyIds !== known.masterKeyIds) await signals.notify('key-ring-changed', undefined)
    known = newest
    lookedAtS = atS
  }
}

/** What changes whenever the rows do: of sessions when the last one ended, of bans their number and the sum of their ends. */
type Newest = { endedAtS: number; bans: string; masterKeyIds: string | null }

async function findNewest(db: Db): Promise<Newest> {
  const { endedAtS, banCount, banEnds, masterKeyIds } = await db
    .selectNoFrom(({ selectFrom }) => [
      selectFrom('playbackSession')
        .select(({ fn }) => fn.max('endedAtS').as('endedAtS'))
        .where('endedAtS', 'is not', null)
        .as('endedAtS'),
      selectFrom('ban')
        .select(({ fn }) => fn.countAll().as('banCount'))
        .as('banCount'),
      selectFrom('ban')
        .select(({ fn }) => fn.sum('endsAtS').as('banEnds'))
        .as('banEnds'),
      selectFrom('setting').select('value').where('name', '=', MASTER_KEY_ID).as('masterKeyIds'),
    ])
    .executeTakeFirstOrThrow()
  return { endedAtS: Number(endedAtS ?? 0), bans: `${banCount} ${banEnds}`, masterKeyIds }
}
