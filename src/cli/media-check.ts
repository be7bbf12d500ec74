import { existsSync } from 'node:fs'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { type Config, dataPaths } from '../config.ts'
import { type CommandName, MediaBatch, MediaCheckResult, MediaCheckStart } from '../control/commands.ts'
import { type Batch, checkSegments } from '../encode/media-check.ts'
import type { Damage } from '../encode/repair.ts'
import { Failure } from '../errors.ts'
import { formatSize } from '../format-size.ts'
import { type Finding, failure, ok } from '../health-check.ts'
import { listenForInterruption } from './on-interrupt.ts'
import { openProgressView, type ProgressView, SILENT_PROGRESS_VIEW } from './progress-view.ts'

/** Has a command done by the running server, or by this process when there is none. */
export type SendCommand = (name: CommandName, args: unknown) => Promise<unknown>

export type MediaOptions = { json?: true; fromStart?: true; pace: number }

/** What was found; `damaged` has what is encoded again. */
type MediaFinding = Finding & { damaged: Damage[] }

/** Reads the file of every segment and compares it with its row. Where a server runs, it gives the rows. */
export async function checkMedia(config: Config, options: MediaOptions, ask: SendCommand): Promise<MediaFinding> {
  const view = options.json ? SILENT_PROGRESS_VIEW : openProgressView(process.stderr)
  try {
    return await checkAll(config, options, ask, view)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { ...failure(error.message), damaged: [] }
  } finally {
    view.clear()
  }
}

async function checkAll(config: Config, options: MediaOptions, ask: SendCommand, view: ProgressView): Promise<MediaFinding> {
  const { segments: root, tmp } = dataPaths(config.dataDir)
  if (!existsSync(root)) return { ...ok('There is none yet: the first start creates its folder.'), damaged: [] }
  const begun = parseResult(MediaCheckStart, await ask('media begin', { fromStart: options.fromStart === true }))
  if (begun.after) view.say('Resuming the interrupted check; --from-start checks everything.')
  using interruption = listenForInterruption()
  const next = async (after: Batch['last']) => parseBatch(parseResult(MediaBatch, await ask('media next', { after })))
  const checkOptions = { after: begun.after, bytesPerS: options.pace * 1e6, signal: interruption.signal }
  const damaged: Damage[] = []
  let [count, sizeBytes] = [0, 0]
  try {
    for await (const batch of checkSegments({ root, tmp }, next, checkOptions)) {
      const saved = parseResult(MediaCheckResult, await ask('media checked', { last: batch.last, damaged: batch.damaged }))
      damaged.push(...saved.damaged)
      count += batch.count
      sizeBytes += batch.sizeBytes
      view.show(sizeBytes / Math.max(1, begun.sizeBytes), `segments, ${formatSize(sizeBytes)} of ${formatSize(begun.sizeBytes)}`)
    }
    await ask('media checked', { damaged: [] })
  } catch (error) {
    if (!interruption.signal.aborted) throw error
    return {
      ...failure(`Interrupted after ${formatSize(sizeBytes)}${describeDamage(damaged)}. The same command resumes there.`),
      damaged,
    }
  }
  const checked = `${count} segments, ${formatSize(sizeBytes)}${begun.after ? ', from where the last check was interrupted' : ''}`
  if (damaged.length === 0) return { ...ok(`${checked}: all are as they were published.`), damaged }
  return {
    ...failure(
      `${checked}${describeDamage(damaged)}. They are encoded again now, or from the next start on if no server runs: see "video: repaired" in its log. Check the disk.`,
    ),
    damaged,
  }
}

const MAX_LISTED = 5

function describeDamage(damaged: readonly Damage[]): string {
  if (damaged.length === 0) return ''
  const named = damaged
    .slice(0, MAX_LISTED)
    .map(
      ({ videoId, generation, renditionId, number, problem }) => `${videoId}/${generation}/${renditionId}/${number} (${problem})`,
    )
  const more = damaged.length > MAX_LISTED ? ` and ${damaged.length - MAX_LISTED} more` : ''
  return `; ${damaged.length} damaged: ${named.join(', ')}${more}`
}

function parseBatch({ segments, last }: Static<typeof MediaBatch>): Batch {
  return { segments: segments.map((segment) => ({ ...segment, sha256: Buffer.from(segment.sha256, 'hex') })), last }
}

/** @throws Failure `conflict` when another version answered */
export function parseResult<S extends TSchema>(schema: S, result: unknown): Static<S> {
  if (Value.Check(schema, result)) return result
  throw new Failure('conflict', 'The running server is another version. Restart it with this one, then check again.')
}
