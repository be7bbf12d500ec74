import { mkdirSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { isDatabaseFull } from '../db/sqlite/commit.ts'
import { Failure, isDiskFull } from '../errors.ts'
import { type FolderLock, isFolderLocked, isNoLock, takeFolderLock } from '../storage/folder-lock.ts'
import { syncNames } from '../storage/sync.ts'
import { assertEntriesUsable } from './data-folder.ts'

/**
 * Takes the lock of the data folder. Undefined: a server runs on it, and commands go through its control socket.
 * @throws Failure `unavailable` when the folder cannot be written, or has something else where a file or folder of it belongs
 */
export function lockDataFolder(config: Config): FolderLock | undefined {
  assertEntriesUsable(config)
  try {
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
    const lock = takeFolderLock(dataPaths(config.dataDir).lock)
    if (lock) syncNames(config.dataDir) // the process that created the folder may have been killed before it was durable
    return lock
  } catch (cause) {
    if (isDiskFull(cause) || isDatabaseFull(cause)) throw diskIsFull(config, cause)
    if (isNoLock(cause)) throw lockIsDamaged(config, cause)
    throw new Failure(
      'unavailable',
      `The data folder ${config.dataDir} cannot be written. Correct its permissions, or set REELGATE_DATA to another folder.`,
      { cause },
    )
  }
}

/**
 * Whether a server runs on the data folder. Nothing is changed.
 * @throws Failure `unavailable` when its lock, or another entry of it, is something else
 */
export function isServerRunning(config: Config): boolean {
  assertEntriesUsable(config)
  try {
    return isFolderLocked(dataPaths(config.dataDir).lock)
  } catch (cause) {
    throw isNoLock(cause) ? lockIsDamaged(config, cause) : cause
  }
}

function lockIsDamaged({ dataDir }: Config, cause: unknown): Failure {
  const { lock } = dataPaths(dataDir)
  return new Failure(
    'unavailable',
    `The lock ${lock} is damaged: it has other bytes in it. Make sure that no server runs on ${dataDir}, empty it with truncate --size=0, and start again.`,
    { cause },
  )
}

function diskIsFull({ dataDir }: Config, cause: unknown): Failure {
  return new Failure('unavailable', `The disk of the data folder ${dataDir} is full. Free some space and start again.`, { cause })
}
