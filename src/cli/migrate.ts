import { type Config, dataPaths } from '../config.ts'
import { Failure } from '../errors.ts'
import { lockDataFolder, moveInstallation } from '../installation.ts'
import { openProgressView, SILENT_VIEW } from './progress-view.ts'

type MigrateOptions = { to?: string; json?: true }

/**
 * Moves the installation in the data folder to a PostgreSQL database, and prints what was moved.
 * @throws Failure with what to do; the same command goes on where it was
 */
export async function migrate(config: Config, { to, json }: MigrateOptions): Promise<void> {
  const url = to ?? config.databaseUrl
  if (url === undefined)
    throw new Failure('invalid', 'Say where to: --to postgres://USER:PASSWORD@HOST/NAME, or the same in REELGATE_DATABASE_URL.')
  const view = json ? SILENT_VIEW : openProgressView(process.stderr)
  const lock = lockToMove(config)
  try {
    const tables = await moveInstallation(config, url, (step, rows, of) =>
      view.show(rows / Math.max(1, of), `${step}, ${inWords(rows)} of ${inWords(of)} rows`),
    )
    view.clear()
    process.stdout.write(json ? `${JSON.stringify({ tables })}\n` : movedInWords(config, tables))
  } finally {
    view.clear()
    lock.release()
  }
}

function lockToMove(config: Config) {
  const lock = lockDataFolder(config)
  if (lock) return lock
  throw new Failure('conflict', `A server runs on ${config.dataDir}. Stop it, then try again.`)
}

function movedInWords({ dataDir }: Config, tables: Awaited<ReturnType<typeof moveInstallation>>): string {
  const filled = tables.filter(({ rows }) => rows > 0)
  const width = Math.max(...filled.map(({ table }) => table.length))
  const lines = filled.map(
    ({ table, rows, sha256 }) => `  ${table.padEnd(width)} ${inWords(rows).padStart(11)}  ${sha256.slice(0, 16)}`,
  )
  return `Moved, and equal on both sides, by count and by SHA-256 of all values:

${lines.join('\n')}

Set REELGATE_DATABASE_URL to the new database and start. ${dataPaths(dataDir).database} is as it was: keep it as a backup
of this day, or remove it; the other files of the folder are still needed.
`
}

function inWords(count: number): string {
  return count.toLocaleString('en').replaceAll(',', ' ')
}
