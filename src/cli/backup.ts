import { existsSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { MediaRepair } from '../control/commands.ts'
import type { SegmentKey } from '../encode/damage-store.ts'
import { Failure } from '../errors.ts'
import { formatSize } from '../format-size.ts'
import { archiveEntries } from '../installation/backup/archive.ts'
import { type MadeBackup, type BackupOptions as MakeOptions, makeBackup } from '../installation/make-backup.ts'
import { checkBackup, DamagedBackup, type RestoredBackup, restoreBackup, restoreRowsOnly } from '../installation/restore.ts'
import type { SendCommand } from './media-check.ts'
import { openProgress } from './progress-view.ts'
import { promptForPhrase } from './recovery.ts'
import { parseResult } from './run-command.ts'

export type BackupOptions = {
  /** A folder, or the address of a bucket. */
  folder: string
  keep: number
  media?: true | undefined
  verify?: true | undefined
  json?: true | undefined
}

/** Adds a backup to a folder, and prints what it has. @throws Failure when the backup lacks a file, or cannot be made */
export async function backup(
  config: Config,
  { folder, keep, media, verify, json }: BackupOptions,
  send: SendCommand,
): Promise<void> {
  if (!folder.startsWith('s3:')) assertOutside(config, folder)
  const options = { folder, keep, media: media === true, verifyAll: verify === true }
  const made = await makeWithProgress(config, options, { isQuiet: json === true, send })
  await record(made, send)
  process.stdout.write(json ? `${JSON.stringify(formatAsJson(made, folder))}\n` : describeBackup(made, folder))
  warn(made)
  if (made.manifest.lostCount > 0) throw lostFiles(made)
}

/** What is below the data folder is lost with it, and a restore needs an empty one. @throws Failure `invalid` */
function assertOutside({ dataDir }: Config, folder: string): void {
  const [inside, outside] = [realPath(folder), realPath(dataDir)]
  if (inside !== outside && !inside.startsWith(`${outside}/`)) return
  throw new Failure(
    'invalid',
    `${folder} is in the data folder ${dataDir}, and would be lost with it. Name a folder on another disk.`,
  )
}

/** Without symbolic links, also of a path whose end does not exist yet. */
function realPath(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  return join(realPath(dirname(path)), basename(path))
}

function warn({ hasVerified, unusable }: MadeBackup): void {
  if (!hasVerified)
    process.stderr.write(
      'The master key could not be read here, so only segments were compared with what was published. Run this as the user of the server.\n',
    )
  for (const { why } of unusable) process.stderr.write(`${why}\n`)
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
    const made = await makeWithProgress(config, { folder, keep: 1 }, { isQuiet: false, send })
    const entries = readdirSync(folder).filter((name) => name === made.name || name === 'media')
    await pipeline(archiveEntries(folder, entries), process.stdout, { end: false }).catch((cause) => {
      throw new Failure('unavailable', 'The archive could not be written whole, so it is not a backup.', { cause })
    })
    await record(made, send)
    warn(made)
    if (made.manifest.lostCount > 0) throw lostFiles(made)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function makeWithProgress(
  config: Config,
  options: MakeOptions,
  { isQuiet, send }: { isQuiet: boolean; send: SendCommand },
): Promise<MadeBackup> {
  using run = openProgress(isQuiet)
  const { view, signal } = run
  return await makeBackup(config, options, {
    signal,
    progress: (step, part) => view.show(part, step),
    repair: (segments) => repairFirst(segments, send, signal),
  })
}

/** A segment takes seconds; a whole video that must be encoded again may take longer than a backup should wait. */
const MAX_REPAIR_MS = 10 * 60_000
const REPAIR_POLL_MS = 500

/** Has damaged segments encoded again, and waits until they are, if a server runs that does it. */
async function repairFirst(segments: readonly SegmentKey[], send: SendCommand, signal: AbortSignal): Promise<void> {
  const problem = 'its file is missing or damaged: found by a backup'
  const damaged = segments.map((segment) => ({ ...segment, problem }))
  if (damaged.length === 0) return
  let repair = parseResult(MediaRepair, await send('media repair', { damaged }))
  const startedMs = performance.now()
  while (repair.isRepairing && repair.segments.length > 0 && performance.now() - startedMs < MAX_REPAIR_MS) {
    await pause(REPAIR_POLL_MS, undefined, { signal })
    repair = parseResult(MediaRepair, await send('media repairing', { segments: repair.segments }))
  }
}

/** So that doctor and alerts know its age. The backup is as good without that. */
async function record({ name, manifest }: MadeBackup, send: SendCommand): Promise<void> {
  const atS = Math.floor(Date.parse(manifest.time) / 1000)
  await sendNote('backup made', { name, atS, isGood: manifest.lostCount === 0 }, send)
}

async function sendNote(command: 'backup made' | 'backup damaged', args: unknown, send: SendCommand): Promise<void> {
  await send(command, args).catch((error) => {
    if (!(error instanceof Failure)) throw error
    process.stderr.write(`The installation could not record the result: ${error.message}\n`)
  })
}

export type CheckBackupOptions = { folder: string; scratch: string; pace: number; json?: true | undefined }

/** Restores the newest backup of a folder into a scratch folder, to prove that it can be. @throws Failure when it lacks a file */
export async function checkNewestBackup(config: Config, { folder, scratch, pace, json }: CheckBackupOptions, send: SendCommand) {
  using run = openProgress(json === true)
  const { view, signal } = run
  const listener = { signal, progress: (step: string, part: number) => view.show(part, step) }
  try {
    const checked = await checkBackup(config, { folder, scratch, bytesPerS: pace * 1e6 }, listener)
    view.clear()
    const { name, manifest, lost } = checked
    for (const { why } of checked.passedOver) process.stderr.write(`${why}\n`)
    if (json)
      process.stdout.write(
        `${JSON.stringify({ name, files: manifest.files.count, lost: lost.slice(0, MAX_NAMED), lostCount: lost.length })}\n`,
      )
    else if (lost.length === 0)
      process.stdout.write(
        `${name} can be restored: ${manifest.videos} videos, ${manifest.files.count} files, ${formatSize(manifest.files.sizeBytes)}, ${manifest.filesIn ? `all of them in the bucket ${manifest.filesIn.bucket}` : 'all as they were published'}.\n`,
      )
    if (lost.length === 0) return
    throw new DamagedBackup(
      name,
      `The backup ${name} lacks ${nameLost(lost)}. Make another one, and check the disk of ${folder}.`,
    )
  } catch (error) {
    if (error instanceof DamagedBackup) await sendNote('backup damaged', { name: error.backup }, send)
    throw error
  }
}

const MAX_NAMED = 20

/** As many names as help. */
function nameLost(lost: readonly string[]): string {
  const more = lost.length - 1
  return `${lost.length} ${lost.length === 1 ? 'file' : 'files'}: ${lost[0]}${more > 0 ? ` and ${more} more` : ''}`
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
${manifest.filesIn ? `The files stay in the bucket ${manifest.filesIn.bucket}, and are not in the backup; --media copies them.\n` : ''}It opens only with the master key ${masterKey.slice(0, 8)}…, which is not in it. Restore it with: reelgate restore ${quote(folder)}
`
}

/** For a shell: the address of a bucket has an & in it. */
function quote(place: string): string {
  return place.includes('&') ? `'${place}'` : place
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
  strict?: true | undefined
  json?: true | undefined
}

/** Restores a backup into the empty data folder and database that the variables name, or the rows alone into an installation. */
export async function restore(config: Config, folder: string, { at, phrase, rows, strict, json }: RestoreOptions): Promise<void> {
  const words = phrase ? await promptForPhrase() : undefined
  using run = openProgress(json === true)
  const { view, signal } = run
  const restored = await (rows ? restoreRowsOnly : restoreBackup)(
    config,
    { folder, name: at, phrase: words, strict },
    { signal, progress: (step, part) => view.show(part, step) },
  )
  view.clear()
  process.stdout.write(json ? `${JSON.stringify(restoredAsJson(restored))}\n` : describeRestored(config, restored, rows))
  for (const { why } of restored.passedOver) process.stderr.write(`${why}\n`)
  if (restored.lost.length > 0) process.stderr.write(lostInRestore(restored.lost))
}

function restoredAsJson({ name, manifest: { videos, files, time }, lost }: RestoredBackup) {
  const counts = { files: files.count, sizeBytes: files.sizeBytes, lost: lost.slice(0, MAX_NAMED), lostCount: lost.length }
  return { name, time, videos, ...counts }
}

function describeRestored(
  { dataDir }: Config,
  { name, manifest: { videos, files, filesIn } }: RestoredBackup,
  rows: true | undefined,
) {
  if (rows)
    return `Restored the rows of ${name}: ${videos} videos. To undo an upgrade, install the version before. Then start the server, and check the files: reelgate doctor --media.\n`
  return `Restored ${name} to ${dataDir}: ${videos} videos, ${files.count} files, ${filesIn ? `which are in the bucket ${filesIn.bucket}` : 'each verified by the checksum of the backup'}.
Start the server. Webhooks wait until you run reelgate webhook resume, so that two installations do not call the same site.
`
}

function lostInRestore(lost: readonly string[]): string {
  const more = lost.length - MAX_NAMED
  return `${lost.length === 1 ? 'This file is' : `These ${lost.length} files are`} missing or damaged in the backup:
${lost
  .slice(0, MAX_NAMED)
  .map((name) => `  ${name}\n`)
  .join(
    '',
  )}${more > 0 ? `  and ${more} more\n` : ''}Everything else is restored. The server encodes lost segments again from their sources, and makes lost MP4s again.
`
}
