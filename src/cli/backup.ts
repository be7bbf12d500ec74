import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { type Config, dataPaths } from '../config.ts'
import { Failure } from '../errors.ts'
import { formatSize } from '../format-size.ts'
import { type MadeBackup, makeBackup } from '../installation/backup/backup.ts'
import { restoreBackup, restoreRowsOnly } from '../installation/backup/restore.ts'
import type { SendCommand } from './media-check.ts'
import { listenForInterruption } from './on-interrupt.ts'
import { openProgressView, SILENT_PROGRESS_VIEW } from './progress-view.ts'
import { promptForPhrase } from './recovery.ts'

/** Adds a backup to a folder, and prints what it has. */
export async function backup(
  config: Config,
  { folder, keep, json }: { folder: string; keep: number; json?: true | undefined },
  send: SendCommand,
): Promise<void> {
  const made = await makeWithProgress(config, { folder, keep, isQuiet: json === true })
  await record(made, send)
  process.stdout.write(json ? `${JSON.stringify(formatAsJson(made, folder))}\n` : describeBackup(made, folder))
  if (made.manifest.lostCount > 0) throw lostFiles(made)
}

/**
 * Writes a backup to stdout as a tar archive: its folder, to be unpacked with `tar -x`. It is first made in the data folder, of hard links,
 * so that a deletion in the meantime does not matter.
 */
export async function streamBackup(config: Config, send: SendCommand): Promise<void> {
  if (process.stdout.isTTY)
    throw new Failure(
      'invalid',
      'A backup is not for a terminal. Send it to a file or a program: reelgate backup --stream > backup.tar',
    )
  const { backupStream: folder } = dataPaths(config.dataDir)
  rmSync(folder, { recursive: true, force: true }) // of a run that was killed
  try {
    const made = await makeWithProgress(config, { folder, keep: 1, isQuiet: false })
    const entries = readdirSync(folder).filter((name) => name === made.name || name === 'media')
    const tar = spawn('tar', ['--create', '--file=-', '--directory', folder, '--', ...entries], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const [code] = await once(tar, 'exit')
    if (code !== 0) throw new Failure('unavailable', 'The archive could not be written whole, so it is not a backup.')
    await record(made, send)
    if (made.manifest.lostCount > 0) throw lostFiles(made)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function makeWithProgress(
  config: Config,
  { folder, keep, isQuiet }: { folder: string; keep: number; isQuiet: boolean },
): Promise<MadeBackup> {
  const view = isQuiet ? SILENT_PROGRESS_VIEW : openProgressView(process.stderr)
  using interruption = listenForInterruption()
  try {
    return await makeBackup(
      config,
      { folder, keep },
      { signal: interruption.signal, progress: (step, part) => view.show(part, step) },
    )
  } finally {
    view.clear()
  }
}

/** So that doctor and alerts know its age. The backup is good without that. */
async function record({ name, manifest }: MadeBackup, send: SendCommand): Promise<void> {
  const atS = Math.floor(Date.parse(manifest.time) / 1000)
  await send('backup made', { name, atS }).catch((error) => {
    if (!(error instanceof Failure)) throw error
    process.stderr.write(`The backup is finished, but the installation could not record it: ${error.message}\n`)
  })
}

function formatAsJson({ name, manifest, copiedBytes, linkedBytes }: MadeBackup, folder: string) {
  const { time, videos, files, masterKey, lost, lostCount } = manifest
  return {
    folder,
    name,
    time,
    videos,
    files: files.count,
    sizeBytes: files.sizeBytes,
    copiedBytes,
    linkedBytes,
    masterKey,
    lost,
    lostCount,
  }
}

function describeBackup({ name, manifest, copiedBytes, linkedBytes }: MadeBackup, folder: string): string {
  const { videos, files, rows, masterKey } = manifest
  const linked = linkedBytes > 0 ? `, ${formatSize(linkedBytes)} as hard links on the same disk` : ''
  return `${name}: ${videos} videos, ${files.count} files, ${formatSize(files.sizeBytes + rows.sizeBytes)}
Added ${formatSize(copiedBytes + rows.sizeBytes)}${linked}, in ${folder}
It opens only with the master key ${masterKey.slice(0, 8)}…, which is not in it. Restore it with: reelgate restore ${folder}
`
}

function lostFiles({ name, manifest: { lost, lostCount } }: MadeBackup): Failure {
  return new Failure(
    'unavailable',
    `The backup ${name} is finished, but ${lostCount} files of the installation are missing or damaged, such as ${lost[0]}. Run reelgate doctor --media, then back up again.`,
  )
}

export type RestoreOptions = {
  at?: string | undefined
  phrase?: true | undefined
  rows?: true | undefined
  json?: true | undefined
}

/** Restores a backup into the empty data folder and database that the variables name, or the rows alone into an installation. */
export async function restore(config: Config, folder: string, { at, phrase, rows, json }: RestoreOptions): Promise<void> {
  const view = json ? SILENT_PROGRESS_VIEW : openProgressView(process.stderr)
  const words = phrase ? await promptForPhrase() : undefined
  using interruption = listenForInterruption()
  try {
    const { name, manifest } = await (rows ? restoreRowsOnly : restoreBackup)(
      config,
      { folder, name: at, phrase: words },
      { signal: interruption.signal, progress: (step, part) => view.show(part, step) },
    )
    view.clear()
    const { videos, files, time } = manifest
    process.stdout.write(
      json
        ? `${JSON.stringify({ name, time, videos, files: files.count, sizeBytes: files.sizeBytes })}\n`
        : rows
          ? `Restored the rows of ${name}: ${videos} videos. To undo an upgrade, install the version before. Then start the server, and check the files: reelgate doctor --media.\n`
          : `Restored ${name} to ${config.dataDir}: ${videos} videos, ${files.count} files, each with the checksum of the backup.
Start the server. Webhooks wait until you run reelgate hook resume, so that two installations do not call the same site.
`,
    )
  } finally {
    view.clear()
  }
}
