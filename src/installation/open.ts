import type { VideoFolders } from '../catalogue/deletion.ts'
import type { Config } from '../config/config.ts'
import { dataPaths, MEDIA_FOLDERS, type MediaFolder, ofMediaFolders } from '../config/data-paths.ts'
import { createMasterKey, removeUnfinishedKey } from '../crypto/master-key.ts'
import { blobFolder, createFolders, emptyFolder, FOR_GROUP } from '../storage/folder.ts'
import { type Bucket, openBucket } from '../storage/s3/bucket.ts'
import { openLocalCache } from '../storage/s3/local-cache.ts'
import { blobsInBucket, partBytesFor } from '../storage/s3/s3-store.ts'
import { openFilesBucket } from './bucket.ts'
import { type DatabaseWithMark, openDatabase } from './database.ts'
import { assertNoDataWithoutKey, type BoundMasterKey, bindMasterKey, readMasterKey } from './master-key.ts'

/** An open data folder: its database, its files, and the master key that belongs to it. */
type Installation = DatabaseWithMark &
  BoundMasterKey & {
    folders: VideoFolders
    /** Where the files are, if not in the data folder. */
    bucket: Bucket | undefined
    /** Whether the master key was created just now. */
    masterKeyIsNew: boolean
  }

/** The files of videos: in a bucket, or in folders that exist, or are only read. */
export function storedFiles(config: FilesConfig, onDiskFull?: () => void, bucket = config.bucket && openBucket(config.bucket)) {
  if (bucket) return filesInBucket(bucket, config)
  const paths = dataPaths(config.dataDir)
  const isForNginx = (folder: MediaFolder) => folder === 'segments' && config.mediaAccel !== undefined
  return ofMediaFolders((folder) => blobFolder(paths[folder], paths.tmp, onDiskFull, isForNginx(folder) ? FOR_GROUP : undefined))
}

type FilesConfig = Pick<Config, 'dataDir' | 'bucket' | 'cacheBytes' | 'uploadMaxBytes' | 'mediaAccel'>

function filesInBucket(bucket: Bucket, { dataDir, cacheBytes, uploadMaxBytes }: FilesConfig): VideoFolders {
  const cache = openLocalCache(dataPaths(dataDir).cache, cacheBytes)
  const partBytes = partBytesFor(uploadMaxBytes)
  return ofMediaFolders((folder) => blobsInBucket(bucket, { folder, partBytes, cache }))
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
    const bucket = await openFilesBucket(database, config)
    await createFolders(paths.tmp, ...(bucket ? [paths.cache] : MEDIA_FOLDERS.map((folder) => paths[folder])))
    for (const folder of bucket ? [paths.tmp, paths.cache] : [paths.tmp]) await emptyFolder(folder)
    const folders = storedFiles(config, onDiskFull, bucket)
    return { ...database, ...bound, bucket, folders, masterKeyIsNew: !existingKey }
  } catch (error) {
    await database.close()
    throw error
  }
}
