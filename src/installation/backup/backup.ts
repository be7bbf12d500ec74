import { existsSync } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import packageJson from '../../../package.json' with { type: 'json' }
import { type Config, dataPaths } from '../../config.ts'
import {
  createFileList,
  type FileList,
  openFileList,
  openSnapshot,
  type Snapshot,
  writeSqliteSnapshot,
} from '../../db/sqlite/snapshot.ts'
import { Failure } from '../../errors.ts'
import { hashFile } from '../../storage/copy.ts'
import { MASTER_KEY_ID } from '../master-key-id.ts'
import { type AddedMedia, addMedia } from './add-media.ts'
import { type Backup, finishBackup, listBackups, openBackupFolder, removeOldBackups, unfinishedPaths } from './backup-folder.ts'
import { mediaOfBackups, mediaOfInstallation } from './media-paths.ts'

export type BackupListener = {
  /** @param part 0 to 1 */
  progress(step: 'rows' | 'media', part: number): void
  signal: AbortSignal
}

export type MadeBackup = Backup & {
  /** What this backup added to its folder; a hard link takes no space. */
  copiedBytes: number
  linkedBytes: number
}

/** A file that is deleted between the snapshot and its copy needs another snapshot; by then all other files are there. */
const MAX_SNAPSHOTS = 20
/** So many lost files are named in the manifest. */
const MAX_NAMED = 20

/**
 * Adds a backup of an installation to a folder; a server may be running. First the rows as of one moment, then the files that they
 * name. An interrupted backup leaves the earlier ones as they are, and the next one continues with the files that it copied.
 * @param keep how many backups the folder keeps, this one included
 * @throws Failure with what to do
 */
export async function makeBackup(
  config: Config,
  { folder, keep }: { folder: string; keep: number },
  listener: BackupListener,
): Promise<MadeBackup> {
  if (config.databaseUrl === undefined && !existsSync(dataPaths(config.dataDir).database))
    throw new Failure('not-found', `There is no installation in ${config.dataDir}. Set REELGATE_DATA to its data folder.`)
  const lock = openBackupFolder(folder)
  try {
    const made = await addBackup(config, folder, listener)
    await removeOldBackups(folder, keep)
    return made
  } catch (error) {
    if (!listener.signal.aborted) throw error
    throw new Failure(
      'unavailable',
      'Interrupted: earlier backups are as they were. The same command continues with what was copied.',
    )
  } finally {
    lock.release()
  }
}

async function addBackup(config: Config, folder: string, listener: BackupListener): Promise<MadeBackup> {
  const unfinished = unfinishedPaths(folder)
  const known: FileList[] = listBackups(folder)
    .slice(0, 1)
    .map(({ listFile }) => openFileList(listFile))
  const total = { copiedBytes: 0, linkedBytes: 0 }
  let missingBefore: ReadonlySet<string> = new Set()
  try {
    for (let attempt = 1; attempt <= MAX_SNAPSHOTS; attempt++) {
      const time = new Date()
      listener.progress('rows', 0)
      await rm(unfinished.rows, { force: true })
      await writeSnapshot(config, unfinished.rows)
      listener.signal.throwIfAborted()
      using snapshot = openSnapshot(unfinished.rows)
      assertSameInstallation(folder, snapshot)
      assertOneMasterKey(snapshot)
      const added = await addFiles(config, folder, snapshot, { known, listener })
      total.copiedBytes += added.copiedBytes
      total.linkedBytes += added.linkedBytes
      // What is missing for the second time was not deleted in between: it is lost, and the backup has the rest.
      if (added.missing.every((name) => missingBefore.has(name))) {
        const manifest = await describe(config, snapshot, { time, folder, lost: added.missing })
        return { ...(await finishBackup(folder, manifest)), ...total }
      }
      missingBefore = new Set(added.missing)
      await keepList(unfinished.list, known, attempt)
    }
  } finally {
    for (const list of known) list[Symbol.dispose]()
  }
  throw new Failure(
    'unavailable',
    'Files were deleted faster than they could be copied. Run the same command again: it continues.',
  )
}

/**
 * Adds a backup of the rows alone to a folder, for an installation that keeps its files.
 * @param keep how many of them the folder keeps, this one included
 */
export async function backUpRows(config: Config, { folder, keep }: { folder: string; keep: number }): Promise<Backup> {
  const lock = openBackupFolder(folder)
  try {
    const unfinished = unfinishedPaths(folder)
    const time = new Date()
    await writeSnapshot(config, unfinished.rows)
    using snapshot = openSnapshot(unfinished.rows)
    createFileList(unfinished.list).finish()
    const backup = await finishBackup(folder, await describe(config, snapshot, { time, folder, lost: [] }))
    await removeOldBackups(folder, keep)
    return backup
  } finally {
    lock.release()
  }
}

/** The rows as of now, in one SQLite file, whichever database they are in. */
async function writeSnapshot({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>, target: string): Promise<void> {
  if (databaseUrl === undefined) return writeSqliteSnapshot(dataPaths(dataDir).database, target)
  const { writePostgresSnapshot } = await import('../../db/move/to-sqlite.ts')
  await writePostgresSnapshot(databaseUrl, target)
}

function assertSameInstallation(folder: string, snapshot: Snapshot): void {
  const [last] = listBackups(folder)
  if (last === undefined || last.manifest.installation === snapshot.oldestAccountId()) return
  throw new Failure('conflict', `${folder} has backups of another installation. Name another folder.`)
}

/** During a rotation the rows need two keys; a backup is to open with one. */
function assertOneMasterKey(snapshot: Snapshot): void {
  if (!snapshot.setting(MASTER_KEY_ID)?.includes(' ')) return
  throw new Failure(
    'unavailable',
    'The master key is being rotated, which takes some seconds. Make the backup when that is finished: reelgate doctor says so.',
  )
}

async function addFiles(
  config: Config,
  folder: string,
  snapshot: Snapshot,
  { known, listener }: { known: readonly FileList[]; listener: BackupListener },
): Promise<AddedMedia> {
  const totalBytes = Math.max(1, snapshot.mediaSizeBytes())
  using list = createFileList(unfinishedPaths(folder).list)
  const added = await addMedia(snapshot, list, {
    from: mediaOfInstallation(config),
    to: mediaOfBackups(folder),
    known,
    signal: listener.signal,
    progress: (sizeBytes) => listener.progress('media', Math.min(1, sizeBytes / totalBytes)),
  })
  list.finish()
  return added
}

/** What the last attempt has read is not read again by the next one. */
async function keepList(path: string, known: FileList[], attempt: number): Promise<void> {
  const kept = `${path}.${attempt}`
  await rename(path, kept)
  known.unshift(openFileList(kept))
  await rm(kept) // it stays readable until it is closed
}

async function describe(
  { databaseUrl }: Config,
  snapshot: Snapshot,
  { time, folder, lost }: { time: Date; folder: string; lost: readonly string[] },
): Promise<Backup['manifest']> {
  const unfinished = unfinishedPaths(folder)
  const [installation, masterKey] = [snapshot.oldestAccountId(), snapshot.setting(MASTER_KEY_ID)]
  if (installation === undefined || masterKey === undefined)
    throw new Failure('not-found', 'This installation was never started, so there is nothing to back up.')
  using list = openFileList(unfinished.list)
  return {
    format: 1,
    version: packageJson.version,
    time: time.toISOString(),
    installation,
    database: databaseUrl === undefined ? 'sqlite' : 'postgres',
    masterKey,
    migrations: snapshot.migrations(),
    videos: snapshot.videoCount(),
    rows: await describeFile(unfinished.rows),
    list: await describeFile(unfinished.list),
    files: list.total(),
    lost: lost.slice(0, MAX_NAMED),
    lostCount: lost.length,
  }
}

async function describeFile(path: string): Promise<{ sizeBytes: number; sha256: string }> {
  const { size: sizeBytes } = await stat(path)
  return { sizeBytes, sha256: (await hashFile(path))?.toString('hex') ?? '' }
}
