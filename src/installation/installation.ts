import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { type Config, dataPaths } from '../config.ts'
import {
  createMasterKey,
  type MasterKey,
  readMasterKey,
  removeUnfinishedKey,
  syncMasterKey,
  writeMasterKey,
} from '../crypto/master-key.ts'
import { keyFromPhrase, phraseFromKey } from '../crypto/recovery-phrase.ts'
import type { Database, DatabaseLocation, Db } from '../db/database.ts'
import { assertNotOlderThanMark, findHighWaterMark, readHighWaterMark, saveHighWaterMark } from '../db/high-water-mark.ts'
import type { MovedTable, MoveListener } from '../db/move/move.ts'
import { isFull } from '../db/sqlite/commit.ts'
import { sqliteLocation } from '../db/sqlite/database.ts'
import { Failure, isDiskFull } from '../errors.ts'
import type { Check } from '../health-check.ts'
import { type BlobFolder, openBlobFolder, removeUnfinished, syncInPlace, syncNames } from '../storage/folder.ts'
import { type FolderLock, takeFolderLock } from '../storage/folder-lock.ts'
import type { IdentifyingFile } from '../storage/identity.ts'
import { releaseReserve, releaseReserveAtStart } from '../storage/reserve.ts'

export type RecordedDatabase = Database & {
  /** Notes in the data folder how far the database has come. */
  noteMark(mark: number): Promise<void>
}

/** A data folder in this process's hands: locked, opened, and of this master key. */
export type Installation = RecordedDatabase & {
  masterKey: MasterKey
  folders: { sources: BlobFolder; segments: BlobFolder; posters: BlobFolder; files: BlobFolder }
  /** True when this start made the master key: tell the owner where it lies. */
  masterKeyIsNew: boolean
}

/**
 * Takes the lock of the data folder. Undefined: a server runs on it, and commands go through its control socket.
 * @throws Failure `unavailable` when the folder cannot be written
 */
export function lockDataFolder(config: Config): FolderLock | undefined {
  try {
    mkdirSync(config.dataDir, { recursive: true, mode: 0o700 })
    const lock = takeFolderLock(dataPaths(config.dataDir).lock)
    if (lock) syncNames(config.dataDir) // whoever made it may have been killed before
    return lock
  } catch (cause) {
    if (isDiskFull(cause) || isFull(cause)) throw diskIsFull(config, cause)
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

/**
 * Opens the database alone, for commands that need no more.
 * @throws Failure `unavailable` when it is missing over existing videos, damaged or newer
 */
export async function openDatabase(config: Config): Promise<RecordedDatabase> {
  const { mark: markFile, reserve } = dataPaths(config.dataDir)
  releaseReserveAtStart(reserve)
  const place = await placeOf(config)
  await refuseLostDatabase(config, place)
  await assertNotOlderThanMark(place, markFile)
  const database = await place.open()
  return { ...database, noteMark: (mark) => saveHighWaterMark(markFile, { mark, address: place.address }) }
}

/** PostgreSQL's driver is loaded where it is used. */
async function placeOf({ databaseUrl, dataDir }: Config): Promise<DatabaseLocation> {
  if (databaseUrl === undefined) {
    const { database, reserve } = dataPaths(dataDir)
    return sqliteLocation(database, () => releaseReserve(reserve))
  }
  const { postgresLocation: postgresPlace } = await import('../db/postgres/location.ts')
  return postgresPlace(databaseUrl)
}

/** What differs in a copy of this installation: the database's own file, or with PostgreSQL the lock of the data folder. */
export function identifyingFiles({ databaseUrl, dataDir }: Config): IdentifyingFile[] {
  const { database, lock } = dataPaths(dataDir)
  const inFolder = { setting: 'database-file', path: database } as const
  return databaseUrl === undefined ? [inFolder] : [{ setting: 'lock-file', path: lock }, inFolder] // moved from there, perhaps
}

/** A setting, by a look that changes nothing. */
export async function readSettingUnopened(config: Config, name: string): Promise<string | undefined> {
  return (await placeOf(config)).peekSetting(name)
}

/** What a look at the database finds, which a server may be using. */
export async function examineDatabase({ databaseUrl, dataDir }: Config): Promise<Check[]> {
  if (databaseUrl === undefined) {
    const { examineSqlite } = await import('../db/sqlite/health.ts')
    return [{ check: 'database', ...examineSqlite(dataPaths(dataDir).database) }]
  }
  const { examinePostgres } = await import('../db/postgres/health.ts')
  return examinePostgres(databaseUrl)
}

/**
 * Opens everything that lies in the data folder. The caller holds its lock.
 * @param noteFull called when a write of a file finds the disk full
 */
export async function openInstallation(config: Config, noteFull?: () => void): Promise<Installation> {
  const paths = dataPaths(config.dataDir)
  // Before the database is made: a folder without its key must stay as it is.
  const found = readMasterKey(config)
  if (!found) await refuseLostKey(config)
  const database = await openDatabase(config)
  try {
    const masterKey = found ?? createMasterKey(config.masterKeyFile)
    await bindMasterKey(database, masterKey, config)
    removeUnfinishedKey(config.masterKeyFile)
    const folders = {
      sources: await openBlobFolder(paths.sources, paths.tmp, noteFull),
      segments: await openBlobFolder(paths.segments, paths.tmp, noteFull),
      posters: await openBlobFolder(paths.posters, paths.tmp, noteFull),
      files: await openBlobFolder(paths.files, paths.tmp, noteFull),
    }
    await removeUnfinished(folders.sources)
    return { ...database, masterKey, folders, masterKeyIsNew: !found }
  } catch (error) {
    await database.close()
    throw error
  }
}

export type MovedInstallation = {
  tables: MovedTable[]
  /** An earlier run had moved everything. */
  before: boolean
}

/**
 * Moves the database from the data folder to PostgreSQL; whatever else lies there stays and belongs to it from then on. The caller
 * holds the folder's lock.
 * @throws Failure that says what to do; the source is as it was, and the next run goes on
 */
export async function moveInstallation({ dataDir }: Config, url: string, watch: MoveListener): Promise<MovedInstallation> {
  const { database: path, mark: markFile } = dataPaths(dataDir)
  const [{ moveToPostgres }, { withoutLeftoverLog: leavingNoLog }, { postgresLocation: postgresPlace }] = await Promise.all([
    import('../db/move/move.ts'),
    import('../db/move/source.ts'),
    import('../db/postgres/location.ts'),
  ])
  using _ = leavingNoLog(path)
  const [source, target] = [sqliteLocation(path), postgresPlace(url)]
  const installation = await source.peekSetting(KEY_ID)
  if (installation === undefined)
    throw new Failure('not-found', `There is no installation in ${dataDir} to move. Set REELGATE_DATA to its data folder.`)
  const before = !(await target.isInMove()) && (await target.peekSetting(KEY_ID)) === installation
  if (before) await refuseLeftDatabase(source, target)
  else await assertNotOlderThanMark(source, markFile)
  const { tables, mark } = before
    ? { tables: [], mark: await findHighWaterMark(target) }
    : await moveToPostgres({ path, url, installation }, watch)
  await noteMove(markFile, mark, target)
  return { tables, before }
}

/** From here on the source counts as an old copy. A run that was killed may have moved everything, and not come to this. */
async function noteMove(markFile: string, mark: number, { address, name }: DatabaseLocation): Promise<void> {
  try {
    await saveHighWaterMark(markFile, { mark: Math.max(mark, readHighWaterMark(markFile).mark), address })
    syncInPlace(markFile)
    syncNames(markFile)
  } catch (cause) {
    throw new Failure(
      'unavailable',
      `The installation is in ${name}, whole, but that cannot be noted in ${markFile}, so that a start without REELGATE_DATABASE_URL would not be refused. Correct its permissions or free some space, and run the same command again.`,
      { cause },
    )
  }
}

/** @throws Failure `conflict` when the installation went on in the source after it was moved */
async function refuseLeftDatabase(source: DatabaseLocation, target: DatabaseLocation): Promise<void> {
  if ((await findHighWaterMark(target)) > (await findHighWaterMark(source))) return
  throw new Failure(
    'conflict',
    `${target.name} has this installation as it was moved there before, and ${source.name} has gone on since. Make an empty database and name that one. Nothing was changed.`,
  )
}

async function refuseLostDatabase(config: Config, place: DatabaseLocation): Promise<void> {
  if (await place.exists()) return
  const paths = dataPaths(config.dataDir)
  const isLeft = place.address !== undefined && existsSync(paths.database) && readHighWaterMark(paths.mark).address === undefined
  if (isLeft) {
    throw new Failure(
      'unavailable',
      `The installation has not moved yet: its database is ${paths.database}, and ${place.name} is empty. Run reelgate migrate, then start again; to begin anew set REELGATE_DATA to another folder.`,
    )
  }
  const { address } = readHighWaterMark(paths.mark)
  if (place.address === undefined && address !== undefined) {
    throw new Failure(
      'unavailable',
      `The installation in ${config.dataDir} has its database in ${address}. Set REELGATE_DATABASE_URL to it.`,
    )
  }
  const left = [paths.sources, paths.segments].find((folder) => existsSync(folder) && readdirSync(folder).length > 0)
  if (left) {
    throw new Failure(
      'unavailable',
      `There are videos in ${left} but no database ${place.name}. Restore it from a backup; a new one is never made over existing videos.`,
    )
  }
  if (existsSync(paths.mark)) {
    throw new Failure(
      'unavailable',
      `The database ${place.name} is missing. Restore it from a backup; to begin anew, remove the whole folder ${config.dataDir}.`,
    )
  }
}

const KEY_ID = 'master-key-id'

/** Looks without opening to write: a database that waits for its key is not migrated either, so an older version still reads it. */
async function refuseLostKey(config: Config): Promise<void> {
  const place = await placeOf(config)
  if ((await place.peekSetting(KEY_ID)) === undefined) return // there is none, or a command made it and nothing is protected yet
  throw new Failure(
    'unavailable',
    `The master key ${config.masterKeyFile} is missing, and ${place.name} needs it. Put the key file back, or name it with REELGATE_MASTER_KEY_FILE; a new key cannot open existing videos.`,
  )
}

/**
 * Whether there is a master key; nothing is opened to write.
 * @throws Failure `unavailable` when it is missing and needed, or another installation's
 */
export async function checkMasterKey(config: Config): Promise<boolean> {
  const key = readMasterKey(config)
  if (!key) {
    await refuseLostKey(config)
    return false
  }
  const bound = await readSettingUnopened(config, KEY_ID)
  if (bound !== undefined) refuseOtherKey(key, bound)
  return true
}

function refuseOtherKey(key: MasterKey, bound: string): void {
  if (key.id.toString('hex') === bound) return
  throw new Failure(
    'unavailable',
    'The master key is not the one of this data folder. Start Reelgate with the key that belongs to it.',
  )
}

/** Ties an installation to its master key, for ever; a start with another key is refused. */
async function bindMasterKey(database: Database, masterKey: MasterKey, config: Config): Promise<void> {
  const id = masterKey.id.toString('hex')
  const bound = await boundKeyId(database.db)
  if (bound === undefined) {
    if (!config.masterKeyHex) syncMasterKey(config.masterKeyFile)
    await database.write((tx) => tx.insertInto('setting').values({ name: KEY_ID, value: id }).execute())
  } else refuseOtherKey(masterKey, bound)
}

/** The id of the master key that the data folder belongs to, in hexadecimal digits; undefined before its first start. */
export async function boundKeyId(db: Db): Promise<string | undefined> {
  const row = await db.selectFrom('setting').select('value').where('name', '=', KEY_ID).executeTakeFirst()
  return row?.value
}

/**
 * Writes the master key's file again, from its recovery phrase.
 * @param bound the id of the key that the data folder belongs to
 * @returns false when the very key lies there already
 * @throws Failure when the phrase is wrong or of another installation, or something else lies in the place; nothing is changed then
 */
export function restoreMasterKey(config: Config, phrase: string, bound: string): boolean {
  const key = keyFromPhrase(phrase)
  if (key.id.toString('hex') !== bound)
    throw new Failure(
      'conflict',
      `This recovery phrase is another installation’s: it does not open ${config.dataDir}. Nothing was changed.`,
    )
  const { masterKeyFile } = config
  if (existsSync(masterKeyFile) && holdsKey(masterKeyFile, key)) return false
  writeMasterKey(masterKeyFile, key)
  return true
}

function holdsKey(masterKeyFile: string, key: MasterKey): boolean {
  try {
    return readMasterKey({ masterKeyFile, masterKeyHex: undefined })?.bytes.equals(key.bytes) ?? false
  } catch {
    return false // something else lies there, and is not written over
  }
}

/** The recovery phrase of the key whose file lies there. @throws Failure `not-found` without one */
export function recoveryPhrase({ masterKeyFile }: Config): string[] {
  const key = readMasterKey({ masterKeyFile, masterKeyHex: undefined })
  if (!key) throw new Failure('not-found', `There is no master key ${masterKeyFile}. Set REELGATE_DATA to its data folder.`)
  return phraseFromKey(key)
}
