import { existsSync } from 'node:fs'
import type { Static } from 'typebox'
import { describeDamagedFiles } from '../assets/damaged-file.ts'
import { type Batch, type Confirmed, checkMedia as checkAllMedia } from '../assets/media-check.ts'
import type { Config } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { type CommandName, MediaBatch, MediaCheckResult, MediaCheckStart, MovedNames } from '../control/commands.ts'
import { Failure } from '../errors.ts'
import { formatSize } from '../format-size.ts'
import { type Finding, failure, ok, warning } from '../health-check.ts'
import { peekSetting } from '../installation/database.ts'
import { placesVersion } from '../installation/located-files.ts'
import { findMasterKey } from '../installation/master-key.ts'
import { findStoredFiles } from '../installation/open.ts'
import { openProgress } from './progress-view.ts'
import { parseResult } from './run-command.ts'

/** Has a command done by the running server, or by this process when there is none. */
export type SendCommand = (name: CommandName, args: unknown) => Promise<unknown>

export type MediaOptions = { json?: true; fromStart?: true; pace: number }

/** What was found; `damaged` has the segments, which are encoded again. */
export type MediaFinding = Finding & Confirmed

/** Reads every file of a video and compares it with its row. Where a server runs, it gives the rows. */
export async function checkMedia(config: Config, options: MediaOptions, ask: SendCommand): Promise<MediaFinding> {
  try {
    return await checkAll(config, options, ask)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { ...failure(error.message), damaged: [], damagedFiles: [] }
  }
}

async function checkAll(config: Config, options: MediaOptions, ask: SendCommand): Promise<MediaFinding> {
  using run = openProgress(options.json === true)
  const { view, signal } = run
  const confirmed: Confirmed = { damaged: [], damagedFiles: [] }
  if (!config.bucket && !existsSync(dataPaths(config.dataDir).segments))
    return { ...ok('There is none yet: the first start creates its folder.'), ...confirmed }
  const begun = parseResult(MediaCheckStart, await ask('media begin', { fromStart: options.fromStart === true }))
  if (begun.after) view.say('Resuming the interrupted check; --from-start checks everything.')
  const next = async (after: Batch['last']) => parseBatch(parseResult(MediaBatch, await ask('media next', { after })))
  const checkOptions = { masterKey: findMasterKey(config), after: begun.after, bytesPerS: options.pace * 1e6, signal }
  const readSetting = (name: string) => peekSetting(config, name)
  const findMoved = async (names: readonly string[]) => new Set(parseResult(MovedNames, await ask('media moved', { names })))
  const placed = await placesVersion(readSetting)
  const { files } = await findStoredFiles(config, { readSetting, findMoved })
  let [segmentCount, fileCount, unverifiedCount, sizeBytes] = [0, 0, 0, 0]
  try {
    for await (const batch of checkAllMedia(files, next, checkOptions)) {
      if ((await placesVersion(readSetting)) !== placed)
        throw new Failure(
          'unavailable',
          'The files began to move to another place meanwhile, or have arrived. Run the same command again: it resumes.',
        )
      const { last, damaged, damagedFiles, intactFiles } = batch
      const saved = parseResult(MediaCheckResult, await ask('media checked', { last, damaged, damagedFiles, intactFiles }))
      confirmed.damaged.push(...saved.damaged)
      confirmed.damagedFiles.push(...saved.damagedFiles)
      segmentCount += batch.segmentCount
      fileCount += batch.fileCount
      unverifiedCount += batch.unverifiedCount
      sizeBytes += batch.sizeBytes
      view.show(sizeBytes / Math.max(1, begun.sizeBytes), `files, ${formatSize(sizeBytes)} of ${formatSize(begun.sizeBytes)}`)
    }
    await ask('media checked', { damaged: [], damagedFiles: [], intactFiles: [] })
  } catch (error) {
    if (!signal.aborted) throw error
    const read = `Interrupted after ${formatSize(sizeBytes)}${describeDamage(confirmed)}`
    return { ...failure(`${read}. The same command resumes there.`), ...confirmed }
  }
  const resumed = begun.after ? ', from where the last check was interrupted' : ''
  const checked = `${segmentCount} segments, ${fileCount} other files, ${formatSize(sizeBytes)}${resumed}`
  if (confirmed.damaged.length + confirmed.damagedFiles.length > 0)
    return { ...failure(`${checked}${describeDamage(confirmed)}. Check the disk.`), ...confirmed }
  if (unverifiedCount > 0)
    return {
      ...warning(`${checked}. ${unverifiedCount} of the other files were only read: run this where the master key can be read.`),
      ...confirmed,
    }
  return { ...ok(`${checked}: all are as they were published.`), ...confirmed }
}

const MAX_LISTED = 5

function describeDamage({ damaged, damagedFiles }: Confirmed): string {
  const files = damagedFiles.length === 0 ? '' : `. ${describeDamagedFiles(damagedFiles)}`.replace(/\.$/, '')
  if (damaged.length === 0) return files
  const named = damaged
    .slice(0, MAX_LISTED)
    .map(
      ({ videoId, generation, renditionId, number, problem }) => `${videoId}/${generation}/${renditionId}/${number} (${problem})`,
    )
  const more = damaged.length > MAX_LISTED ? ` and ${damaged.length - MAX_LISTED} more` : ''
  const repair = 'They are encoded again now, or from the next start on if no server runs: see "video: repaired" in its log'
  return `; ${damaged.length} damaged: ${named.join(', ')}${more}. ${repair}${files}`
}

function parseBatch({ segments, files, last }: Static<typeof MediaBatch>): Batch {
  const bytes = (base64: string | null) => (base64 === null ? null : Buffer.from(base64, 'base64'))
  return {
    segments: segments.map((segment) => ({ ...segment, sha256: Buffer.from(segment.sha256, 'hex') })),
    files: files.map(({ wrappedKey, wrappedContentKey, iv, macs, ...file }) => ({
      ...{ ...file, sha256: null },
      ...{ wrappedKey: bytes(wrappedKey), wrappedContentKey: bytes(wrappedContentKey), iv: bytes(iv), macs: bytes(macs) },
    })),
    last,
  }
}
