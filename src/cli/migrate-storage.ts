import { setTimeout as pause } from 'node:timers/promises'
import type { Static } from 'typebox'
import type { Config } from '../config/config.ts'
import { dataPaths, MEDIA_FOLDERS } from '../config/data-paths.ts'
import { StorageMove } from '../control/server-commands.ts'
import { Failure } from '../errors.ts'
import { formatSize } from '../format-size.ts'
import { DATA_FOLDER } from '../installation/located-files.ts'
import { openProgress } from './progress-view.ts'
import { type JsonOption, parseResult, runOnServer } from './run-command.ts'

const ASK_EVERY_MS = 1_000

type Move = Static<typeof StorageMove>

/**
 * Has the running server move all files to another place, and shows how far it is, until it has. The server goes on when this ends.
 * @throws Failure with what to do
 */
export async function migrateStorage(config: Config, to: string, { json }: JsonOption): Promise<void> {
  using progress = openProgress(json === true)
  const { view, signal } = progress
  let move = parseResult(StorageMove, await runOnServer(config, 'storage move', { to }))
  while (move.state === 'moving' && !signal.aborted) {
    view.show(Math.min(1, move.movedBytes / Math.max(1, move.totalBytes)), describeProgress(move))
    await pause(ASK_EVERY_MS, undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) move = parseResult(StorageMove, await runOnServer(config, 'storage status', {}))
  }
  view.clear()
  if (json) process.stdout.write(`${JSON.stringify(move)}\n`)
  else process.stdout.write(describeMove(config, move, to))
  if (move.state !== 'moving' && move.damagedCount > 0) throw new Failure('conflict', 'Not all files could be moved: see above.')
}

/** Its first words change when it begins to wait: outside a terminal only a new step is printed. */
function describeProgress({ movedBytes, totalBytes, waitsFor }: Move): string {
  const sizes = totalBytes === 0 ? '' : `, ${formatSize(movedBytes)} of ${formatSize(totalBytes)}`
  return waitsFor === '' ? `files${sizes}` : `files wait${sizes}: ${waitsFor}`
}

function describeMove(
  config: Config,
  { state, to, from, files, damaged, damagedCount, unusedFromS }: Move,
  named: string,
): string {
  if (state === 'moving') return 'The server continues. The same command shows how far it is.\n'
  if (state === 'none') return `All files are in ${to} already.\n`
  const more = damagedCount > damaged.length ? `\n  and ${damagedCount - damaged.length} more` : ''
  const lost =
    damagedCount === 0
      ? ''
      : `\nNot copied, since ${from} does not have them as they were published (${damagedCount}):\n${damaged.map((name) => `  ${name}\n`).join('')}${more}`
  return `All files are in ${to}: ${files} were copied and compared with what was published.
${lost}
${describeRemoval(config, from, unusedFromS)}
${NEXT_START[named === DATA_FOLDER ? 'folder' : 'bucket']}
`
}

const NEXT_START = {
  folder: 'Unset REELGATE_STORAGE_URL for the next start.',
  bucket: 'Keep its address in REELGATE_STORAGE_URL for every start, and unset REELGATE_STORAGE_OTHER_URL.',
}

function describeRemoval({ dataDir }: Config, from: string, unusedFromS: number): string {
  const paths = dataPaths(dataDir)
  if (unusedFromS === 0) return ''
  const fromFolder = from.startsWith('the data folder')
  const when = unusedFromS * 1000 > Date.now() ? `From ${new Date(unusedFromS * 1000).toISOString()} on nothing` : 'Nothing'
  const how = fromFolder
    ? `rm -r ${MEDIA_FOLDERS.map((folder) => `'${paths[folder]}'`).join(' ')}`
    : 'remove all objects below that prefix, and the unfinished uploads'
  return `${when} uses the old files in ${from}. Make a backup, then free their space: ${how}`
}
