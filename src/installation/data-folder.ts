import { statSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { Failure } from '../errors.ts'

type Kind = 'a file' | 'a folder' | 'a socket'

/** What a data folder may have, and each as what: something else under that name stops a start. */
function expectedEntries(config: Pick<Config, 'dataDir' | 'masterKeyFile'>): [path: string, kind: Kind][] {
  const { database, mark, lock, reserve, controlSocket, restoring, backupStream, ...folders } = dataPaths(config.dataDir)
  const files = [database, `${database}-wal`, `${database}-shm`, mark, lock, reserve, restoring, config.masterKeyFile]
  return [
    ...Object.values(folders).map((path): [string, Kind] => [path, 'a folder']),
    ...files.map((path): [string, Kind] => [path, 'a file']),
    [controlSocket, 'a socket'],
  ]
}

/**
 * Whether what is in the data folder, and the file of the master key, can be opened as what they are. Nothing is changed.
 * @throws Failure `unavailable` that names the entry which cannot
 */
export function assertEntriesUsable(config: Pick<Config, 'dataDir' | 'masterKeyFile'>): void {
  const { dataDir } = config
  if ((kindOf(dataDir) ?? 'a folder') !== 'a folder')
    throw new Failure(
      'unavailable',
      `The data folder ${dataDir} cannot be written: it is no folder. Set REELGATE_DATA to another one.`,
    )
  for (const [path, expected] of expectedEntries(config)) {
    const found = kindOf(path)
    if (found === undefined || found === expected || (expected === 'a socket' && found === 'a file')) continue // a stale one is replaced
    throw new Failure('unavailable', `${path} is ${found}, and should be ${expected}. Move it away, then start again.`)
  }
}

/** Undefined: there is nothing, or its folder cannot be entered. */
function kindOf(path: string): Kind | 'something else' | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) return undefined
  if (stats.isDirectory()) return 'a folder'
  if (stats.isFile()) return 'a file'
  return stats.isSocket() ? 'a socket' : 'something else'
}
