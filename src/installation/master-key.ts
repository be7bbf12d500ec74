import { existsSync } from 'node:fs'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Config } from '../config/config.ts'
import {
  findKeyOf,
  type MasterKey,
  readMasterKeyFile,
  readMasterKeyText,
  replaceKeyFile,
  type SingleMasterKey,
  syncMasterKey,
  unwrap,
  wrap,
  writeMasterKey,
} from '../crypto/master-key.ts'
import { keyFromPhrase, phraseFromKey } from '../crypto/recovery-phrase.ts'
import type { Database, Db } from '../db/database.ts'
import { findSetting, saveSetting } from '../db/setting.ts'
import { Failure } from '../errors.ts'
import { locateDatabase, peekSetting } from './database.ts'
import { runKeyCommand } from './key-command.ts'
import { MASTER_KEY_ID } from './master-key-id.ts'

/**
 * The master key from the environment, a command or a file; undefined when the file does not exist.
 * @throws Failure `unavailable` with what to do
 */
export function readMasterKey(config: Config): MasterKey | undefined {
  if (config.masterKeyHex) return readMasterKeyText(config.masterKeyHex)
  if (config.masterKeyCommand) return runKeyCommand(config.masterKeyCommand, config.toolFolders)
  return readMasterKeyFile(config.masterKeyFile)
}

/** The same; undefined also where this process cannot read it, such as where only the server can. */
export function findMasterKey(config: Config): MasterKey | undefined {
  try {
    return readMasterKey(config)
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

/** Whether the key is in a file that this program writes. Elsewhere its owner stores it. */
export function hasKeyFile(config: Pick<Config, 'masterKeyVariable'>): boolean {
  return config.masterKeyVariable === 'REELGATE_MASTER_KEY_FILE'
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

type MasterKeyState = 'none' | 'complete' | 'being-rotated' | 'has-unneeded'

/**
 * Whether there is a master key, and whether a rotation of it is unfinished. Nothing is changed.
 * @throws Failure `unavailable` when it is missing and needed, or belongs to another installation
 */
export async function checkMasterKey(config: Config): Promise<MasterKeyState> {
  const ring = readMasterKey(config)
  if (!ring) {
    await assertNoDataWithoutKey(config)
    return 'none'
  }
  const ids = toIds(await peekSetting(config, MASTER_KEY_ID))
  const { nextMasterKey, hasUnneededKey } = arrangeRing(ring, ids, config)
  if (nextMasterKey || ids.length > 1) return 'being-rotated'
  return hasUnneededKey ? 'has-unneeded' : 'complete'
}

/** The key ring of an open installation. */
export type BoundMasterKey = {
  masterKey: MasterKey
  /** The first key of the ring, when nothing is wrapped with it yet: a rotation was prepared. */
  nextMasterKey: SingleMasterKey | undefined
  /** Whether the ring has a key that nothing is wrapped with. */
  hasUnneededKey: boolean
}

/**
 * Binds the installation to its master key for good: a start with another key is rejected, and during a rotation one without either
 * key.
 */
export async function bindMasterKey(database: Database, ring: MasterKey, config: Config): Promise<BoundMasterKey> {
  const ids = await findMasterKeyIds(database.db)
  if (ids.length === 0) {
    if (hasKeyFile(config)) syncMasterKey(config.masterKeyFile)
    await database.write((tx) => saveMasterKeyIds(tx, [ring]))
  }
  const { masterKey, ...others } = arrangeRing(ring, ids, config)
  const formerSigningKeys = openFormerSigningKeys(masterKey, await findSetting(database.db, FORMER_SIGNING_KEYS))
  return { masterKey: { ...masterKey, formerSigningKeys }, ...others }
}

/** Brings the key ring of this process up to date, in place, when another process has rotated the key. */
export async function followKeyRing({ db, masterKey }: { db: Db; masterKey: MasterKey }, config: Config): Promise<void> {
  const ids = await findMasterKeyIds(db)
  if (ids[0] === idOf(masterKey)) return
  const ring = readMasterKey(config)
  if (!ring) return
  const { masterKey: current } = arrangeRing(ring, ids, config)
  const formerSigningKeys = openFormerSigningKeys(current, await findSetting(db, FORMER_SIGNING_KEYS))
  Object.assign(masterKey, current, { formerSigningKeys })
}

/**
 * The key that wraps at present comes first; the others that are needed follow.
 * @param ids the keys that the installation needs; empty before its first start
 */
function arrangeRing(ring: MasterKey, ids: readonly string[], config: Config): BoundMasterKey {
  const keys = [{ id: ring.id, bytes: ring.bytes }, ...ring.older]
  const [current, ...older] = ids.map((id) => keys.find((key) => idOf(key) === id))
  if (ids.length === 0)
    return { masterKey: { ...ring, older: [] }, nextMasterKey: undefined, hasUnneededKey: ring.older.length > 0 }
  const known = older.filter((key) => key !== undefined)
  if (!current || known.length < older.length) throw ids.length > 1 ? keyOfRotationMissing(config) : foreignKey()
  const nextMasterKey = ids.includes(idOf(ring)) ? undefined : keys[0]
  const hasUnneededKey = keys.some((key) => key !== nextMasterKey && !ids.includes(idOf(key)))
  return { masterKey: { ...ring, ...current, older: known }, nextMasterKey, hasUnneededKey }
}

function foreignKey(): Failure {
  return new Failure('unavailable', 'This master key does not belong to this data folder. Start Reelgate with the key that does.')
}

function keyOfRotationMissing(config: Config): Failure {
  const location = hasKeyFile(config) ? config.masterKeyFile : config.masterKeyVariable
  return new Failure(
    'unavailable',
    `A rotation of the master key is not finished, so both keys are needed, and ${location} has only one. Put the new one first and the one before after it.`,
  )
}

export function idOf({ id }: SingleMasterKey): string {
  return id.toString('hex')
}

function toIds(setting: string | undefined): string[] {
  return setting?.split(' ') ?? []
}

/** The ids of the master keys that the installation needs, in hexadecimal digits, the current one first; none before the first start. */
export async function findMasterKeyIds(db: Db): Promise<string[]> {
  return toIds(await findSetting(db, MASTER_KEY_ID))
}

export async function saveMasterKeyIds(tx: Db, keys: readonly SingleMasterKey[]): Promise<void> {
  await saveSetting(tx, MASTER_KEY_ID, keys.map(idOf).join(' '))
}

const FORMER_SIGNING_KEYS = 'former-signing-keys'
const FORMER_KEYS_PURPOSE = 'reelgate former-signing-keys 1'
const FormerSigningKeys = Type.Array(Type.Object({ info: Type.String(), key: Type.String(), endsAtS: Type.Number() }))

/** Stores what verifies signatures from before a rotation, wrapped by the new key: the old key need not be kept for them. */
export async function saveFormerSigningKeys(tx: Db, next: MasterKey): Promise<void> {
  const keys = next.formerSigningKeys.map(({ key, ...use }) => ({ ...use, key: key.toString('hex') }))
  await saveSetting(tx, FORMER_SIGNING_KEYS, wrap(next, FORMER_KEYS_PURPOSE, Buffer.from(JSON.stringify(keys))).toString('hex'))
}

function openFormerSigningKeys(master: MasterKey, stored: string | undefined): MasterKey['formerSigningKeys'] {
  if (stored === undefined) return []
  const wrapped = Buffer.from(stored, 'hex')
  if (!findKeyOf(master, wrapped)) return [] // of a rotation that went no further
  const keys: unknown = JSON.parse(unwrap(master, FORMER_KEYS_PURPOSE, wrapped).toString())
  return Value.Parse(FormerSigningKeys, keys).map(({ key, ...use }) => ({ ...use, key: Buffer.from(key, 'hex') }))
}

/**
 * Restores the master key's file from its recovery phrase. During a rotation two keys are needed, and each has its phrase.
 * @param ids the keys that the installation needs
 * @returns whether the file was changed, and whether it still lacks a key
 * @throws Failure when the phrase is wrong or belongs to another installation, or the file holds something else; nothing is changed then
 */
export function restoreMasterKey(
  { dataDir, masterKeyFile }: Config,
  phrase: string,
  ids: readonly string[],
): { restored: boolean; isComplete: boolean } {
  const key = keyFromPhrase(phrase)
  if (!ids.includes(idOf(key)))
    throw new Failure(
      'conflict',
      `This recovery phrase belongs to another installation: it does not open ${dataDir}. Nothing was changed.`,
    )
  const there = existsSync(masterKeyFile) ? keysIn(masterKeyFile) : []
  const all = ids.flatMap((id) => [...there, key].find((known) => idOf(known) === id) ?? [])
  const isComplete = all.length === ids.length
  if (there.some((known) => idOf(known) === idOf(key))) return { restored: false, isComplete }
  if (there.length > 0 && there.every((known) => ids.includes(idOf(known)))) replaceKeyFile(masterKeyFile, all)
  else writeMasterKey(masterKeyFile, key)
  return { restored: true, isComplete }
}

function keysIn(masterKeyFile: string): SingleMasterKey[] {
  try {
    const ring = readMasterKeyFile(masterKeyFile)
    return ring ? [ring, ...ring.older] : []
  } catch {
    return [] // the file holds something else, which is not overwritten
  }
}

/** The recovery phrase of the master key. @throws Failure `not-found` when its file does not exist */
export function getRecoveryPhrase(config: Config): string[] {
  const key = readMasterKey(config)
  if (!key)
    throw new Failure('not-found', `There is no master key ${config.masterKeyFile}. Set REELGATE_DATA to its data folder.`)
  return phraseFromKey(key)
}
