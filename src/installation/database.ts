import { existsSync, readdirSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import type { Database, DatabaseLocation } from '../db/database.ts'
import { assertNotOlderThanMark, readHighWaterMark, saveHighWaterMark } from '../db/high-water-mark.ts'
import { assertNotNewer } from '../db/migrate.ts'
import { sqliteLocation } from '../db/sqlite/database.ts'
import { Failure } from '../errors.ts'
import type { Check } from '../health-check.ts'
import type { IdentifyingFile } from '../storage/identity.ts'
import { releaseReserveAtStart, releaseReservePart } from '../storage/reserve.ts'
import { backUpBeforeUpgrade } from './backup/before-upgrade.ts'

export type DatabaseWithMark = Database & {
  /** Records in the data folder how far the database has come. */
  saveHighWaterMark(mark: number): Promise<void>
  /** How to go back, where the database was migrated just now. */
  howToUndoUpgrade: string | undefined
}

/**
 * Opens only the database, for commands that need nothing else.
 * @param withOthers other servers may use it at the same time, if it can have several
 * @throws Failure `unavailable` when it is missing although there are videos, is damaged, or belongs to a newer version
 */
export async function openDatabase(config: Config, withOthers = false): Promise<DatabaseWithMark> {
  const { mark: markFile, reserve } = dataPaths(config.dataDir)
  releaseReserveAtStart(reserve)
  const location = await assertDatabaseUsable(config)
  const howToUndoUpgrade = await backUpBeforeUpgrade(config, location)
  const database = await location.open(withOthers)
  return {
    ...database,
    howToUndoUpgrade,
    saveHighWaterMark: (mark) => saveHighWaterMark(markFile, { value: mark, address: location.address }),
  }
}

/**
 * Whether the database can be opened: it is whole, there, not behind its data folder, and of no newer version. Nothing is changed.
 * @throws Failure `unavailable` that says why not
 */
export async function assertDatabaseUsable(config: Config): Promise<DatabaseLocation> {
  assertNotRestoring(config)
  const location = await locateDatabase(config)
  await assertDatabaseNotLost(config, location)
  await assertNotOlderThanMark(location, dataPaths(config.dataDir).mark)
  assertNotNewer(await location.appliedMigrations(), location.migrations)
  await location.assertWritable()
  return location
}

/** Where the database is, or will be. PostgreSQL's driver is loaded only where it is used. */
export async function locateDatabase({ databaseUrl, dataDir }: Config): Promise<DatabaseLocation> {
  if (databaseUrl === undefined) {
    const { database, reserve } = dataPaths(dataDir)
    return sqliteLocation(database, () => releaseReservePart(reserve))
  }
  const { postgresLocation } = await import('../db/postgres/location.ts')
  return postgresLocation(databaseUrl)
}

/** The files whose identity distinguishes an installation from its copy: the database, or with PostgreSQL the lock of the data folder. */
export function identifyingFiles({ databaseUrl, dataDir }: Config): IdentifyingFile[] {
  const { database, lock } = dataPaths(dataDir)
  const inFolder = { setting: 'database-file', path: database } as const
  return databaseUrl === undefined ? [inFolder] : [{ setting: 'lock-file', path: lock }, inFolder] // the second: it may have been moved from SQLite
}

/** A setting of the database, read without opening it to write. */
export async function peekSetting(config: Config, name: string): Promise<string | undefined> {
  return (await locateDatabase(config)).peekSetting(name)
}

/** Checks the database without changing it; a server may be using it. */
export async function examineDatabase({ databaseUrl, dataDir }: Config): Promise<Check[]> {
  if (databaseUrl === undefined) {
    const { examineSqlite } = await import('../db/sqlite/health.ts')
    return [{ check: 'database', ...examineSqlite(dataPaths(dataDir).database) }]
  }
  const { examinePostgres } = await import('../db/postgres/health.ts')
  return examinePostgres(databaseUrl)
}

function assertNotRestoring({ dataDir }: Config): void {
  if (!existsSync(dataPaths(dataDir).restoring)) return
  throw new Failure(
    'unavailable',
    `A backup was restored to ${dataDir} only in part. Run the same reelgate restore command again: it continues.`,
  )
}

/** @throws Failure `unavailable` when the data folder had a database that is no longer where it should be */
async function assertDatabaseNotLost(config: Config, location: DatabaseLocation): Promise<void> {
  if (await location.exists()) return
  const paths = dataPaths(config.dataDir)
  const isNotMoved =
    location.address !== undefined && existsSync(paths.database) && readHighWaterMark(paths.mark).address === undefined
  if (isNotMoved) {
    throw new Failure(
      'unavailable',
      `The installation has not moved yet: its database is ${paths.database}, and ${location.name} is empty. Run reelgate migrate, then start again; to start from scratch, set REELGATE_DATA to another folder.`,
    )
  }
  const { address } = readHighWaterMark(paths.mark)
  if (location.address === undefined && address !== undefined) {
    throw new Failure(
      'unavailable',
      `The installation in ${config.dataDir} has its database in ${address}. Set REELGATE_DATABASE_URL to it.`,
    )
  }
  const folderWithVideos = [paths.sources, paths.segments].find((folder) => existsSync(folder) && readdirSync(folder).length > 0)
  if (folderWithVideos) {
    throw new Failure(
      'unavailable',
      `There are videos in ${folderWithVideos} but no database ${location.name}. Restore it from a backup; a new one is never created over existing videos.`,
    )
  }
  if (existsSync(paths.mark)) {
    throw new Failure(
      'unavailable',
      `The database ${location.name} is missing. Restore it from a backup; to start from scratch, remove the whole folder ${config.dataDir}.`,
    )
  }
}
