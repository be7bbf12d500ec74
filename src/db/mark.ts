import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Failure } from '../errors.ts'
import { peekSetting } from './sqlite.ts'

/** The setting that a server moves forward as time passes (playback/clock.ts); how far it came is noted beside the database. */
export const DATABASE_MARK = 'playback-clock'

/** Notes in `file` how far the database has come. The caller has committed it: the note is never ahead of the database. */
export async function noteMark(file: string, mark: number): Promise<void> {
  await writeFile(file, `${mark}\n`, { mode: 0o600 })
}

/**
 * A database without its log, or an old copy in its place, would lose films in silence; and the sweep would take their files.
 * @throws Failure `unavailable` when the note is ahead of the database
 */
export function refuseOlderDatabase(paths: { database: string; mark: string }): void {
  const noted = existsSync(paths.mark) ? Number(readFileSync(paths.mark, 'utf8')) : 0
  if (noted === 0 || noted <= markOf(paths.database)) return
  throw new Failure(
    'unavailable',
    `The database ${paths.database} is older than its data folder: its log reelgate.db-wal is missing, or it is an old copy. Put back what belongs together; to lose what came after this database, remove ${paths.mark} and start again.`,
  )
}

function markOf(database: string): number {
  try {
    return Number(peekSetting(database, DATABASE_MARK) ?? 0)
  } catch {
    return Number.POSITIVE_INFINITY // damaged: whoever opens it says so
  }
}
