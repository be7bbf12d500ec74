import type { Config } from '../../config/config.ts'
import { dataPaths } from '../../config/data-paths.ts'
import type { MediaFolder } from '../../db/sqlite/snapshot.ts'
import type { BlobFolder } from '../../storage/folder.ts'
import { mediaFolder } from './backup-folder.ts'

/** The folders of videos’ files, in an installation or in a folder of backups. */
export type MediaPaths = Readonly<Record<MediaFolder, BlobFolder>>

export function mediaOfInstallation({ dataDir }: Config): MediaPaths {
  const { tmp, ...paths } = dataPaths(dataDir)
  return mapFolders((kind) => ({ root: paths[kind], tmp }))
}

export function mediaOfBackups(folder: string): MediaPaths {
  return mapFolders((kind) => mediaFolder(folder, kind))
}

function mapFolders(pathOf: (kind: MediaFolder) => BlobFolder): MediaPaths {
  return { sources: pathOf('sources'), segments: pathOf('segments'), posters: pathOf('posters'), files: pathOf('files') }
}
