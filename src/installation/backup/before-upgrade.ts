import type { Config } from '../../config/config.ts'
import { dataPaths } from '../../config/data-paths.ts'
import type { DatabaseLocation } from '../../db/database.ts'
import { isDatabaseFull } from '../../db/sqlite/commit.ts'
import { Failure, isDiskFull } from '../../errors.ts'
import { PROGRAM_NAME } from '../../program-name.ts'
import { MASTER_KEY_ID } from '../master-key-id.ts'
import { backUpRows } from './backup-rows.ts'

/** How many upgrades may be undone. */
const KEPT = 3

/**
 * Backs up the rows where this version is about to migrate them, since a database is never migrated backwards.
 * @returns how to go back, for the operator; undefined when nothing is migrated
 * @throws Failure when there is no space for it: nothing is migrated then
 */
export async function backUpBeforeUpgrade(config: Config, location: DatabaseLocation): Promise<string | undefined> {
  const applied = await location.appliedMigrations()
  const isUpgrade = applied.length > 0 && location.migrations.some((migration) => !applied.includes(migration))
  const isNewer = applied.some((migration) => !location.migrations.includes(migration)) // refused when it is opened
  if (!isUpgrade || isNewer || (await location.peekSetting(MASTER_KEY_ID)) === undefined) return undefined
  const { beforeUpgrade: folder } = dataPaths(config.dataDir)
  try {
    const { name } = await backUpRows(config, { folder, keep: KEPT })
    const first =
      config.databaseUrl === undefined
        ? 'stop the server, run this command, and install that version afterwards'
        : 'stop the server, install that version, name an empty database in REELGATE_DATABASE_URL, and run this command'
    return `To go back to the version before, ${first}: ${PROGRAM_NAME} restore ${folder} --rows --at ${name}`
  } catch (cause) {
    if (!isDiskFull(cause) && !isDatabaseFull(cause)) throw cause
    throw new Failure(
      'unavailable',
      `The database was not upgraded: there is no space for a backup of its rows in ${folder}. Free as much space as it takes, and start again.`,
      { cause },
    )
  }
}
