import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { createMasterKey, removeUnfinishedKey } from '../crypto/master-key.ts'
import { type BlobFolder, openBlobFolder, removeUnfinished } from '../storage/folder.ts'
import { type DatabaseWithMark, openDatabase } from './database.ts'
import { assertNoDataWithoutKey, type BoundMasterKey, bindMasterKey, readMasterKey } from './master-key.ts'

/** An open data folder: its database, its files, and the master key that belongs to it. */
export type Installation = DatabaseWithMark &
  BoundMasterKey & {
    folders: { sources: BlobFolder; segments: BlobFolder; posters: BlobFolder; files: BlobFolder }
    /** Whether the master key was created just now. */
    masterKeyIsNew: boolean
  }

/**
 * Opens the data folder, and creates what is missing in an empty one. The caller holds its lock.
 * @param onDiskFull called when the disk is full
 */
export async function openInstallation(config: Config, onDiskFull?: () => void): Promise<Installation> {
  const paths = dataPaths(config.dataDir)
  // Before the database is opened: a folder without its key must stay as it is.
  const existingKey = readMasterKey(config)
  if (!existingKey) await assertNoDataWithoutKey(config)
  const database = await openDatabase(config)
  try {
    const bound = await bindMasterKey(database, existingKey ?? createMasterKey(config.masterKeyFile), config)
    removeUnfinishedKey(config.masterKeyFile)
    const folders = {
      sources: await openBlobFolder(paths.sources, paths.tmp, onDiskFull),
      segments: await openBlobFolder(paths.segments, paths.tmp, onDiskFull),
      posters: await openBlobFolder(paths.posters, paths.tmp, onDiskFull),
      files: await openBlobFolder(paths.files, paths.tmp, onDiskFull),
    }
    await removeUnfinished(folders.sources)
    return { ...database, ...bound, folders, masterKeyIsNew: !existingKey }
  } catch (error) {
    await database.close()
    throw error
  }
}
