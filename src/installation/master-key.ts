import { existsSync } from 'node:fs'
import type { Config } from '../config.ts'
import { type MasterKey, readMasterKeyFile, readMasterKeyText, syncMasterKey, writeMasterKey } from '../crypto/master-key.ts'
import { keyFromPhrase, phraseFromKey } from '../crypto/recovery-phrase.ts'
import type { Database, Db } from '../db/database.ts'
import { Failure } from '../errors.ts'
import { locateDatabase, peekSetting } from './database.ts'
import { runKeyCommand } from './key-command.ts'

/** The setting that names the master key an installation belongs to. */
export const MASTER_KEY_ID = 'master-key-id'

/**
 * The master key from the environment, a command or a file; undefined when the file does not exist.
 * @throws Failure `unavailable` with what to do
 */
export function readMasterKey(config: Config): MasterKey | undefined {
  if (config.masterKeyHex) return readMasterKeyText(config.masterKeyHex)
  if (config.masterKeyCommand) return runKeyCommand(config.masterKeyCommand, config.toolFolders)
  return readMasterKeyFile(config.masterKeyFile)
}

/** Whether the key is in a file that this program writes. Elsewhere its owner stores it. */
export function hasKeyFile(config: Config): boolean {
  return config.masterKeyPlace === 'REELGATE_MASTER_KEY_FILE'
}

/**
 * The database is not opened to write: one that waits for its key is not migrated either, so an older version can still read it.
 * @throws Failure `unavailable` when the database was used with a key
 */
export async function assertNoDataWithoutKey(config: Config): Promise<void> {
  const location = await locateDatabase(config)
  if ((await location.peekSetting(MASTER_KEY_ID)) === undefined) return // no database, or a command created it and nothing is encrypted yet
  throw new Failure(
    'unavailable',
    `The master key ${config.masterKeyFile} is missing, and ${location.name} needs it. Put the key file back, or name it with REELGATE_MASTER_KEY_FILE; a new key cannot open existing videos.`,
  )
}

/**
 * Whether there is a master key. Nothing is changed.
 * @throws Failure `unavailable` when it is missing and needed, or belongs to another installation
 */
export async function checkMasterKey(config: Config): Promise<boolean> {
  const key = readMasterKey(config)
  if (!key) {
    await assertNoDataWithoutKey(config)
    return false
  }
  const bound = await peekSetting(config, MASTER_KEY_ID)
  if (bound !== undefined) assertKeyBelongs(key, bound)
  return true
}

function assertKeyBelongs(key: MasterKey, bound: string): void {
  if (key.id.toString('hex') === bound) return
  throw new Failure('unavailable', 'This master key does not belong to this data folder. Start Reelgate with the key that does.')
}

/** Binds the installation to its master key for good: a start with another key is rejected. */
export async function recordOrVerifyMasterKey(database: Database, masterKey: MasterKey, config: Config): Promise<void> {
  const id = masterKey.id.toString('hex')
  const bound = await findMasterKeyId(database.db)
  if (bound === undefined) {
    if (hasKeyFile(config)) syncMasterKey(config.masterKeyFile)
    await database.write((tx) => tx.insertInto('setting').values({ name: MASTER_KEY_ID, value: id }).execute())
  } else assertKeyBelongs(masterKey, bound)
}

/** The id of the master key that the installation belongs to, in hexadecimal digits; undefined before the first start. */
export async function findMasterKeyId(db: Db): Promise<string | undefined> {
  const row = await db.selectFrom('setting').select('value').where('name', '=', MASTER_KEY_ID).executeTakeFirst()
  return row?.value
}

/**
 * Restores the master key's file from its recovery phrase.
 * @param masterKeyId the id of the key that the installation belongs to
 * @returns false when the file already holds this key
 * @throws Failure when the phrase is wrong or belongs to another installation, or the file holds something else; nothing is changed then
 */
export function restoreMasterKey(config: Config, phrase: string, masterKeyId: string): boolean {
  const key = keyFromPhrase(phrase)
  if (key.id.toString('hex') !== masterKeyId)
    throw new Failure(
      'conflict',
      `This recovery phrase belongs to another installation: it does not open ${config.dataDir}. Nothing was changed.`,
    )
  const { masterKeyFile } = config
  if (existsSync(masterKeyFile) && holdsKey(masterKeyFile, key)) return false
  writeMasterKey(masterKeyFile, key)
  return true
}

function holdsKey(masterKeyFile: string, key: MasterKey): boolean {
  try {
    return readMasterKeyFile(masterKeyFile)?.bytes.equals(key.bytes) ?? false
  } catch {
    return false // the file holds something else, which is not overwritten
  }
}

/** The recovery phrase of the master key. @throws Failure `not-found` when its file does not exist */
export function getRecoveryPhrase(config: Config): string[] {
  const key = readMasterKey(config)
  if (!key)
    throw new Failure('not-found', `There is no master key ${config.masterKeyFile}. Set REELGATE_DATA to its data folder.`)
  return phraseFromKey(key)
}
