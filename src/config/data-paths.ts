import { join } from 'node:path'

/** The folders of videos' files, in a data folder and in a folder of backups. */
export const MEDIA_FOLDERS = ['sources', 'segments', 'posters', 'files'] as const
export type MediaFolder = (typeof MEDIA_FOLDERS)[number]

/** One of each. */
export function ofMediaFolders<T>(make: (folder: MediaFolder) => T): Record<MediaFolder, T> {
  return { sources: make('sources'), segments: make('segments'), posters: make('posters'), files: make('files') }
}

/** The paths of the parts of a data folder. */
export function dataPaths(dataDir: string) {
  return {
    database: join(dataDir, 'reelgate.db'),
    mark: join(dataDir, 'reelgate.mark'),
    lock: join(dataDir, 'lock.db'),
    reserve: join(dataDir, 'reelgate.reserve'),
    controlSocket: join(dataDir, 'control.sock'),
    ...ofMediaFolders((folder) => join(dataDir, folder)),
    tmp: join(dataDir, 'tmp'),
    /** Copies of what is in a bucket. */
    cache: join(dataDir, 'cache'),
    restoring: join(dataDir, 'restoring'),
    beforeUpgrade: join(dataDir, 'before-upgrade'),
    backupStream: join(dataDir, 'backup-stream'),
    /** Where the rows and the list of a backup are made that goes to a bucket. */
    backupToBucket: join(dataDir, 'backup-to-bucket'),
  }
}
