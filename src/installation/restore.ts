import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { sql } from 'kysely'
import { recordDamagedFile } from '../assets/damaged-file.ts'
import { createThrottle } from '../assets/media-check.ts'
import type { Config } from '../config/config.ts'
import { dataPaths, MEDIA_FOLDERS, ofMediaFolders } from '../config/data-paths.ts'
import { type MasterKey, writeMasterKey } from '../crypto/master-key.ts'
import { keyFromPhrase } from '../crypto/recovery-phrase.ts'
import type { Database } from '../db/database.ts'
import { HIGH_WATER_MARK, saveHighWaterMark } from '../db/high-water-mark.ts'
import { changeRowsUnmigrated, openSqlite } from '../db/sqlite/database.ts'
import { MIGRATIONS } from '../db/sqlite/migrations.ts'
import { type ListedFile, makeSingleFile, type NamedFile, openFileList, openSnapshot } from '../db/sqlite/snapshot.ts'
import { reportDamage } from '../encode/repair.ts'
import { Failure } from '../errors.ts'
import { createSignals } from '../signals/signals.ts'
import { checkHash, copyBlob, hashBlob } from '../storage/copy.ts'
import { bulkFolder, createFolders } from '../storage/folder.ts'
import { syncInPlace, syncNames } from '../storage/sync.ts'
import { RESTORED_COPY } from '../webhooks/restored-copy.ts'
import type { Copies } from './backup/add-media.ts'
import type { Backup, BackupName, UnusableBackup } from './backup/backup-folder.ts'
import { type BackupPlace, openBackupPlace } from './backup/backup-place.ts'
import { hashFile } from './backup/backup-rows.ts'
import { explainEnd } from './backup/explain-end.ts'
import { forEachAtOnce } from './backup/for-each-at-once.ts'
import { openStoredNames } from './backup/stored-names.ts'
import { BUCKET_ID, claimForRestore } from './bucket.ts'
import { locateDatabase, peekSetting } from './database.ts'
import { forgetPlaces, placesVersion } from './located-files.ts'
import { lockDataFolder } from './lock.ts'
import { hasKeyFile, idOf, readMasterKey } from './master-key.ts'
import { storedFiles } from './open.ts'

type RestoreOptions = {
  /** A folder, or the address of a bucket. */
  folder: string
  /** The name of one of them; undefined: the newest. */
  name?: string | undefined
  /** The recovery phrase of the master key, where its file is to be written. */
  phrase?: string | undefined
  /** Whether one missing or damaged file refuses the whole backup. */
  strict?: boolean | undefined
}

/** A backup that was restored, or read as if. */
export type RestoredBackup = BackupName & {
  /** The files of videos that it does not have as they were published, as `folder/name`. */
  lost: string[]
  /** Newer backups of the folder that cannot be used. */
  passedOver: readonly UnusableBackup[]
}

type RestoreListener = {
  /** @param part 0 to 1 */
  progress(step: 'media' | 'rows', part: number): void
  signal: AbortSignal
}

const COPIES = 8

/**
 * Restores a backup into an empty data folder, and an empty database where that is PostgreSQL. Every file is verified by its SHA-256.
 * With a bucket the files are copied to it, or are there already: then those that are missing are found by one list of it.
 * A video whose file is lost is restored without it: a segment is encoded again from its source, and an MP4 made again. OTPs that were not redeemed and sessions of the backup do not play again, and webhooks are held until `webhook resume`.
 * @throws Failure with what to do; the same command continues
 */
export async function restoreBackup(config: Config, options: RestoreOptions, listener: RestoreListener): Promise<RestoredBackup> {
  const place = openBackupPlace(config, options.folder)
  const { passedOver, ...found } = await findBackup(place, options)
  assertNotNewer(found)
  assertFilesReachable(config, found)
  const { keyToWrite } = findKey(config, found, options.phrase)
  const lock = lockDataFolder(config)
  if (!lock) throw new Failure('conflict', `A server runs on ${config.dataDir}. Set REELGATE_DATA to an empty folder.`)
  const restoreAll = async () => {
    await beginOrResume(config, found)
    const backup = await fetchBackup(config, place, found)
    await assertUnchanged(place, backup, 'rows')
    await assertUnchanged(place, backup, 'list')
    const bucketId = await claimBucket(config, backup)
    const { filesIn } = backup.manifest
    const unread = filesIn ? await findMissing(config, backup) : await restoreMedia(config, place, backup, options, listener)
    listener.progress('rows', 0)
    const { copy, lost } = await copyAllRows(config, backup, unread, bucketId)
    if (options.strict && lost[0] !== undefined) throw damaged(backup, lost[0])
    await placeRows(config, backup, copy, listener)
    if (keyToWrite) writeMasterKey(config.masterKeyFile, keyToWrite)
    const { restoring } = dataPaths(config.dataDir)
    await rm(restoring)
    syncNames(restoring)
    return { ...found, lost, passedOver }
  }
  return explainEnd(
    restoreAll,
    listener.signal,
    `The disk of ${config.dataDir} is full, so the backup is restored only in part. Free some space, then run the same command again: it continues.`,
    'Interrupted. The same command continues.',
  ).finally(lock.release)
}

async function findBackup(
  { name: folder, list }: BackupPlace,
  { name }: RestoreOptions,
): Promise<BackupName & Pick<RestoredBackup, 'passedOver'>> {
  const { backups, unusable } = await list()
  const damagedOne = unusable.find((backup) => name === undefined || backup.name === name)
  const found = name === undefined ? backups[0] : backups.find((backup) => backup.name === name)
  if (found) return { ...found, passedOver: name === undefined ? unusable.filter((other) => other.name > found.name) : [] }
  if (damagedOne) throw new DamagedBackup(damagedOne.name, damagedOne.why)
  if (name === undefined)
    throw new Failure('not-found', `There is no finished backup in ${folder}. Name the folder that reelgate backup was given.`)
  throw new Failure(
    'not-found',
    `There is no backup ${name} in ${folder}. There are: ${backups.map((backup) => backup.name).join(', ')}.`,
  )
}

/** @throws Failure `unavailable` when the files are in no backup, and there is no bucket that may have them */
function assertFilesReachable({ bucket }: Config, { name, manifest: { filesIn } }: BackupName): void {
  if (!filesIn || bucket) return
  throw new Failure(
    'unavailable',
    `The backup ${name} has rows alone: the files of its videos are in the bucket ${filesIn.bucket}. Set REELGATE_STORAGE_URL to it, or name a backup that was made with --media.`,
  )
}

/** Its rows and its list, as files of this machine. */
async function fetchBackup({ dataDir }: Config, place: BackupPlace, { name, manifest }: BackupName): Promise<Backup> {
  const fetched = join(dataPaths(dataDir).tmp, 'fetched')
  const [rowsFile, listFile] = [await place.fetch(name, 'rows', fetched), await place.fetch(name, 'list', fetched)]
  return { name, manifest, rowsFile, listFile }
}

/** The id of the installation in its bucket: what the rows have, or one that the same backup has each time. Undefined: the folder has the files. */
async function claimBucket({ bucket }: Config, { name, manifest, rowsFile }: Backup): Promise<string | undefined> {
  if (!bucket) return undefined
  const newId = createHash('sha256').update(`${manifest.installation} ${name}`).digest('hex').slice(0, 32)
  using snapshot = openSnapshot(rowsFile)
  const id = manifest.filesIn?.id ?? snapshot.setting(BUCKET_ID) ?? newId
  await claimForRestore(bucket, id, manifest.filesIn !== undefined)
  return id
}

/** Of a backup whose files stay in their bucket: which of them are not there. */
async function findMissing(config: Config, { listFile }: Backup): Promise<Set<string>> {
  const missing = new Set<string>()
  using list = openFileList(listFile)
  await using stored = await openStoredNames(storedFiles(config), dataPaths(config.dataDir).tmp)
  for (const { folder, name, sizeBytes } of list.files())
    if ((await stored.find(folder, name))?.sizeBytes !== sizeBytes) missing.add(`${folder}/${name}`)
  return missing
}

function assertNotNewer({ manifest }: BackupName): void {
  const newer = manifest.migrations.find((migration) => !(migration in MIGRATIONS))
  if (newer !== undefined)
    throw new Failure(
      'conflict',
      `This backup was made by Reelgate ${manifest.version}, which is newer than this one (it has the migration ${newer}). Install that version, then restore.`,
    )
}

/** @throws Failure when the key of the backup is not there, before anything is copied */
function findKey(config: Config, { manifest }: BackupName, phrase: string | undefined): { keyToWrite?: MasterKey } {
  const needed = manifest.masterKey.split(' ') // two, where the rows were backed up during a rotation
  const existing = readMasterKey(config)
  const existingIds = existing ? [existing, ...existing.older].map(idOf) : []
  if (needed.every((id) => existingIds.includes(id))) return {}
  if (existing)
    throw new Failure(
      'conflict',
      `This backup needs the master key ${manifest.masterKey.slice(0, 8)}…, and ${config.masterKeyVariable} has another one. Restore it from its own copy of the key, or name another key file with REELGATE_MASTER_KEY_FILE.`,
    )
  if (phrase === undefined)
    throw new Failure(
      'unavailable',
      `This backup needs its master key, which is never in a backup. Put the key file at ${config.masterKeyFile}, or give its recovery phrase: reelgate restore --phrase.`,
    )
  const key = keyFromPhrase(phrase)
  if (!hasKeyFile(config) || idOf(key) !== manifest.masterKey)
    throw new Failure(
      'conflict',
      'This recovery phrase belongs to another installation: it does not open this backup. Nothing was changed.',
    )
  return { keyToWrite: key }
}

/** @throws Failure `conflict` when there is anything but an interrupted restore of the same backup */
async function beginOrResume(config: Config, { name, manifest }: BackupName): Promise<void> {
  const { dataDir } = config
  const { restoring: marker } = dataPaths(dataDir) // until everything is restored: the same command continues, and no server starts
  const id = `${manifest.installation} ${name}\n`
  if (existsSync(marker)) {
    if (readFileSync(marker, 'utf8') === id) return
    throw new Failure(
      'conflict',
      `${dataDir} has an unfinished restore of another backup. Remove the folder, or set REELGATE_DATA to an empty one.`,
    )
  }
  const lockFile = basename(dataPaths(dataDir).lock)
  const other = readdirSync(dataDir).find((entry) => !entry.startsWith(lockFile) && entry !== 'lost+found')
  if (other !== undefined)
    throw new Failure(
      'conflict',
      `${dataDir} is not empty: it has ${other}. Set REELGATE_DATA to an empty folder. Nothing was changed.`,
    )
  const location = await locateDatabase(config)
  if (location.address !== undefined && (await location.exists()))
    throw new Failure('conflict', `${location.name} has an installation already. Make an empty database. Nothing was changed.`)
  await writeFile(marker, id, { mode: 0o600, flush: true })
  syncNames(marker)
}

type MediaOptions = Pick<RestoreOptions, 'strict'> & {
  /** Of a check, which reads everything: restores one file at a time, no faster, and removes it again. */
  checkBytesPerS?: number
}

/** @returns the files that are missing or damaged, as `folder/name` */
async function restoreMedia(
  config: Config,
  place: BackupPlace,
  backup: Backup,
  { strict = false, checkBytesPerS }: MediaOptions,
  { progress, signal }: RestoreListener,
): Promise<Set<string>> {
  const paths = dataPaths(config.dataDir)
  await createFolders(paths.tmp, ...(config.bucket ? [] : MEDIA_FOLDERS.map((kind) => paths[kind])))
  const from = place.files
  const to: Copies = config.bucket ? storedFiles(config) : ofMediaFolders((kind) => bulkFolder(paths[kind], paths.tmp))
  await using stored = await openStoredNames(to, paths.tmp)
  const totalBytes = Math.max(1, backup.manifest.files.sizeBytes)
  let doneBytes = 0
  const unread = new Set<string>()
  const throttle = createThrottle(checkBytesPerS ?? Number.POSITIVE_INFINITY)

  async function restore(file: ListedFile): Promise<void> {
    const { folder: kind, name, sizeBytes, sha256 } = file
    signal.throwIfAborted()
    const check = checkHash(sha256)
    // Of a restore that was interrupted. What a bucket has is whole, and its name was never given twice.
    const existing = config.bucket
      ? (await stored.find(kind, name))?.sizeBytes === sizeBytes
      : await hashBlob(to[kind], name, check)
    const isRestored = existing || (await copyBlob(from[kind], to[kind], name, check)) !== undefined
    if (!isRestored || checkBytesPerS !== undefined) await to[kind].remove(name)
    if (!isRestored) {
      if (strict) throw damaged(backup, `${place.name}/media/${kind}/${name}`)
      unread.add(`${kind}/${name}`)
    }
    doneBytes += sizeBytes
    progress('media', doneBytes / totalBytes)
    await throttle(sizeBytes, signal)
  }

  using list = openFileList(backup.listFile)
  await forEachAtOnce(list.files(), checkBytesPerS === undefined ? COPIES : 1, restore)
  if (checkBytesPerS === undefined) for (const store of Object.values(to)) store.syncNames?.()
  return unread
}

/**
 * A copy of the backup's rows for an installation that has only its files: those that are lost are recorded as such.
 * @param unread the files of the backup that are missing or damaged
 */
async function copyAllRows(config: Config, backup: Backup, unread: ReadonlySet<string>, bucketId: string | undefined) {
  const copy = await copyRows(config, backup, { isCopy: true, bucketId })
  const lost: NamedFile[] = []
  {
    using list = openFileList(backup.listFile)
    using snapshot = openSnapshot(copy)
    for (const file of snapshot.files()) if (unread.has(pathOf(file)) || !list.find(file.folder, file.name)) lost.push(file)
  }
  if (lost.length > 0) {
    const database = await openSqlite(copy)
    try {
      for (const file of lost) await recordLoss(database, file)
    } finally {
      await database.close()
    }
    makeSingleFile(copy)
  }
  return { copy, lost: lost.map(pathOf) }
}

const pathOf = ({ folder, name }: Pick<NamedFile, 'folder' | 'name'>) => `${folder}/${name}`

/** The first start makes again what can be made: a segment or an extracted poster from the source of its video, an MP4 from its segments. */
async function recordLoss({ write }: Database, { folder, name, videoId, generation, renditionId, number }: NamedFile) {
  const deps = { write, signals: createSignals(write), log: { error: () => undefined } }
  const problem = 'its file is not in the backup'
  if (folder !== 'segments') await recordDamagedFile(deps, { videoId, name }, problem)
  else if (generation !== null && renditionId !== null && number !== null)
    await reportDamage(deps, { videoId, generation, renditionId, number, problem })
}

/**
 * Restores a backup into a scratch folder that is removed again: its rows, and the files of videos one by one; those that stay in their
 * bucket are looked for there.
 * @throws DamagedBackup when its rows or its list are damaged; Failure with what to do
 */
export async function checkBackup(
  config: Config,
  { scratch, bytesPerS, ...options }: RestoreOptions & { scratch: string; bytesPerS: number },
  listener: RestoreListener,
): Promise<RestoredBackup> {
  const place = openBackupPlace(config, options.folder)
  const { passedOver, ...found } = await findBackup(place, options)
  assertNotNewer(found)
  assertFilesReachable(config, found)
  const dataDir = await mkdtemp(join(scratch, 'reelgate-check-'))
  const { filesIn } = found.manifest
  const scratchConfig = { ...config, dataDir, databaseUrl: undefined, bucket: filesIn && config.bucket }
  const check = async () => {
    const backup = await fetchBackup(scratchConfig, place, found)
    await assertUnchanged(place, backup, 'rows')
    await assertUnchanged(place, backup, 'list')
    const bucketId = await claimBucket(scratchConfig, backup)
    const unread = filesIn
      ? await findMissing(scratchConfig, backup)
      : await restoreMedia(scratchConfig, place, backup, { checkBytesPerS: bytesPerS }, listener)
    listener.progress('rows', 0)
    const { lost } = await copyAllRows(scratchConfig, backup, unread, bucketId)
    return { ...found, lost, passedOver }
  }
  return explainEnd(
    check,
    listener.signal,
    `The disk of ${scratch} is full. Name another folder for the check: --scratch.`,
    'Interrupted: the backup was not checked to its end.',
  ).finally(() => rm(dataDir, { recursive: true, force: true }))
}

/**
 * Replaces the rows of an installation by those of a backup, such as the one that an upgrade made; its files stay. In SQLite their
 * tables stay as the version had them that made the backup, so that it can be installed afterwards. With PostgreSQL the variable names
 * an empty database, which gets the tables of this version.
 * @throws Failure with what to do
 */
export async function restoreRowsOnly(
  config: Config,
  options: RestoreOptions,
  listener: RestoreListener,
): Promise<RestoredBackup> {
  const place = openBackupPlace(config, options.folder)
  const { passedOver, ...found } = await findBackup(place, options)
  assertNotNewer(found)
  findKey(config, found, options.phrase)
  const lock = lockDataFolder(config)
  if (!lock) throw new Failure('conflict', `A server runs on ${config.dataDir}. Stop it, then try again.`)
  try {
    const { database, mark } = dataPaths(config.dataDir)
    if (config.databaseUrl === undefined) assertNothingMovedAside(database)
    const backup = await fetchBackup(config, place, found)
    await assertFilesNotMoved(config, backup)
    const copy = await copyRows(config, backup, { isCopy: false })
    if (config.databaseUrl === undefined) {
      await moveAside(database)
      rmSync(mark, { force: true })
    }
    await placeRows(config, backup, copy, listener)
    return { ...found, lost: [], passedOver }
  } finally {
    lock.release()
  }
}

/** The files of a SQLite database; the first of them is moved first, so that no server finds it without the others. */
const ENDINGS = ['', '-wal', '-shm']

/** Keeps the database that a restore replaces: nothing else may have what came after the backup. */
async function moveAside(database: string): Promise<void> {
  // Read before, it has an empty log and an index of that, which would be left behind where an owner moves the file alone.
  if (statSync(`${database}-wal`, { throwIfNoEntry: false })?.size === 0)
    for (const ending of ['-wal', '-shm']) rmSync(`${database}${ending}`, { force: true })
  for (const ending of ENDINGS)
    if (existsSync(`${database}${ending}`)) await rename(`${database}${ending}`, replacedName(database, ending))
  syncInPlace(dirname(database))
}

/** @throws Failure `conflict` when files moved to another place since a backup of rows */
async function assertFilesNotMoved(config: Config, { name, rowsFile }: Backup): Promise<void> {
  using snapshot = openSnapshot(rowsFile)
  const now = await placesVersion((setting) => peekSetting(config, setting)).catch(() => undefined) // damaged rows are why this is done
  if (now === undefined || now === (await placesVersion(async (setting) => snapshot.setting(setting)))) return
  throw new Failure(
    'conflict',
    `Files moved to another place after ${name} was made, so its rows would not find them. Restore the whole backup into an empty data folder.`,
  )
}

/** @throws Failure `conflict` when an earlier restore has moved the database aside, whether it was finished or not */
function assertNothingMovedAside(database: string): void {
  const moved = ENDINGS.filter((ending) => existsSync(replacedName(database, ending)))
  const [first] = moved
  if (first === undefined) return
  if (existsSync(database))
    throw new Failure(
      'conflict',
      `${replacedName(database, first)} is the database that an earlier restore replaced. Move it out of ${dirname(database)}, or remove it if nothing in it is needed any more, then try again. Nothing was changed.`,
    )
  const commands = moved.map((ending) => `mv ${replacedName(database, ending)} ${database}${ending}`)
  throw new Failure(
    'conflict',
    `An earlier restore was interrupted after it had moved the database aside. Move it back, then try again: ${commands.join(' && ')}`,
  )
}

const replacedName = (database: string, ending: string) => `${database}.replaced${ending}`

/** A copy of the backup's rows in the data folder, ready for a server. */
async function copyRows(config: Config, backup: Backup, { isCopy, bucketId }: Prepared): Promise<string> {
  const { tmp } = dataPaths(config.dataDir)
  mkdirSync(tmp, { recursive: true, mode: 0o700 })
  const copy = join(tmp, basename(backup.rowsFile))
  for (const ending of ['', '-wal', '-shm']) rmSync(`${copy}${ending}`, { force: true })
  const check = checkHash(Buffer.from(backup.manifest.rows.sha256, 'hex'))
  const from = dirname(backup.rowsFile)
  if (!(await copyBlob(bulkFolder(from, from), bulkFolder(tmp, tmp), basename(copy), check)))
    throw damaged(backup, backup.rowsFile)
  if (isCopy || config.databaseUrl !== undefined) await (await openSqlite(copy)).close() // which migrates it to this version
  await prepareRows(copy, { isCopy, bucketId })
  return copy
}

/** The rows go last: without them no server starts on the folder. */
async function placeRows(config: Config, { manifest }: Backup, copy: string, { progress, signal }: RestoreListener) {
  const { database, mark } = dataPaths(config.dataDir)
  if (config.databaseUrl === undefined) {
    await rename(copy, database)
    syncNames(database)
    return
  }
  const { moveToPostgres } = await import('../db/move/move.ts')
  const moved = await moveToPostgres(
    { path: copy, url: config.databaseUrl, installation: manifest.masterKey },
    { started: () => undefined, progress: (_, rows, of) => progress('rows', rows / Math.max(1, of)), signal },
  )
  const { address } = await locateDatabase(config)
  await saveHighWaterMark(mark, { value: moved.highWaterMark, address })
  syncNames(mark)
  await rm(copy)
}

/** `isCopy`: another installation may have the same rows. `bucketId`: then, of the bucket that has their files. */
type Prepared = { isCopy: boolean; bucketId?: string | undefined }

/** Takes from the rows what must not happen a second time. They may be of any version from 0.2.0 on. */
async function prepareRows(path: string, { isCopy, bucketId }: Prepared): Promise<void> {
  await changeRowsUnmigrated(path, async (tx) => {
    const nowS = sql`(select cast(value as integer) from setting where name = ${HIGH_WATER_MARK})`
    if (isCopy) await forgetPlaces(tx)
    if (bucketId !== undefined) await sql`insert into setting (name, value) values (${BUCKET_ID}, ${bucketId})`.execute(tx)
    if (isCopy)
      await sql`insert into setting (name, value) values (${RESTORED_COPY}, '1') on conflict (name) do nothing`.execute(tx)
    else await sql`delete from setting where name in ('database-file', 'lock-file')`.execute(tx) // the file is another one now
    // One of these may have been redeemed after the backup, and would open the video once more.
    await sql`update otp set expires_at_s = issued_at_s where spent_at_s is null`.execute(tx)
    await sql`update playback_session set ended_at_s = coalesce(${nowS}, last_seen_at_s), end_reason = 'stopped'
        where ended_at_s is null`.execute(tx)
    await sql`delete from stream_slot`.execute(tx)
    // The file of an unfinished import grows, so it is in no backup: the import starts again.
    await sql`update import set file = null, wrapped_key = null, iv = null, etag = null, received_bytes = 0,
        max_received_bytes = 0`.execute(tx)
  })
  makeSingleFile(path)
}

async function assertUnchanged(place: BackupPlace, backup: Backup, part: 'rows' | 'list'): Promise<void> {
  const path = part === 'rows' ? backup.rowsFile : backup.listFile
  if ((await hashFile(path))?.toString('hex') !== backup.manifest[part].sha256)
    throw damaged(backup, `${place.name}/${backup.name}/${basename(path)}`)
}

/** A backup, or a part of it, is not as it was made. */
export class DamagedBackup extends Failure {
  /** Its name. */
  readonly backup: string
  constructor(backup: string, message: string) {
    super('unavailable', message)
    this.backup = backup
  }
}

function damaged({ name }: BackupName, path: string): DamagedBackup {
  return new DamagedBackup(
    name,
    `${path} is missing or damaged, so this backup cannot be restored. Use another copy of it, or an earlier backup: --at NAME.`,
  )
}
