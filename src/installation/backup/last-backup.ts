import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { recordAuditEvent } from '../../audit/audit-log.ts'
import type { Database } from '../../db/database.ts'
import { findSetting, removeSetting, saveSetting } from '../../db/setting.ts'

/** The setting that says which backup was made last. */
export const LAST_BACKUP = 'last-backup'

const LastBackup = Type.Object({ name: Type.String(), /** Wall clock. */ atS: Type.Number() })
type LastBackup = { name: string; atS: number }

/** @param setting the value of `LAST_BACKUP` @returns undefined when there is no backup yet */
export function parseLastBackup(setting: string | undefined): LastBackup | undefined {
  if (setting === undefined) return undefined
  const value: unknown = JSON.parse(setting)
  return Value.Check(LastBackup, value) ? value : undefined
}

/** The last good backup of this installation, by the time of its rows. */
export async function findLastBackup({ db }: Pick<Database, 'db'>): Promise<LastBackup | undefined> {
  return parseLastBackup(await findSetting(db, LAST_BACKUP))
}

/** @param isGood whether it has every file as it was published: only then it counts as the last one */
export async function recordBackup(
  { write, nowS }: Pick<Database, 'write'> & { nowS: () => number },
  { name, atS }: LastBackup,
  isGood: boolean,
): Promise<void> {
  const value = JSON.stringify({ name, atS })
  await write(async (tx) => {
    if (isGood) await saveSetting(tx, LAST_BACKUP, value)
    await recordAuditEvent(tx, { atS: nowS(), accountId: undefined, by: 'command-line', kind: 'backup:made', subjects: [name] })
  })
}

/** A backup was found damaged: it no longer counts as the last one. */
export async function forgetBackup({ write }: Pick<Database, 'write'>, name: string): Promise<void> {
  await write(async (tx) => {
    const last = await findLastBackup({ db: tx })
    if (last?.name === name) await removeSetting(tx, LAST_BACKUP)
  })
}
