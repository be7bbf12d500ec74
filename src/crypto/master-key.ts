import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { errorCode, Failure } from '../errors.ts'
import { syncInPlace, syncNames } from '../storage/sync.ts'

/** 32 bytes that open everything an installation stores; `id` identifies them in what they wrapped. */
export type SingleMasterKey = { id: Buffer; bytes: Buffer }

/**
 * The key ring of an installation: the current key, which wraps, and older ones, which only open what they wrapped before a rotation.
 * One object for the whole program, changed in place: see `replaceMasterKey`. Whatever is wrapped is wrapped inside `write`, so that
 * after the replacement nothing is committed that an older key wrapped.
 */
export type MasterKey = SingleMasterKey & { older: readonly SingleMasterKey[]; formerSigningKeys: readonly FormerSigningKey[] }

/** A key that was derived from an older master key, and verifies what it signed for a while. `info` says for which use. */
type FormerSigningKey = { info: string; key: Buffer; endsAtS: number }

const WRAP_CIPHER = 'aes-256-gcm'
const ID_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16

export function parseMasterKey(bytes: Buffer, older: readonly SingleMasterKey[] = []): MasterKey {
  const id = createHash('sha256').update('reelgate master-key-id 1 ').update(bytes).digest().subarray(0, ID_BYTES)
  return { id, bytes, older, formerSigningKeys: [] }
}

/**
 * A key ring as text: 64 hexadecimal digits for each key, the current one first, separated by spaces, commas or line ends. Undefined for
 * anything else.
 */
export function readMasterKeyText(text: string): MasterKey | undefined {
  const keys = text.trim().split(/[\s,]+/)
  if (!keys.every((digits) => /^[0-9a-f]{64}$/i.test(digits))) return undefined
  const [current, ...older] = keys.map((digits) => parseMasterKey(Buffer.from(digits, 'hex')))
  return current && { ...current, older: older.filter(({ id }) => !id.equals(current.id)) }
}

/** Makes another key the current one; the one before becomes an older one. Every part that holds this object uses it at its next call. */
export function replaceMasterKey(master: MasterKey, next: SingleMasterKey): void {
  const { id, bytes, older } = master
  if (id.equals(next.id)) return // read from the file meanwhile
  Object.assign(master, { id: next.id, bytes: next.bytes, older: [{ id, bytes }, ...older] })
}

/**
 * The master key in a file; undefined when there is no file.
 * @throws Failure `unavailable` when the file is not a key or others may read it
 */
export function readMasterKeyFile(file: string): MasterKey | undefined {
  if (!existsSync(file)) return undefined
  if (statSync(file).mode & 0o077)
    throw new Failure('unavailable', `Other users may read the master key ${file}. Run chmod 600 on it and start again.`)
  const key = readMasterKeyText(readFileSync(file, 'utf8'))
  if (key) return key
  throw new Failure(
    'unavailable',
    `${file} does not hold a master key (64 hexadecimal digits). Put the right file back and start again.`,
  )
}

/** Makes a new master key and its file. Only for an installation that has wrapped nothing yet. */
export function createMasterKey(file: string): MasterKey {
  const key = parseMasterKey(randomBytes(32))
  writeMasterKey(file, key)
  return key
}

/**
 * Writes a key's file (0600), durable before it returns. A power cut at any moment leaves the whole file or none, never an empty one,
 * and an existing file is never overwritten.
 * @throws Failure `conflict` when the file exists; `unavailable` when the folder cannot be written
 */
export function writeMasterKey(file: string, key: MasterKey): void {
  const unfinished = unfinishedKeyFile(file)
  try {
    mkdirSync(dirname(file), { recursive: true })
    rmSync(unfinished, { force: true })
    const handle = openSync(unfinished, 'wx', 0o600)
    try {
      writeFileSync(handle, `${key.bytes.toString('hex')}\n`)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    linkSync(unfinished, file) // a rename would replace an existing file
    rmSync(unfinished)
    syncNames(file)
  } catch (cause) {
    rmSync(unfinished, { force: true })
    if (errorCode(cause) === 'EEXIST')
      throw new Failure('conflict', `${file} is there already, and a key is never written over. Move it away first.`, { cause })
    throw new Failure(
      'unavailable',
      `The master key cannot be written to ${file}. Correct the permissions of its folder, or name another file with REELGATE_MASTER_KEY_FILE.`,
      { cause },
    )
  }
}

/**
 * Replaces what an existing file holds by these keys, the current one first. Durable before it returns; a power cut at any moment leaves
 * the whole old file or the whole new one. The file keeps its owner: a command may run as root.
 * @throws Failure `unavailable` when it cannot be written; nothing is changed then
 */
export function replaceKeyFile(file: string, keys: readonly SingleMasterKey[]): void {
  const unfinished = unfinishedKeyFile(file)
  try {
    const target = realpathSync(file)
    const { uid, gid } = statSync(target)
    rmSync(unfinished, { force: true })
    const handle = openSync(unfinished, 'wx', 0o600)
    try {
      writeFileSync(handle, keys.map(({ bytes }) => `${bytes.toString('hex')}\n`).join(''))
      if (process.geteuid?.() === 0) fchownSync(handle, uid, gid)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(unfinished, target)
    syncNames(target)
  } catch (cause) {
    rmSync(unfinished, { force: true })
    throw new Failure(
      'unavailable',
      `The master key ${file} cannot be replaced. Correct the permissions of the file and its folder, and run the command again.`,
      { cause },
    )
  }
}

/**
 * Makes an existing key file durable: an earlier start or its owner, who wrote it, may have been interrupted before
 * that. Called before anything is wrapped with the key.
 */
export function syncMasterKey(file: string): void {
  syncInPlace(file)
  syncNames(file)
}

/** Removes what an interrupted `writeMasterKey` may have left next to the file. */
export function removeUnfinishedKey(file: string): void {
  rmSync(unfinishedKeyFile(file), { force: true })
}

/** In the folder of the file itself, which may be behind a symbolic link. */
function unfinishedKeyFile(file: string): string {
  return `${existsSync(file) ? realpathSync(file) : file}.new`
}

/**
 * Wraps a secret: `masterId(4) ‖ nonce(12) ‖ ciphertext ‖ tag(16)`, AES-256-GCM.
 * @param purpose additional data, such as `reelgate content-key 1 <videoId> <generation>`: a wrapped secret moved to another row does not open
 */
export function wrap(master: MasterKey, purpose: string, secret: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(WRAP_CIPHER, master.bytes, nonce).setAAD(Buffer.from(purpose, 'ascii'))
  return Buffer.concat([master.id, nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()])
}

/**
 * Opens what `wrap` made for the same purpose.
 * @throws Failure `unavailable` when another master key wrapped it; Error when it was changed or moved
 */
export function unwrap(master: MasterKey, purpose: string, wrapped: Buffer): Buffer {
  const key = findKeyOf(master, wrapped)
  if (!key) {
    throw new Failure(
      'unavailable',
      'This was protected with another master key. Start Reelgate with the key that belongs to its data folder.',
    )
  }
  const nonce = wrapped.subarray(ID_BYTES, ID_BYTES + NONCE_BYTES)
  const decipher = createDecipheriv(WRAP_CIPHER, key.bytes, nonce).setAAD(Buffer.from(purpose, 'ascii'))
  decipher.setAuthTag(wrapped.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(wrapped.subarray(ID_BYTES + NONCE_BYTES, -TAG_BYTES)), decipher.final()])
}

/** The key of the ring that wrapped this; undefined when none did. */
export function findKeyOf(master: MasterKey, wrapped: Buffer): SingleMasterKey | undefined {
  const id = wrapped.subarray(0, ID_BYTES)
  return [master, ...master.older].find((key) => key.id.equals(id))
}

/**
 * The keys for one kind of signature: the first one signs, each verifies. After a rotation, what was signed before it is valid for a
 * while: playback paths, upload forms.
 */
export function signingKeys(master: MasterKey, info: string, lengthBytes: number, nowS: number): [Buffer, ...Buffer[]] {
  const former = master.formerSigningKeys.filter((key) => key.info === info && key.endsAtS > nowS)
  return [deriveOnce(master.bytes, info, lengthBytes), ...former.map(({ key }) => key)]
}

const derived = new WeakMap<Buffer, Map<string, Buffer>>()

/** Deriving a key takes 10 µs, and some are used in every request. */
function deriveOnce(secret: Buffer, info: string, lengthBytes: number): Buffer {
  const known = derived.get(secret) ?? new Map<string, Buffer>()
  derived.set(secret, known)
  const key = known.get(info) ?? deriveKey(secret, info, lengthBytes)
  known.set(info, key)
  return key
}

/** A key for one use, derived by HKDF-SHA256 without salt. `info` is ASCII, such as `reelgate media-path 1`. */
export function deriveKey(secret: Buffer, info: string, lengthBytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), Buffer.from(info, 'ascii'), lengthBytes))
}
