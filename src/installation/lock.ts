import { mkdirSync } from 'node:fs'
import { type Config, dataPaths } from '../config.ts'
import { isDatabaseFull } from '../db/sqlite/commit.ts'
import { Failure, isDiskFull } from '../errors.ts'
import { syncNames } from '../storage/folder.ts'
import { type FolderLock, takeFolderLock } from '../storage/folder-lock.ts'

/**
 * Takes the lock of the data folder. Undefined: a server runs on it, and commands go through its control socket.
 * @throws Failure `unavailable` when the folder cannot be written
 */
export function lockDataFolder(config: Config): FolderLock | undefined {
  try {
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
    const lock = takeFolderLock(dataPaths(config.dataDir).lock)
    if (lock) syncNames(config.dataDir) // the process that created the folder may have been killed before it was durable
    return lock
  } catch (cause) {
    if (isDiskFull(cause) || isDatabaseFull(cause)) throw diskIsFull(config, cause)
    throw new Failure(
      'unavailable',
      `The data folder ${config.dataDir} cannot be written. Correct its permissions, or set REELGATE_DATA to another folder.`,
      { cause },
    )
  }
}

function diskIsFull({ dataDir }: Config, cause: unknown): Failure {
  return new Failure('unavailable', `The disk of the data folder ${dataDir} is full. Free some space and start again.`, { cause })
}
