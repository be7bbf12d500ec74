import { createHash } from 'node:crypto'
import type { Logger } from 'pino'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { findAccountOfVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { Signals } from '../signals/signals.ts'
import type { ChunkSink } from './chunk.ts'
import { isCurrentRun, reopenChunk, type VideoChunk } from './chunk-store.ts'
import {
  countRepair,
  findFinishedChunk,
  findPlayable,
  isDamaged,
  listDamaged,
  listPublished,
  type PublishedSegment,
  type SegmentKey,
  segmentKey,
  setDamaged,
} from './damage-store.ts'
import { isKept } from './generation-store.ts'
import { finishRun, type GenerationWithKey, type PublicationDeps, StaleRunError, segmentCipher } from './publication.ts'
import { findSegmentFault, type SegmentFault } from './segment-file.ts'

/** A published segment whose file does not match its row. `mayHaveBeenSent`: viewers and caches may have other bytes. */
export type Damage = SegmentKey & Pick<SegmentFault, 'problem'> & Partial<SegmentFault>

/**
 * Withholds a damaged segment from now on, and queues its chunk to be encoded again. Logs it once. If other bytes may have been sent, its
 * address changes, since a cache may keep them.
 * @returns false when the segment no longer exists, or its video is deleted or has failed
 */
export async function reportDamage(
  { write, signals, log }: ReportDeps,
  { problem, mayHaveBeenSent = false, ...segment }: Damage,
): Promise<boolean> {
  const found = await write(async (tx) => {
    if (!(await findPlayable(tx, [segment.videoId])).has(segment.videoId)) return 'gone'
    const isNew = await setDamaged(tx, segment, 1)
    if (!isNew && !(await isDamaged(tx, segment))) return 'gone'
    if (isNew && mayHaveBeenSent) await countRepair(tx, segment)
    if (await isKept(tx, segment)) return isNew ? 'new' : 'known' // encoded again when it plays again
    const chunk = await findFinishedChunk(tx, segment)
    if (chunk) await reopenChunk(tx, chunk)
    return isNew ? 'new' : 'known'
  })
  if (found === 'new') log.error({ ...segment, problem }, 'video: damaged')
  void signals.send('segment-damaged', segment)
  void signals.send('work-queued', 'encode')
  return found !== 'gone'
}
type ReportDeps = { write: Write; signals: Pick<Signals, 'send'>; log: Pick<Logger, 'error'> }

type RepairDeps = PublicationDeps & { wallNowS: () => number }

/**
 * Takes the clear segments of a chunk that is encoded again. A damaged one is put back under its name when it comes out with exactly
 * the published bytes: no other bytes may ever be encrypted with its IV. Where the chunk is to be compared, so must the others.
 */
export async function openRepair(deps: RepairDeps, video: GenerationWithKey, chunk: VideoChunk) {
  const damaged = new Map((await listDamaged(deps.db, chunk)).map((segment) => [segmentName(segment), segment]))
  const compared = new Map(
    chunk.isCompared ? (await listPublished(deps.db, chunk)).map((segment) => [segmentName(segment), segment]) : [],
  )
  const encrypt = segmentCipher(video, chunk.kind)

  async function onSegment(renditionId: number, number: number, clear: Buffer): Promise<void> {
    const name = segmentName({ renditionId, number })
    const segment = damaged.get(name) ?? compared.get(name)
    if (!segment) return
    const bytes = encrypt(renditionId, number, clear)
    if (!createHash('sha256').update(bytes).digest().equals(segment.sha256)) return
    compared.delete(name)
    if (!damaged.has(name)) return
    await deps.segments.put(segment.file, bytes)
    await recordIntact(segment)
  }

  async function recordIntact(segment: PublishedSegment): Promise<void> {
    await deps.write(async (tx) => {
      if (!(await isCurrentRun(tx, chunk))) throw new StaleRunError()
      await setDamaged(tx, segment, 0)
    })
    damaged.delete(segmentName(segment))
    const key = segmentKey(segment)
    void deps.signals.send('segment-published', key)
    deps.log.info(key, 'video: repaired')
  }

  /** For the owner who asked for the comparison. */
  async function recordSame(tx: Db): Promise<void> {
    const { videoId, kind, firstSegment } = chunk
    const accountId = await findAccountOfVideo(tx, videoId)
    const details = { kind, firstSegment }
    await recordAuditEvent(tx, {
      atS: deps.wallNowS(),
      accountId,
      by: 'server',
      kind: 'video:part-same',
      subjects: [videoId],
      details,
    })
  }

  return {
    sink: { onInit: () => undefined, onSegment } satisfies ChunkSink,
    /** Whether no segment is damaged any more, and all came out that are compared. */
    isDone: () => damaged.size === 0 && compared.size === 0,
    /** Whether all of it can be played. */
    isPlayable: () => damaged.size === 0,
    /** Keeps files that were restored by hand. */
    async keepIntact(): Promise<void> {
      for (const segment of [...damaged.values()])
        if ((await findSegmentFault(deps.segments, segment)) === undefined) await recordIntact(segment)
    },
    finish: () =>
      deps.claim.settle(async (tx) => {
        await finishRun(tx, chunk)
        if (chunk.isCompared && compared.size === 0 && damaged.size === 0) await recordSame(tx)
      }),
  }
}

function segmentName({ renditionId, number }: Pick<SegmentKey, 'renditionId' | 'number'>): string {
  return `${renditionId}/${number}`
}
