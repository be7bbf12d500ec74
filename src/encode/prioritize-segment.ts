import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { type Chunk, splitForViewer, VIEWER_PRIORITY } from './chunk-plan.ts'
import { findPendingChunk, replaceChunk, setPriority } from './chunk-store.ts'
import { listDamaged } from './damage-store.ts'

/**
 * Gives priority to the chunk of a segment that a viewer waits for, split so that this segment comes first. A chunk with damaged
 * segments is not split: it would come out with other bytes.
 * @returns whether a chunk got priority: the caller wakes the scheduler
 */
export async function prioritizeSegment(
  { db, write }: { db: Db; write: Write },
  video: GenerationKey,
  kind: Chunk['kind'],
  segment: number,
): Promise<boolean> {
  const chunk = await findPendingChunk(db, { ...video, kind }, segment)
  if (!chunk || chunk.priority < 0) return false
  const isRepair = (await listDamaged(db, chunk)).length > 0
  if (isRepair) return write((tx) => setPriority(tx, chunk, VIEWER_PRIORITY))
  return write((tx) => replaceChunk(tx, chunk, splitForViewer(chunk, segment)))
}
