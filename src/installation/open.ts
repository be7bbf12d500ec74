import type { VideoFolders } from '../catalogue/deletion.ts'
import type { Config } from '../config/config.ts'
import { dataPaths, MEDIA_FOLDERS, type MediaFolder, ofMediaFolders } from '../config/data-paths.ts'
import { createMasterKey, removeUnfinishedKey } from '../crypto/master-key.ts'
import { blobFolder, createFolders, emptyFolder, FOR_GROUP } from '../storage/folder.ts'
import { type DatabaseWithMark, openDatabase } from './database.ts'
import { assertNoDataWithoutKey, type BoundMasterKey, bindMasterKey, readMasterKey } from './master-key.ts'

/** An open data folder: its database, its files, and the master key that belongs to it. */
type Installation = DatabaseWithMark &
  BoundMasterKey & {
    folders: VideoFolders
    /** Whether the master key was created just now. */
    masterKeyIsNew: boolean
  }

/** The files of videos. Their folders exist, or are only read. */
export function storedFiles(
  config: Pick<Config, 'dataDir'> & Partial<Pick<Config, 'mediaAccel'>>,
  onDiskFull?: () => void,
): VideoFolders {
  const paths = dataPaths(config.dataDir)
  const isForNginx = (folder: MediaFolder) => folder === 'segments' && config.mediaAccel !== undefined
  return ofMediaFolders((folder) => blobFolder(paths[folder], paths.tmp, onDiskFull, isForNginx(folder) ? FOR_GROUP : undefined))
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
    await createFolders(paths.tmp, ...MEDIA_FOLDERS.map((folder) => paths[folder]))
    await emptyFolder(paths.tmp)
    return { ...database, ...bound, folders: storedFiles(config, onDiskFull), masterKeyIsNew: !existingKey }
  } catch (error) {
    await database.close()
    throw error
  }
}
