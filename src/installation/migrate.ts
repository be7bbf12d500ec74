import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import type { DatabaseLocation } from '../db/database.ts'
import { assertNotOlderThanMark, findHighWaterMark, readHighWaterMark, saveHighWaterMark } from '../db/high-water-mark.ts'
import type { MovedTable, MoveListener } from '../db/move/move.ts'
import { sqliteLocation } from '../db/sqlite/database.ts'
import { Failure } from '../errors.ts'
import { syncInPlace, syncNames } from '../storage/sync.ts'
import { MASTER_KEY_ID } from './master-key-id.ts'

export type MovedInstallation = {
  tables: MovedTable[]
  /** Whether an earlier run had moved everything. */
  before: boolean
}

/**
 * Moves the database from the data folder to PostgreSQL. The other files of the folder stay and belong to the new database from then
 * on. The caller holds the folder's lock.
 * @throws Failure that says what to do; the source is unchanged, and the next run resumes
 */
export async function moveInstallation({ dataDir }: Config, url: string, watch: MoveListener): Promise<MovedInstallation> {
  const { database: path, mark: markFile } = dataPaths(dataDir)
  const [{ moveToPostgres }, { removeCreatedLogFiles }, { postgresLocation }] = await Promise.all([
    import('../db/move/move.ts'),
    import('../db/move/source.ts'),
    import('../db/postgres/location.ts'),
  ])
  using _ = removeCreatedLogFiles(path)
  const [source, target] = [sqliteLocation(path), postgresLocation(url)]
  const installation = await source.peekSetting(MASTER_KEY_ID)
  if (installation === undefined)
    throw new Failure('not-found', `There is no installation in ${dataDir} to move. Set REELGATE_DATA to its data folder.`)
  const before = !(await target.hasUnfinishedMove()) && (await target.peekSetting(MASTER_KEY_ID)) === installation
  if (before) await assertSourceUnchanged(source, target)
  else await assertNotOlderThanMark(source, markFile)
  const { tables, highWaterMark } = before
    ? { tables: [], highWaterMark: await findHighWaterMark(target) }
    : await moveToPostgres({ path, url, installation }, watch)
  await recordMove(markFile, highWaterMark, target)
  return { tables, before }
}

/** From now on the source counts as an old copy. A run that was killed may have moved everything without recording it. */
async function recordMove(markFile: string, highWaterMark: number, { address, name }: DatabaseLocation): Promise<void> {
  try {
    await saveHighWaterMark(markFile, { value: Math.max(highWaterMark, readHighWaterMark(markFile).value), address })
    syncInPlace(markFile)
    syncNames(markFile)
  } catch (cause) {
    throw new Failure(
      'unavailable',
      `The installation has been moved to ${name}, but that cannot be recorded in ${markFile}, so a start without REELGATE_DATABASE_URL would use the old database. Correct its permissions or free some space, and run the same command again.`,
      { cause },
    )
  }
}

/** @throws Failure `conflict` when the source was used after it had been moved */
async function assertSourceUnchanged(source: DatabaseLocation, target: DatabaseLocation): Promise<void> {
  if ((await findHighWaterMark(target)) > (await findHighWaterMark(source))) return
  throw new Failure(
    'conflict',
    `${target.name} holds this installation as it was when it was moved there, and ${source.name} has been used since. Create an empty database and name that one. Nothing was changed.`,
  )
}
