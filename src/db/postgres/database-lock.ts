import { setTimeout as pause } from 'node:timers/promises'
import { DatabaseInUse } from '../../errors.ts'
import { rows, withProbeConnection } from './probe.ts'
import { SERVER_LOCK } from './server-lock.ts'

const ASK_EVERY_MS = 1_000

const HOLDERS = `select pid from pg_locks where locktype = 'advisory' and granted and (classid::bigint << 32) + objid::bigint = $1
  and database = (select oid from pg_database where datname = current_database())`

export type DatabaseLockListener = {
  /** Another server works with the database from now on. */
  held(): void
  /** That one has let go. What this server remembers is out of date. */
  free(): void
}

/**
 * What becomes of a server whose database another one has taken: it reads and writes nothing more, for what it remembers is out of
 * date. Once the other one has let go, this one may begin again, with nothing in memory.
 * @param part ends its connections
 */
export function createDatabaseLock(url: string, part: () => void) {
  let holds: DatabaseInUse | undefined
  let news: DatabaseLockListener | undefined

  function take(): void {
    if (!news || holds) return
    holds = new DatabaseInUse()
    part()
    news.held()
    void untilFree()
  }

  async function untilFree(): Promise<void> {
    let isFree = false
    while (news && !isFree) {
      await pause(ASK_EVERY_MS, undefined, { ref: false })
      isFree = await withProbeConnection(
        url,
        async (connection) => (await rows(connection, HOLDERS, SERVER_LOCK)).length === 0,
      ).catch(() => false)
    }
    news?.free()
  }

  return {
    take,
    /** Why nothing may be read or written; undefined: this server has the database. */
    refusal: () => holds,
    watch(heard: DatabaseLockListener): void {
      news = heard
    },
    stop(): void {
      news = undefined
    },
  }
}
