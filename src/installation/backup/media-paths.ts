import type { Config } from '../../config/config.ts'
import { dataPaths } from '../../config/data-paths.ts'
import type { MediaFolder } from '../../db/sqlite/snapshot.ts'
import { mediaFolder } from './backup-folder.ts'

/** The folders of videos’ files, in an installation or in a folder of backups. */
export type MediaPaths = Readonly<Record<MediaFolder, string>>

export function mediaOfInstallation({ dataDir }: Config): MediaPaths {
  const { sources, segments, posters, files } = dataPaths(dataDir)
  return { sources, segments, posters, files }
}

export function mediaOfBackups(folder: string): MediaPaths {
  const pathOf = (kind: MediaFolder) => mediaFolder(folder, kind)
  return { sources: pathOf('sources'), segments: pathOf('segments'), posters: pathOf('posters'), files: pathOf('files') }
}
