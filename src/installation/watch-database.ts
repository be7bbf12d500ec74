import type { Logger } from 'pino'
import type { Database } from '../db/database.ts'
import { DatabaseInUse } from '../errors.ts'

/** Whether this server may use its database. Another one that takes it over keeps it until that one has stopped. */
export type DatabaseOwnership = {
  /** The error for every call while another server has the database. */
  refusal(): DatabaseInUse | undefined
  /** Whether the last call found that it does not answer. */
  isUnavailable(): boolean
  /** Resolves when another server has taken the database. */
  lost: Promise<void>
  /** Resolves when that server has released it: what this one has in memory is out of date. */
  released: Promise<void>
  /** What was found damaged; undefined while nothing was. */
  damage(): string | undefined
}

/** Logs what happens to the database while the server runs. */
export function watchDatabase(
  { watch, damage }: Pick<Database, 'watch' | 'damage'>,
  log: Logger,
  onDiskFull: () => void,
): DatabaseOwnership {
  const lost = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  let refusal: DatabaseInUse | undefined
  let found: string | undefined
  let isUnavailable = false
  void damage.then((problem) => {
    found = problem
    if (problem !== undefined)
      log.fatal({ damage: problem }, 'database: damaged; rejecting writes. Stop Reelgate and restore the database from a backup')
  })
  watch({
    unavailable(why) {
      isUnavailable = true
      log.error({ why }, 'database: unavailable; rejecting calls until it is back')
    },
    available() {
      isUnavailable = false
      log.info('database: available again')
    },
    diskFull: onDiskFull,
    takenOver() {
      refusal = new DatabaseInUse()
      log.error('database: in use by another server; rejecting calls until that one stops')
      lost.resolve()
    },
    released() {
      log.warn('database: released by the other server; restarting')
      released.resolve()
    },
  })
  return {
    refusal: () => refusal,
    isUnavailable: () => isUnavailable,
    lost: lost.promise,
    released: released.promise,
    damage: () => found,
  }
}
