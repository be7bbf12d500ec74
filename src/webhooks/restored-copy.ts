import { existsSync } from 'node:fs'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Database, Db } from '../db/database.ts'
import { findSetting, removeSetting, saveSetting } from '../db/setting.ts'
import { PROGRAM_NAME } from '../program-name.ts'
import { ensureDistinctTimes, fileIdentity, type IdentifyingFile } from '../storage/identity.ts'

// A restored copy of an installation must not call the live site's webhooks. A restore says so in the database. Any other copy is
// recognized by a file of the data folder: the database stores the identity of that file, and in a copy the file has a different
// identity.

/** The setting that a restore leaves. */
export const RESTORED_COPY = 'restored-copy'

const HOW_TO_RESUME = `If this one is the live site now, run: ${PROGRAM_NAME} webhook resume`
const WHY_PAUSED = {
  restored: `This installation was restored from a backup, so its webhooks wait: the live site’s are not called twice. ${HOW_TO_RESUME}`,
  copied: `This data folder is a copy of another one, so its webhooks wait: the live site’s are not called twice. A copy that was made while the server ran may lack rows or files: check it with ${PROGRAM_NAME} doctor --media, and make backups with ${PROGRAM_NAME} backup. ${HOW_TO_RESUME}`,
}

/**
 * Why this installation is taken for a copy of another one; undefined when it is not.
 * @param readSetting reads a setting from the database
 * @param files the first one with both a stored and an actual identity decides
 */
export async function whyCopy(readSetting: (setting: string) => Promise<string | undefined>, files: readonly IdentifyingFile[]) {
  if ((await readSetting(RESTORED_COPY)) !== undefined) return WHY_PAUSED.restored
  return (await hasOtherIdentity(readSetting, files)) ? WHY_PAUSED.copied : undefined
}

async function hasOtherIdentity(
  readSetting: (setting: string) => Promise<string | undefined>,
  files: readonly IdentifyingFile[],
): Promise<boolean> {
  for (const { setting, path } of files) {
    const original = await readSetting(setting)
    const identity = existsSync(path) ? fileIdentity(path) : undefined
    if (original !== undefined && identity !== undefined) return original !== identity
  }
  return false
}

export type RestoredCopy = {
  isPaused(): boolean
  /** Why, for the operator. */
  why: string | undefined
  /** Looks whether another server has made this installation the original. */
  look(): Promise<void>
  /** Makes this installation the original. False: it already was. */
  resume(): Promise<boolean>
}

/** Finds out whether this is a copy. A new installation is recorded as the original. */
export async function openRestoredCopy(
  { db, write }: Pick<Database, 'db' | 'write'>,
  files: readonly IdentifyingFile[],
  nowS: () => number,
): Promise<RestoredCopy> {
  const [identifying] = files
  const readSetting = (name: string) => findSetting(db, name)
  for (const file of files) if (existsSync(file.path)) ensureDistinctTimes(file.path)
  const why = await whyCopy(readSetting, files)
  let isPaused = why !== undefined

  async function recordAsOriginal(alsoInTransaction: (tx: Db) => Promise<void>): Promise<void> {
    const value = identifying && fileIdentity(identifying.path)
    await write(async (tx) => {
      await removeSetting(tx, RESTORED_COPY)
      if (identifying && value !== undefined) await saveSetting(tx, identifying.setting, value)
      await alsoInTransaction(tx)
    })
  }

  if (!isPaused && identifying && (await readSetting(identifying.setting)) === undefined)
    await recordAsOriginal(async () => undefined)
  return {
    isPaused: () => isPaused,
    why,
    async look() {
      if (isPaused) isPaused = (await whyCopy(readSetting, files)) !== undefined
    },
    async resume() {
      if (!isPaused) return false
      const event = {
        atS: nowS(),
        accountId: undefined,
        by: 'command-line',
        kind: 'hook:resumed',
        subjects: ['webhooks'],
      } as const
      await recordAsOriginal((tx) => recordAuditEvent(tx, event))
      isPaused = false
      return true
    },
  }
}
