import type { VideoFolders } from '../catalogue/deletion.ts'
import type { Config } from '../config/config.ts'
import { dataPaths, MEDIA_FOLDERS, type MediaFolder, ofMediaFolders } from '../config/data-paths.ts'
import { createMasterKey, removeUnfinishedKey } from '../crypto/master-key.ts'
import { blobFolder, createFolders, emptyFolder, FOR_GROUP } from '../storage/folder.ts'
import { type Bucket, openBucket } from '../storage/s3/bucket.ts'
import { type LocalCache, openLocalCache } from '../storage/s3/local-cache.ts'
import { blobsInBucket, partBytesFor } from '../storage/s3/s3-store.ts'
import { describeBucket } from './bucket.ts'
import { type DatabaseWithMark, locateDatabase, openDatabase } from './database.ts'
import { claimFiles, type LocatedFiles, locateFiles, mayHaveSeveralServers } from './located-files.ts'
import { assertNoDataWithoutKey, type BoundMasterKey, bindMasterKey, readMasterKey } from './master-key.ts'
import { type MovedBlobs, movedBlobs } from './moved-blob-store.ts'
import { openPlaces, type Place, type Places } from './places.ts'

/** An open data folder: its database, its files, and the master key that belongs to it. */
type Installation = DatabaseWithMark &
  BoundMasterKey & {
    folders: VideoFolders
    places: Places
    moved: MovedBlobs
    /** A place that files can move to: the data folder, or a bucket of the configuration. */
    openPlace(id: string, bucket: Bucket | undefined): Place
    /** Of the configuration. The first has the files, if one does. */
    buckets: readonly Bucket[]
    /** Whether the master key was created just now. */
    masterKeyIsNew: boolean
  }

type FilesConfig = Pick<Config, 'dataDir' | 'cacheBytes' | 'uploadMaxBytes' | 'mediaAccel'>

/** Opens places for files: buckets share the cache. */
function createOpenPlace({ dataDir, cacheBytes, uploadMaxBytes, mediaAccel }: FilesConfig, onDiskFull?: () => void) {
  const paths = dataPaths(dataDir)
  const isForNginx = (folder: MediaFolder) => folder === 'segments' && mediaAccel !== undefined
  const partBytes = partBytesFor(uploadMaxBytes)
  let cache: LocalCache | undefined
  return (id: string, bucket: Bucket | undefined): Place => {
    cache ??= openLocalCache(paths.cache, cacheBytes, onDiskFull)
    const shared = cache
    const files = ofMediaFolders((folder) =>
      bucket
        ? blobsInBucket(bucket, { folder, partBytes, cache: shared })
        : blobFolder(paths[folder], paths.tmp, onDiskFull, isForNginx(folder) ? FOR_GROUP : undefined),
    )
    return { id, name: bucket ? describeBucket(bucket.address) : `the data folder ${dataDir}`, bucket, files }
  }
}

function placesOf(
  { at, to, isTurnedRound }: LocatedFiles,
  openPlace: ReturnType<typeof createOpenPlace>,
  moved: MovedBlobs,
): Places {
  return openPlaces(openPlace(at.id, at.bucket), to && openPlace(to.id, to.bucket), moved, isTurnedRound)
}

/** The rows that say where files are, however a command reads them. */
type RowsOfFiles = {
  readSetting(name: string): Promise<string | undefined>
  /** Which of these names are in the new place, while files move from one to another. */
  findMoved: MovedBlobs['find']
}

/** The files of videos, to be read while a server may be running, as rows of one moment say. */
export async function findStoredFiles(config: Config, { readSetting, findMoved }: RowsOfFiles): Promise<Places> {
  const readOnly = async () => {
    throw new Error('only the server writes files')
  }
  const moved = { find: findMoved, add: readOnly, remove: readOnly, clear: readOnly }
  return placesOf(await locateFiles(readSetting, config), createOpenPlace(config), moved)
}

/** The place that the configuration names, for files that are restored. */
export function storedFiles(config: FilesConfig & Pick<Config, 'bucket'>): VideoFolders {
  return createOpenPlace(config)('', config.bucket && openBucket(config.bucket)).files
}

/** Whether a server opens the database so that others can use it, too. */
async function sharesDatabase(config: Config): Promise<boolean> {
  if (!config.sharesDatabase) return false
  const { peekSetting, peekRows } = await locateDatabase(config)
  const videos = await peekRows('video', 'select 1 as is_there from video limit 1')
  return mayHaveSeveralServers(peekSetting, videos.length > 0)
}

/** The folders that a place needs on the disk. */
export function createFoldersOf(config: Pick<Config, 'dataDir'>, bucket: Bucket | undefined): Promise<void> {
  const paths = dataPaths(config.dataDir)
  return createFolders(...(bucket ? [paths.cache] : MEDIA_FOLDERS.map((folder) => paths[folder])))
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
  const database = await openDatabase(config, await sharesDatabase(config))
  try {
    const bound = await bindMasterKey(database, existingKey ?? createMasterKey(config.masterKeyFile), config)
    removeUnfinishedKey(config.masterKeyFile)
    const located = await claimFiles(database, config)
    await createFolders(paths.tmp, ...(located.buckets.length > 0 ? [paths.cache] : []))
    for (const place of [located.at, located.to]) if (place) await createFoldersOf(config, place.bucket)
    for (const folder of [paths.tmp, paths.cache]) await emptyFolder(folder)
    const openPlace = createOpenPlace(config, onDiskFull)
    const moved = movedBlobs(database)
    const places = placesOf(located, openPlace, moved)
    return {
      ...{ ...database, ...bound, places, moved, openPlace, buckets: located.buckets },
      ...{ folders: places.files, masterKeyIsNew: !existingKey },
    }
  } catch (error) {
    await database.close()
    throw error
  }
}
