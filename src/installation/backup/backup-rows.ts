import { stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Config } from '../../config/config.ts'
import { dataPaths } from '../../config/data-paths.ts'
import { createFileList, openFileList, openSnapshot, type Snapshot, writeSqliteSnapshot } from '../../db/sqlite/snapshot.ts'
import { Failure } from '../../errors.ts'
import { hashBlob } from '../../storage/copy.ts'
import { bulkFolder } from '../../storage/folder.ts'
import { MASTER_KEY_ID } from '../master-key-id.ts'
import { type Backup, finishBackup, openBackupFolder, removeOldBackups, unfinishedPaths } from './backup-folder.ts'

/** So many lost files are named in the manifest. */
const MAX_NAMED = 20

/**
 * Adds a backup of the rows alone to a folder, for an installation that keeps its files.
 * @param keep how many of them the folder keeps, this one included
 */
export async function backUpRows(config: Config, { folder, keep }: { folder: string; keep: number }): Promise<Backup> {
  const lock = openBackupFolder(folder)
  try {
    const unfinished = unfinishedPaths(folder)
    const time = new Date()
    await writeSnapshot(config, unfinished.rows)
    using snapshot = openSnapshot(unfinished.rows)
    createFileList(unfinished.list).finish()
    const backup = await finishBackup(folder, await describeBackup(config, snapshot, { time, folder, lost: [] }))
    await removeOldBackups(folder, keep)
    return backup
  } finally {
    lock.release()
  }
}

/** The rows as of now, in one SQLite file, whichever database they are in. */
export async function writeSnapshot({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>, target: string) {
  if (databaseUrl === undefined) return writeSqliteSnapshot(dataPaths(dataDir).database, target)
  const { writePostgresSnapshot } = await import('../../db/move/to-sqlite.ts')
  await writePostgresSnapshot(databaseUrl, target)
}

/** The manifest of the unfinished backup in a folder. */
export async function describeBackup(
  { databaseUrl }: Config,
  snapshot: Snapshot,
  { time, folder, lost }: { time: Date; folder: string; lost: readonly string[] },
): Promise<Backup['manifest']> {
  const unfinished = unfinishedPaths(folder)
  const [installation, masterKey] = [snapshot.oldestAccountId(), snapshot.setting(MASTER_KEY_ID)]
  if (installation === undefined || masterKey === undefined)
    throw new Failure('not-found', 'This installation was never started, so there is nothing to back up.')
  using list = openFileList(unfinished.list)
  return {
    format: 1,
    version: packageJson.version,
    time: time.toISOString(),
    installation,
    database: databaseUrl === undefined ? 'sqlite' : 'postgres',
    masterKey,
    migrations: snapshot.migrations(),
    videos: snapshot.videoCount(),
    rows: await describeFile(unfinished.rows),
    list: await describeFile(unfinished.list),
    files: list.total(),
    lost: lost.slice(0, MAX_NAMED),
    lostCount: lost.length,
  }
}

async function describeFile(path: string): Promise<{ sizeBytes: number; sha256: string }> {
  const { size: sizeBytes } = await stat(path)
  return { sizeBytes, sha256: (await hashFile(path))?.toString('hex') ?? '' }
}

/** The SHA-256 of a file of a backup; undefined when it is missing or cannot be read from the disk. */
export function hashFile(path: string): Promise<Buffer | undefined> {
  return hashBlob(bulkFolder(dirname(path), dirname(path)), basename(path))
}
