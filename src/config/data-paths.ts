import { join } from 'node:path'

/** The paths of the parts of a data folder. */
export function dataPaths(dataDir: string) {
  return {
    database: join(dataDir, 'reelgate.db'),
    mark: join(dataDir, 'reelgate.mark'),
    lock: join(dataDir, 'lock.db'),
    reserve: join(dataDir, 'reelgate.reserve'),
    controlSocket: join(dataDir, 'control.sock'),
    sources: join(dataDir, 'sources'),
    segments: join(dataDir, 'segments'),
    posters: join(dataDir, 'posters'),
    files: join(dataDir, 'files'),
    tmp: join(dataDir, 'tmp'),
    restoring: join(dataDir, 'restoring'),
    beforeUpgrade: join(dataDir, 'before-upgrade'),
    backupStream: join(dataDir, 'backup-stream'),
  }
}
