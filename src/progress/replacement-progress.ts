import type { Db } from '../db/database.ts'
import type { ReplacementRow } from '../db/tables.ts'
import { countSegments, findGeneration } from '../encode/generation-store.ts'
import { plannedSegmentCount } from '../encode/plan.ts'

/** How much of what is to replace a video is encoded, 0 to 1. */
export async function findReplacedPart(db: Db, { videoId, generation }: ReplacementRow): Promise<number> {
  const row = generation === null ? undefined : await findGeneration(db, { videoId, generation })
  if (!row) return 0
  return Math.min(1, (await countSegments(db, row)) / Math.max(1, plannedSegmentCount(row.plan)))
}
