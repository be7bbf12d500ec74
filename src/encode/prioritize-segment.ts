import type { GenerationKey } from '../catalogue/generation-key.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import type { Signals } from '../signals/signals.ts'
import { type Chunk, splitForViewer, VIEWER_PRIORITY } from './chunk-plan.ts'
import { findPendingChunk, replaceChunk, setPriority } from './chunk-store.ts'
import { listDamaged } from './damage-store.ts'

/**
 * Gives priority to the chunk of a segment that a viewer waits for, split so that this segment comes first. A chunk with damaged
 * segments is not split: it would come out with other bytes.
 */
export async function prioritizeSegment(
  { db, write, signals }: { db: Db; write: Write; signals: Pick<Signals, 'send'> },
  video: GenerationKey,
  kind: Chunk['kind'],
  segment: number,
): Promise<void> {
  const chunk = await findPendingChunk(db, { ...video, kind }, segment)
  if (!chunk || chunk.priority < 0) return
  const isRepair = (await listDamaged(db, chunk)).length > 0
  const hasPriority = await write((tx) =>
    isRepair ? setPriority(tx, chunk, VIEWER_PRIORITY) : replaceChunk(tx, chunk, splitForViewer(chunk, segment)),
  )
  if (hasPriority) void signals.send('work-queued', 'encode')
}
