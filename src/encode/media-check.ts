import { setTimeout as pause } from 'node:timers/promises'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { type BlobFolder, isEmptyFolder } from '../storage/folder.ts'
import {
  findCheckProgress,
  findPlayable,
  listSegmentsAfter,
  type PublishedSegment,
  type SegmentKey,
  saveCheckProgress,
  totalSizeAfter,
} from './damage-store.ts'
import type { Damage } from './repair.ts'
import { findSegmentFault } from './segment-file.ts'

// Compares rows with files: whether each published segment still has the published bytes, in the order of the rows' keys.

/** Segments to check, and the key of the last row that was read; undefined at the end of all rows. */
export type Batch = { segments: PublishedSegment[]; last: SegmentKey | undefined }

export type CheckedBatch = { last: SegmentKey; count: number; sizeBytes: number; damaged: Damage[] }

export type CheckOptions = {
  /** Starts after this segment. */
  after: SegmentKey | undefined
  bytesPerS: number
  signal: AbortSignal
}

const BATCH_SIZE = 100

/** The next segments after the given one, of videos that play. */
export async function nextBatch(db: Db, after: SegmentKey | undefined): Promise<Batch> {
  const rows = await listSegmentsAfter(db, after, BATCH_SIZE)
  const playable = await findPlayable(db, [...new Set(rows.map(({ videoId }) => videoId))])
  const last = rows.at(-1)
  return { segments: rows.filter(({ videoId }) => playable.has(videoId)), last: last && toKey(last) }
}

/**
 * Reads all files, batch by batch, at most at the given rate.
 * @throws Failure `unavailable` when the folder is empty although there are rows; the signal's reason
 */
export async function* checkSegments(
  folder: BlobFolder,
  next: (after: SegmentKey | undefined) => Promise<Batch>,
  { after, bytesPerS, signal }: CheckOptions,
): AsyncGenerator<CheckedBatch> {
  const throttle = createThrottle(bytesPerS)
  for (let position = after; ; ) {
    const { segments, last } = await next(position)
    if (!last) return
    if (segments.length > 0) await assertNotEmpty(folder)
    const damaged: Damage[] = []
    for (const segment of segments) {
      signal.throwIfAborted()
      const fault = await findSegmentFault(folder, segment)
      if (fault) damaged.push({ ...toKey(segment), ...fault })
      await throttle(segment.sizeBytes, signal)
    }
    const sizeBytes = segments.reduce((sum, segment) => sum + segment.sizeBytes, 0)
    yield { last, count: segments.length, sizeBytes, damaged }
    position = last
  }
}

/** A disk that is not mounted must not have all videos encoded again. */
async function assertNotEmpty(folder: BlobFolder): Promise<void> {
  if (!(await isEmptyFolder(folder))) return
  throw new Failure(
    'unavailable',
    `${folder.root} is empty, but the database has segments in it. Mount its disk, or restore it from a backup.`,
  )
}

/** Shorter pauses are added up: timers are not that precise. */
const MIN_PAUSE_MS = 20

/** Waits after each part of what is read, so that at most so many bytes are read in a second. */
export function createThrottle(bytesPerS: number): (sizeBytes: number, signal: AbortSignal) => Promise<void> {
  let dueMs = performance.now()
  return async (sizeBytes, signal) => {
    dueMs = Math.max(dueMs, performance.now() - MIN_PAUSE_MS) + (sizeBytes / bytesPerS) * 1000
    const earlyMs = dueMs - performance.now()
    if (earlyMs > MIN_PAUSE_MS) await pause(earlyMs, undefined, { signal })
  }
}

function toKey({ videoId, generation, renditionId, number }: SegmentKey): SegmentKey {
  return { videoId, generation, renditionId, number }
}

/** The check of `doctor --media`, which resumes where the last one was interrupted. */
const REQUESTED_CHECK = 'media-check'

export type CheckDeps = { db: Db; slowQueryDb: Db; write: Write; reportDamage(damage: Damage): Promise<boolean> }

/** Where a check starts, and how many bytes it will read. */
export async function beginCheck(
  { db, slowQueryDb }: CheckDeps,
  fromStart: boolean,
): Promise<{ after: SegmentKey | undefined; sizeBytes: number }> {
  const saved = fromStart ? undefined : await findCheckProgress(db, REQUESTED_CHECK)
  const after: SegmentKey | undefined = saved ? JSON.parse(saved) : undefined
  return { after, sizeBytes: await totalSizeAfter(slowQueryDb, after) }
}

/**
 * Queues repairs of the damage that was found, then saves the progress of the check.
 * @param last undefined: the check is complete
 * @returns the confirmed damage: since its rows were read, a video may have been deleted or play another generation
 */
export async function saveCheck(deps: CheckDeps, last: SegmentKey | undefined, found: readonly Damage[]): Promise<Damage[]> {
  const damaged: Damage[] = []
  for (const damage of found) if (await deps.reportDamage(damage)) damaged.push(damage)
  await deps.write((tx) => saveCheckProgress(tx, REQUESTED_CHECK, last ? JSON.stringify(last) : ''))
  return damaged
}

const SWEEP = 'media-sweep'
/** Hardly any load for a disk; a terabyte takes six days. */
const SWEEP_BYTES_PER_S = 2 * 2 ** 20
const SWEEP_INTERVAL_S = 7 * 24 * 3600

type Swept = { beganAtS: number; last: SegmentKey | undefined }

export type SweepDeps = CheckDeps & { nowS: () => number; folders: { segments: BlobFolder } }

/**
 * Checks all segments slowly, once a week, for the first time a week after the first start. After a restart it resumes where it was
 * interrupted. Resolves at the end, or when the signal is aborted.
 */
export async function sweepSegments(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  const saved = await findCheckProgress(deps.db, SWEEP)
  const swept: Swept | undefined = saved === undefined ? undefined : JSON.parse(saved)
  const beganAtS = swept?.last ? swept.beganAtS : deps.nowS()
  const save = (last: SegmentKey | undefined) =>
    deps.write((tx) => saveCheckProgress(tx, SWEEP, JSON.stringify({ beganAtS, last } satisfies Swept)))
  if (!swept) return save(undefined)
  if (!swept.last && beganAtS < swept.beganAtS + SWEEP_INTERVAL_S) return
  const options = { after: swept.last, bytesPerS: SWEEP_BYTES_PER_S, signal }
  try {
    for await (const { last, damaged } of checkSegments(deps.folders.segments, (after) => nextBatch(deps.db, after), options)) {
      for (const damage of damaged) await deps.reportDamage(damage)
      await save(last)
    }
    await save(undefined)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
