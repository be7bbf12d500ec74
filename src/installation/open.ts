import type { VideoFolders } from '../catalogue/deletion.ts'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { createMasterKey, removeUnfinishedKey } from '../crypto/master-key.ts'
import { blobFolder, emptyFolder, openBlobFolder } from '../storage/folder.ts'
import { type DatabaseWithMark, openDatabase } from './database.ts'
import { assertNoDataWithoutKey, type BoundMasterKey, bindMasterKey, readMasterKey } from './master-key.ts'

/** An open data folder: its database, its files, and the master key that belongs to it. */
type Installation = DatabaseWithMark &
  BoundMasterKey & {
    folders: VideoFolders
    /** Whether the master key was created just now. */
    masterKeyIsNew: boolean
  }

/** The files of videos, for a process that only reads them. */
export function storedFiles({ dataDir }: Config): VideoFolders {
  const { tmp, ...paths } = dataPaths(dataDir)
  const folder = (root: string) => blobFolder(root, tmp)
  return {
    sources: folder(paths.sources),
    segments: folder(paths.segments),
    posters: folder(paths.posters),
    files: folder(paths.files),
  }
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
    await emptyFolder(paths.tmp)
    return { ...database, ...bound, folders, masterKeyIsNew: !existingKey }
  } catch (error) {
    await database.close()
    throw error
  }
}
