import { existsSync } from 'node:fs'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Database, Db } from '../db/database.ts'
import { ensureDistinctTimes, fileIdentity, type IdentifyingFile } from '../storage/identity.ts'

// A restored copy of an installation must not call the live site's webhooks. Which one is the original is known by a file of the data
// folder: the database has its identity, and a copy of both has another file.

export const WHY_PAUSED =
  'This is a copy of an installation, so its webhooks wait: the live site’s are not called twice. If this one is the live site now, run: npx reelgate hook resume'

/**
 * @param noted a setting, as the database has it
 * @param files the first that both sides know something of counts
 */
export async function isRestoredCopy(
  noted: (setting: string) => Promise<string | undefined>,
  files: readonly IdentifyingFile[],
): Promise<boolean> {
  for (const { setting, path } of files) {
    const original = await noted(setting)
    const identity = existsSync(path) ? fileIdentity(path) : undefined
    if (original !== undefined && identity !== undefined) return original !== identity
  }
  return false
}

export type RestoredCopy = {
  /** Whether deliveries wait. */
  isPaused(): boolean
  /** Makes this the original. False: it was. */
  resume(): Promise<boolean>
}

/** Looks whether this is a copy. An original that is not noted yet is noted. */
export async function openRestoredCopy(
  { db, write }: Pick<Database, 'db' | 'write'>,
  files: readonly IdentifyingFile[],
  nowS: () => number,
): Promise<RestoredCopy> {
  const [{ setting, path } = { setting: 'database-file', path: '' }] = files
  const noted = (name: string) => settingOf(db, name)
  for (const file of files) if (existsSync(file.path)) ensureDistinctTimes(file.path)
  let isPaused = await isRestoredCopy(noted, files)

  async function note(also: (tx: Db) => Promise<void>): Promise<void> {
    const value = fileIdentity(path)
    if (value === undefined) return
    await write(async (tx) => {
      await tx
        .insertInto('setting')
        .values({ name: setting, value })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
        .execute()
      await also(tx)
    })
  }

  if (!isPaused && (await noted(setting)) === undefined) await note(async () => undefined)
  return {
    isPaused: () => isPaused,
    async resume() {
      if (!isPaused) return false
      const act = { atS: nowS(), accountId: undefined, by: 'command-line', kind: 'hook:resumed', subjects: ['webhooks'] } as const
      await note((tx) => recordAuditEvent(tx, act))
      isPaused = false
      return true
    },
  }
}

async function settingOf(db: Db, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirst()
  return row?.value
}
