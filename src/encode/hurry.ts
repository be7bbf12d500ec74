import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { type Chunk, cutForViewer } from './chunk-plan.ts'
import { type ChunkQueue, replaceChunk } from './chunk-queue.ts'
import { findWaitingChunk } from './chunk-store.ts'

/**
 * Moves the chunk of a segment that a viewer waits for to the front, cut so that this segment comes first.
 * @returns whether there is now something new to run
 */
export async function hurrySegment(
  { db, write, chunkQueue }: { db: Db; write: Write; chunkQueue: ChunkQueue },
  film: { videoId: string; generation: number },
  kind: Chunk['kind'],
  segment: number,
): Promise<boolean> {
  const chunk = await findWaitingChunk(db, { ...film, kind }, segment)
  if (!chunk || chunk.priority < 0) return false
  return write((tx) => replaceChunk(tx, chunkQueue, chunk, cutForViewer(chunk, segment)))
}
