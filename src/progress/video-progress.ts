import type { Db } from '../db/database.ts'
import { countSegments } from '../encode/generation-store.ts'
import { plannedSegmentCount } from '../encode/plan.ts'
import { videoNotFound } from '../errors.ts'
import { countChunks, findEncodeState } from './progress-store.ts'

/** How far a video is encoded. */
type Progress = {
  status: string
  /** Why it failed, or a notice for its owner. */
  reason: string | null
  /** Published segments divided by planned segments, 0 to 1; 0 before the plan. */
  part: number
  /** The current step, as a phrase. */
  step: string
  /** Every rendition is complete. */
  isWhole: boolean
}

/** @throws Failure `not-found` when the account has no such video */
export async function findProgress(db: Db, accountId: string, videoId: string): Promise<Progress> {
  const video = await findEncodeState(db, accountId, videoId)
  if (!video) throw videoNotFound()
  const { status, statusReason: reason, generation, plan } = video
  const isWhole = video.finishedAtS !== null
  if (!plan) return { status, reason, part: 0, isWhole, step: STEPS_BEFORE_PLAN[status] ?? status }
  const part = (await countSegments(db, { videoId, generation })) / Math.max(1, plannedSegmentCount(plan))
  const chunks = await countChunks(db, { videoId, generation })
  const step = chunks.done < chunks.all ? `encoding, chunk ${chunks.done + 1} of ${chunks.all}` : 'checking'
  return { status, reason, part: isWhole ? 1 : Math.min(part, 1), isWhole, step: isWhole ? 'encoded whole' : step }
}

const STEPS_BEFORE_PLAN: Record<string, string> = {
  'PRE-Upload': 'waiting for its file',
  Queued: 'waiting to be examined',
  Processing: 'being examined',
}
