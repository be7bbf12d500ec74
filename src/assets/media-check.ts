import { setTimeout as pause } from 'node:timers/promises'
import type { VideoFolders } from '../catalogue/deletion.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import type { Db } from '../db/database.ts'
import { findSetting, saveSetting } from '../db/setting.ts'
import type { Write } from '../db/write.ts'
import {
  findPlayable,
  listSegmentsAfter,
  type PublishedSegment,
  type SegmentKey,
  segmentKey,
  totalSizeAfter,
} from '../encode/damage-store.ts'
import type { Damage } from '../encode/repair.ts'
import { findSegmentFault } from '../encode/segment-file.ts'
import { type FileCheck, hashBlob } from '../storage/copy.ts'
import type { FileDamage } from './damaged-file.ts'
import { checkStoredFile } from './file-check.ts'
import {
  type CheckedFile,
  type FileName,
  findFileDamage,
  listFilesAfter,
  setFileDamaged,
  totalFileSizeAfter,
} from './file-damage-store.ts'

// Compares rows with files: whether each published segment still has the published bytes, in the order of the rows' keys; then
// whether each other file of a video is as it was sealed, in the order of its rows.

/** The last row that was checked. */
type Position = SegmentKey | { fileId: number }

/** What to check, and the last row that was read; undefined at the end of all rows. */
export type Batch = { segments: PublishedSegment[]; files: CheckedFile[]; last: Position | undefined }

/** What was found. `intactFiles`: files that were marked as damaged and are not. */
type Found = { damaged: Damage[]; damagedFiles: FileName[]; intactFiles: FileName[] }

/** `unverifiedCount`: files that no key at hand opens, and that were therefore only read. */
type CheckedBatch = Found & {
  last: Position
  segmentCount: number
  fileCount: number
  unverifiedCount: number
  sizeBytes: number
}

type CheckOptions = {
  /** Undefined: files other than segments are only read. */
  masterKey: MasterKey | undefined
  /** Starts after this row. */
  after: Position | undefined
  bytesPerS: number
  signal: AbortSignal
}

const BATCH_SIZE = 100
/** The checksums of a large file are large themselves. */
const FILE_BATCH_SIZE = 20

/** The next segments after the given one, of videos that play; after the last one, the other files of videos. */
export async function nextBatch(db: Db, after: Position | undefined): Promise<Batch> {
  const batch = await nextSegmentsAndFiles(db, after)
  if (batch.segments.length === 0) return batch
  const playable = await findPlayable(db, [...new Set(batch.segments.map(({ videoId }) => videoId))])
  return { ...batch, segments: batch.segments.filter(({ videoId }) => playable.has(videoId)) }
}

/** The same of all videos whose rows are there. */
export async function nextSegmentsAndFiles(db: Db, after: Position | undefined): Promise<Batch> {
  if (!isFilePosition(after)) {
    const segments = await listSegmentsAfter(db, after, BATCH_SIZE)
    const last = segments.at(-1)
    if (last) return { segments, files: [], last: segmentKey(last) }
  }
  const { files, lastId } = await listFilesAfter(db, isFilePosition(after) ? after.fileId : 0, FILE_BATCH_SIZE)
  return { segments: [], files, last: lastId === undefined ? undefined : { fileId: lastId } }
}

function isFilePosition(position: Position | undefined): position is { fileId: number } {
  return position !== undefined && 'fileId' in position
}

/**
 * Reads all files, batch by batch, at most at the given rate.
 * @throws Failure `unavailable` when files cannot be read now, such as those of a disk that is not mounted; the signal's reason
 */
export async function* checkMedia(
  folders: VideoFolders,
  next: (after: Position | undefined) => Promise<Batch>,
  { masterKey, after, bytesPerS, signal }: CheckOptions,
): AsyncGenerator<CheckedBatch> {
  const throttle = createThrottle(bytesPerS)

  async function checkSegments(segments: readonly PublishedSegment[]): Promise<Damage[]> {
    const damaged: Damage[] = []
    for (const segment of segments) {
      signal.throwIfAborted()
      const fault = await findSegmentFault(folders.segments, segment)
      if (fault) damaged.push({ ...segmentKey(segment), ...fault })
      await throttle(segment.sizeBytes, signal)
    }
    return damaged
  }

  async function checkFiles(files: readonly CheckedFile[]): Promise<Omit<Found, 'damaged'> & { unverifiedCount: number }> {
    const found = { damagedFiles: [] as FileName[], intactFiles: [] as FileName[], unverifiedCount: 0 }
    for (const file of files) {
      const { videoId, name } = file
      signal.throwIfAborted()
      const check = openFileCheck(masterKey, file)
      const sha256 = await hashBlob(folders[file.folder], name, check, (sizeBytes) => throttle(sizeBytes, signal))
      if (!sha256) found.damagedFiles.push({ videoId, name })
      else if (!check) found.unverifiedCount++
      else if (file.damaged) found.intactFiles.push({ videoId, name })
    }
    return found
  }

  for (let position = after; ; ) {
    const { segments, files, last } = await next(position)
    if (!last) return
    const damaged = await checkSegments(segments)
    const found = await checkFiles(files)
    const sizeBytes = [...segments, ...files].reduce((sum, file) => sum + file.sizeBytes, 0)
    yield { last, damaged, ...found, segmentCount: segments.length, fileCount: files.length, sizeBytes }
    position = last
  }
}

/** Undefined when no key at hand opens the file, such as a key that was made by a rotation meanwhile. */
export function openFileCheck(masterKey: MasterKey | undefined, file: CheckedFile): FileCheck | undefined {
  try {
    return checkStoredFile(masterKey, file)
  } catch {
    return undefined
  }
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

/** The check of `doctor --media`, which resumes where the last one was interrupted. */
const REQUESTED_CHECK = 'media-check'

export type CheckDeps = {
  db: Db
  slowQueryDb: Db
  write: Write
  reportDamage(damage: Damage): Promise<boolean>
  recordDamagedFile(file: FileName, problem: string): Promise<FileDamage | undefined>
}

/** Where a check starts, and how many bytes it will read. */
export async function beginCheck(
  { db, slowQueryDb }: CheckDeps,
  fromStart: boolean,
): Promise<{ after: Position | undefined; sizeBytes: number }> {
  const saved = fromStart ? undefined : await findSetting(db, REQUESTED_CHECK)
  const after: Position | undefined = saved ? JSON.parse(saved) : undefined
  const fileBytes = await totalFileSizeAfter(slowQueryDb, isFilePosition(after) ? after.fileId : 0)
  return { after, sizeBytes: fileBytes + (isFilePosition(after) ? 0 : await totalSizeAfter(slowQueryDb, after)) }
}

/** The damage that is confirmed: since its rows were read, a video may have been deleted or play another generation. */
export type Confirmed = { damaged: Damage[]; damagedFiles: FileDamage[] }

/**
 * Queues repairs of the damage that was found, then saves the progress of the check.
 * @param last undefined: the check is complete
 */
export async function saveCheck(deps: CheckDeps, last: Position | undefined, found: Found): Promise<Confirmed> {
  const confirmed = await recordFound(deps, found)
  await deps.write((tx) => saveSetting(tx, REQUESTED_CHECK, last ? JSON.stringify(last) : ''))
  return confirmed
}

async function recordFound(deps: CheckDeps, found: Found): Promise<Confirmed> {
  const confirmed: Confirmed = { damaged: [], damagedFiles: [] }
  for (const damage of found.damaged) if (await deps.reportDamage(damage)) confirmed.damaged.push(damage)
  for (const file of found.damagedFiles) {
    const damage = await deps.recordDamagedFile(file, 'missing, unreadable or changed')
    if (damage) confirmed.damagedFiles.push(damage)
  }
  if (found.intactFiles.length > 0)
    await deps.write(async (tx) => {
      for (const name of found.intactFiles) {
        const file = await findFileDamage(tx, name)
        if (file) await setFileDamaged(tx, file.id, 0)
      }
    })
  return confirmed
}

const SWEEP = 'media-sweep'
/** Hardly any load for a disk; a terabyte takes six days. */
const SWEEP_BYTES_PER_S = 2 * 2 ** 20
const SWEEP_INTERVAL_S = 7 * 24 * 3600

type Swept = { beganAtS: number; last: Position | undefined }

type SweepDeps = CheckDeps & { nowS: () => number; masterKey: MasterKey; folders: VideoFolders }

/**
 * Checks all files slowly, once a week, for the first time a week after the first start. After a restart it resumes where it was
 * interrupted. Resolves at the end, or when the signal is aborted.
 */
export async function sweepMedia(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  const saved = await findSetting(deps.db, SWEEP)
  const swept: Swept | undefined = saved === undefined ? undefined : JSON.parse(saved)
  const beganAtS = swept?.last ? swept.beganAtS : deps.nowS()
  const save = (last: Position | undefined) =>
    deps.write((tx) => saveSetting(tx, SWEEP, JSON.stringify({ beganAtS, last } satisfies Swept)))
  if (!swept) return save(undefined)
  if (!swept.last && beganAtS < swept.beganAtS + SWEEP_INTERVAL_S) return
  const options = { masterKey: deps.masterKey, after: swept.last, bytesPerS: SWEEP_BYTES_PER_S, signal }
  try {
    for await (const { last, ...found } of checkMedia(deps.folders, (after) => nextBatch(deps.db, after), options)) {
      await recordFound(deps, found)
      await save(last)
    }
    await save(undefined)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
