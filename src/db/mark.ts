import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { Failure } from '../errors.ts'
import type { DatabasePlace } from './database.ts'

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
export async function refuseOlderDatabase(place: DatabasePlace, markFile: string): Promise<void> {
  const noted = existsSync(markFile) ? Number(readFileSync(markFile, 'utf8')) : 0
  if (noted === 0 || noted <= (await markOf(place))) return
  throw new Failure(
    'unavailable',
    `The database ${place.name} is older than its data folder: ${place.olderBecause}. Put back what belongs together; to lose what came after this database, remove ${markFile} and start again.`,
  )
}

async function markOf(place: DatabasePlace): Promise<number> {
  try {
    return Number((await place.peekSetting(DATABASE_MARK)) ?? 0)
  } catch {
    return Number.POSITIVE_INFINITY // damaged, or out of reach: whoever opens it says so
  }
}
