import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { Failure } from '../errors.ts'
import { lockDataFolder } from '../installation/lock.ts'
import { type MovedInstallation, moveInstallation } from '../installation/migrate.ts'
import { openProgress } from './progress-view.ts'

type MigrateOptions = { to?: string; json?: true }

/**
 * Moves the installation in the data folder to a PostgreSQL database, and prints what was moved.
 * @throws Failure with what to do; the same command resumes
 */
export async function migrate(config: Config, { to, json }: MigrateOptions): Promise<void> {
  const url = to ?? config.databaseUrl
  if (url === undefined)
    throw new Failure(
      'invalid',
      'Expected a destination: --to postgres://USER:PASSWORD@HOST/NAME, or the same in REELGATE_DATABASE_URL.',
    )
  const lock = lockForMove(config)
  using progress = openProgress(json === true)
  const { view, signal } = progress
  try {
    const moved = await moveInstallation(config, url, {
      signal,
      started: (how) => view.say(START_MESSAGES[how]),
      progress: (step, rows, of) => view.show(rows / Math.max(1, of), `${step}, ${formatCount(rows)} of ${formatCount(of)} rows`),
    })
    view.clear()
    process.stdout.write(json ? `${JSON.stringify(moved)}\n` : describeMove(config, moved))
  } finally {
    lock.release()
  }
}

const START_MESSAGES = {
  new: '',
  resumed: 'Resuming the interrupted move.',
  restarted: 'The installation has changed since the interrupted move: starting over.',
}

function lockForMove(config: Config) {
  const lock = lockDataFolder(config)
  if (lock) return lock
  throw new Failure('conflict', `A server runs on ${config.dataDir}. Stop it, then try again.`)
}

function describeMove({ dataDir }: Config, { tables, before }: MovedInstallation): string {
  const { database, mark } = dataPaths(dataDir)
  const filled = tables.filter(({ rows }) => rows > 0)
  const width = Math.max(...filled.map(({ table }) => table.length))
  const lines = filled.map(
    ({ table, rows, sha256 }) => `  ${table.padEnd(width)} ${formatCount(rows).padStart(11)}  ${sha256.slice(0, 16)}\n`,
  )
  const what = before
    ? 'The installation has been moved there already, whole.\n'
    : `Moved, and equal on both sides, by count and by SHA-256 of all values:\n\n${lines.join('')}`
  return `${what}
Set REELGATE_DATABASE_URL to the new database and start. A start without it is refused from now on. ${database}
is as it was: keep it as a backup of this day, or remove it; the other files of the folder are still needed. Until the new
database has served, nothing is lost by going back: remove ${mark} and start without REELGATE_DATABASE_URL.
`
}

function formatCount(count: number): string {
  return count.toLocaleString('en').replaceAll(',', ' ')
}
