import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { LIST_CURSOR_KEY } from '../catalogue/cursor.ts'
import type { Config } from '../config/config.ts'
import {
  deriveKey,
  type MasterKey,
  parseMasterKey,
  replaceKeyFile,
  replaceMasterKey,
  type SingleMasterKey,
  unwrap,
  wrap,
} from '../crypto/master-key.ts'
import { phraseFromKey } from '../crypto/recovery-phrase.ts'
import type { Database } from '../db/database.ts'
import { Failure, logLevelFor } from '../errors.ts'
import { UPLOAD_POLICY_KEY } from '../ingest/upload-policy.ts'
import { LTI_STATE_KEY } from '../lti/state.ts'
import { MEDIA_PATH_KEY } from '../playback/media/media-path.ts'
import { PAGE_TICKET_KEY } from '../playback/ticket.ts'
import type { Signals } from '../signals/signals.ts'
import {
  type BoundMasterKey,
  bindMasterKey,
  findMasterKeyIds,
  hasKeyFile,
  idOf,
  readMasterKey,
  saveFormerSigningKeys,
  saveMasterKeyIds,
} from './master-key.ts'
import { WRAPPED_COLUMNS, type WrappedColumn } from './wrapped-columns.ts'
import { listWrappedByOthers, replaceWrapped, type WrappedRow } from './wrapped-store.ts'

// A rotation of the master key, in steps that a start resumes after any of them:
// 1. The key file has both keys, the new one first.        (Another place: its owner has done this.)
// 2. The database is bound to both. From now on the new key wraps.
// 3. Whatever another key wrapped is wrapped again.
// 4. The database is bound to the new key alone.
// 5. The key file has the new key alone.

type RotationDeps = Pick<Database, 'db' | 'slowQueryDb' | 'write' | 'truncateWal'> & {
  config: Pick<Config, 'masterKeyFile' | 'masterKeyVariable'>
  nowS: () => number
  signals: Pick<Signals, 'send'>
  /** Interrupts it; the next start resumes it. */
  signal?: AbortSignal
}

type RotatedMasterKey = {
  masterKeyId: string
  rewrapped: number
  unreadable: number
  phrase: string | null
  removeOldKeyFrom: string | null
}

export type MasterKeyRotation = {
  /**
   * Makes a new master key the current one, or finishes an interrupted rotation.
   * @throws Failure `invalid` when the key's owner must add the new key first; `unavailable` when the rotation will be resumed
   */
  rotate(): Promise<RotatedMasterKey>
  /** Finishes a rotation that was interrupted or prepared; undefined when there is none. */
  resume(): Promise<RotatedMasterKey | undefined>
}

/** What these keys signed stays valid for this long: upload forms have a day, paths of playback two hours. */
const SIGNATURES_LAST_S = 24 * 3600
/** Not the key of downloads: with a stolen master key these would give clear video. */
const LASTING_SIGNATURES = [MEDIA_PATH_KEY, PAGE_TICKET_KEY, UPLOAD_POLICY_KEY, LIST_CURSOR_KEY, LTI_STATE_KEY]

/** For a command without a server. @throws Failure when there is no master key yet */
export async function openRotation(
  deps: Omit<RotationDeps, 'config'> & Database & { config: Config },
): Promise<MasterKeyRotation> {
  const ring = (await findMasterKeyIds(deps.db)).length > 0 ? readMasterKey(deps.config) : undefined
  if (!ring)
    throw new Failure('not-found', `${deps.config.dataDir} has no master key yet, or it is missing. Nothing was changed.`)
  return createRotation(deps, await bindMasterKey(deps, ring, deps.config))
}

/** @param bound the key ring of this process, which the rotation changes in place */
export function createRotation(deps: RotationDeps, bound: BoundMasterKey): MasterKeyRotation {
  const { masterKey } = bound
  let { nextMasterKey, hasUnneededKey } = bound
  let running: Promise<RotatedMasterKey> | undefined

  const runOnce = (work: () => Promise<RotatedMasterKey>) => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }

  const isUnfinished = async () =>
    nextMasterKey !== undefined || (hasUnneededKey && hasKeyFile(deps.config)) || (await findMasterKeyIds(deps.db)).length > 1

  async function run(isWanted: boolean): Promise<RotatedMasterKey> {
    if (nextMasterKey) await switchTo(deps, masterKey, nextMasterKey)
    else if (isWanted && !(await isUnfinished())) await switchToNewKey(deps, masterKey)
    nextMasterKey = undefined
    hasUnneededKey = true // until the file has only the new one
    const rotated = await finish(deps, masterKey)
    hasUnneededKey = false
    return rotated
  }

  return {
    rotate: () => runOnce(() => run(true)),
    resume: async () => ((await isUnfinished()) ? runOnce(() => run(false)) : undefined),
  }
}

async function switchToNewKey(deps: RotationDeps, masterKey: MasterKey): Promise<void> {
  const { config } = deps
  if (!hasKeyFile(config)) {
    if (masterKey.older.length > 0) return // the start with both keys has rotated
    throw new Failure(
      'invalid',
      `The master key is the one of ${config.masterKeyVariable}, so Reelgate cannot replace it. Put a new one (openssl rand -hex 32) before it there, separated by a comma or a line end, and restart the server.`,
    )
  }
  const next = parseMasterKey(randomBytes(32))
  replaceKeyFile(config.masterKeyFile, [next, masterKey])
  await switchTo(deps, masterKey, next)
}

/** From here on the new key wraps. The database says so before anything is wrapped with it. */
async function switchTo(deps: RotationDeps, masterKey: MasterKey, next: SingleMasterKey): Promise<void> {
  const endsAtS = deps.nowS() + SIGNATURES_LAST_S
  const formerSigningKeys = [
    ...LASTING_SIGNATURES.map(({ info, lengthBytes }) => ({ info, key: deriveKey(masterKey.bytes, info, lengthBytes), endsAtS })),
    ...masterKey.formerSigningKeys.filter((key) => key.endsAtS > deps.nowS()),
  ]
  const { id, bytes } = masterKey
  await deps.write(async (tx) => {
    await saveMasterKeyIds(tx, [next, { id, bytes }])
    await saveFormerSigningKeys(tx, { ...next, older: [], formerSigningKeys })
  })
  masterKey.formerSigningKeys = formerSigningKeys
  replaceMasterKey(masterKey, next)
  void deps.signals.send('key-ring-changed', undefined)
}

async function finish(deps: RotationDeps, masterKey: MasterKey): Promise<RotatedMasterKey> {
  const { config } = deps
  const masterKeyId = idOf(masterKey)
  let rewrapped = 0
  // Rows that were changed while they were wrapped again are left to the next pass; after the last one nothing was left.
  let pass = await rewrapAll(deps, masterKey)
  for (; pass.rewrapped > 0; pass = await rewrapAll(deps, masterKey)) rewrapped += pass.rewrapped
  await deps.write(async (tx) => {
    const isBoundToBoth = (await findMasterKeyIds(tx)).length > 1
    if (!isBoundToBoth) return // an earlier run got this far
    await saveMasterKeyIds(tx, [masterKey])
    await saveFormerSigningKeys(tx, masterKey)
    const event = { accountId: undefined, by: 'command-line', kind: 'master-key:rotated', subjects: [masterKeyId] } as const
    await recordAuditEvent(tx, { ...event, atS: deps.nowS() })
  })
  if (hasKeyFile(config)) replaceKeyFile(config.masterKeyFile, [masterKey])
  await deps.truncateWal() // the log has what the old key wrapped
  void deps.signals.send('key-ring-changed', undefined)
  return {
    ...{ masterKeyId, rewrapped, unreadable: pass.unreadable },
    phrase: hasKeyFile(config) ? phraseFromKey(masterKey).join(' ') : null,
    removeOldKeyFrom: hasKeyFile(config) ? null : config.masterKeyVariable,
  }
}

/** Takes 10 ms of the thread, and less of the database. */
const PAGE_SIZE = 500

async function rewrapAll(deps: RotationDeps, masterKey: MasterKey): Promise<{ rewrapped: number; unreadable: number }> {
  const counts = { rewrapped: 0, unreadable: 0 }
  for (const column of WRAPPED_COLUMNS) {
    const limit = column.pageSize ?? PAGE_SIZE
    const read = (after: WrappedRow | undefined) => listWrappedByOthers(deps.slowQueryDb, column, masterKey.id, { after, limit })
    for (let page = await read(undefined); page.length > 0; ) {
      deps.signal?.throwIfAborted()
      const following = page.length === limit ? read(page.at(-1)) : Promise.resolve([])
      following.catch(() => undefined) // thrown below, after the write
      const changed = page.flatMap((row) => rewrapRow(masterKey, column, row) ?? [])
      counts.unreadable += page.length - changed.length
      if (changed.length > 0) counts.rewrapped += await deps.write((tx) => replaceWrapped(tx, column, changed))
      page = await following
    }
  }
  return counts
}

/** Undefined for what no key of the ring opens: it was damaged before, and must not keep the old key in use for ever. */
function rewrapRow(master: MasterKey, column: WrappedColumn, row: WrappedRow): (WrappedRow & { next: Buffer }) | undefined {
  const purpose = column.purpose(row)
  try {
    const secret = column.open ? column.open(master, row, row.wrapped) : unwrap(master, purpose, row.wrapped)
    return { ...row, next: wrap(master, purpose, secret) }
  } catch {
    return undefined
  }
}

const RETRY_AFTER_MS = 10_000

/** In a server: finishes an interrupted rotation, and tries again while the database is unavailable. */
export async function resumeRotation(rotation: MasterKeyRotation, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const rotated = await rotation.resume()
      if (!rotated) return
      const { phrase: _, ...facts } = rotated
      log.info(facts, 'master key: rotated')
      if (facts.removeOldKeyFrom) log.warn({ location: facts.removeOldKeyFrom }, 'master key: an old key can be removed')
      return
    } catch (error) {
      if (signal.aborted) return
      log[logLevelFor(error, 'error')]({ err: error }, 'master key: rotation interrupted')
      await pause(RETRY_AFTER_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }
}
