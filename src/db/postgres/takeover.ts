import { setTimeout as pause } from 'node:timers/promises'
import { DatabaseInUse } from '../../errors.ts'
import type { DatabaseListener } from '../database.ts'
import { rows, withProbeConnection } from './probe.ts'
import { SERVER_LOCK } from './server-lock.ts'

const POLL_INTERVAL_MS = 1_000

/** @param mode of those that keep a server from the database: with others it is only the one that shares it with none */
const LOCK_HOLDERS = `select pid from pg_locks where locktype = 'advisory' and granted and (classid::bigint << 32) + objid::bigint = $1
  and database = (select oid from pg_database where datname = current_database()) and mode = any($2)`

/**
 * What a server does when another one has taken its database, or when others that share it took it for dead: it stops reading and
 * writing, because what it has in memory is out of date. Once none keeps it from the database, it may start again with nothing in memory.
 * @param closeConnections starts to close this server's connections
 */
export function createTakeoverHandler(url: string, withOthers: boolean, closeConnections: () => void) {
  const modes = withOthers ? ['ExclusiveLock'] : ['ExclusiveLock', 'ShareLock']
  let error: DatabaseInUse | undefined
  let listener: Pick<DatabaseListener, 'takenOver' | 'released'> | undefined

  function handleTakeover(): void {
    if (!listener || error) return
    error = new DatabaseInUse()
    closeConnections()
    listener.takenOver()
    void waitForRelease()
  }

  async function waitForRelease(): Promise<void> {
    let isReleased = false
    while (listener && !isReleased) {
      await pause(POLL_INTERVAL_MS, undefined, { ref: false })
      isReleased = await withProbeConnection(
        url,
        async (connection) => (await rows(connection, LOCK_HOLDERS, SERVER_LOCK, modes)).length === 0,
      ).catch(() => false)
    }
    listener?.released()
  }

  return {
    handleTakeover,
    /** Why nothing may be read or written; undefined while this server has the database. */
    error: () => error,
    watch(newListener: Pick<DatabaseListener, 'takenOver' | 'released'>): void {
      listener = newListener
    },
    stop(): void {
      listener = undefined
    },
  }
}
