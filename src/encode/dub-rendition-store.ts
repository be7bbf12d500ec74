import type { GenerationKey } from '../catalogue/generation-key.ts'
import { addSize } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { NewSegment } from './generation-store.ts'
import type { Plan } from './plan.ts'

/** In one statement: databases limit how many values one may have. */
const ROWS_PER_INSERT = 500

type NewRendition = { id: number; gainDb: number | null; segments: readonly NewSegment[]; plan: Plan }

/** Adds an audio rendition to a generation that is complete, with all of its segments, and gives it the plan that has it. */
export async function insertCompleteRendition(
  tx: Db,
  { videoId, generation }: GenerationKey,
  { id, gainDb, segments, plan }: NewRendition,
): Promise<void> {
  const init = segments[0]?.init ?? null
  await tx.insertInto('rendition').values({ videoId, generation, id, kind: 'audio', init, gainDb }).execute()
  const rows = segments.map(({ init: _, ...segment }) => ({ videoId, generation, ...segment }))
  for (let at = 0; at < rows.length; at += ROWS_PER_INSERT)
    await tx
      .insertInto('segment')
      .values(rows.slice(at, at + ROWS_PER_INSERT))
      .execute()
  const sizeBytes = segments.reduce((sum, segment) => sum + segment.sizeBytes, 0)
  await changePlan(tx, { videoId, generation }, { plan, sizeBytes })
}

/** Removes a rendition from a generation, with its segments, and gives it the plan without it. */
export async function removeRendition(
  tx: Db,
  { videoId, generation }: GenerationKey,
  { id, plan }: Pick<NewRendition, 'id' | 'plan'>,
): Promise<void> {
  const { sizeBytes } = await tx
    .selectFrom('segment')
    .select(({ fn }) => fn.sum<number | null>('sizeBytes').as('sizeBytes'))
    .where(({ and }) => and({ videoId, generation, renditionId: id }))
    .executeTakeFirstOrThrow()
  for (const table of ['segment', 'file'] as const)
    await tx
      .deleteFrom(table)
      .where(({ and }) => and({ videoId, generation, renditionId: id }))
      .execute()
  await tx
    .deleteFrom('rendition')
    .where(({ and }) => and({ videoId, generation, id }))
    .execute()
  await changePlan(tx, { videoId, generation }, { plan, sizeBytes: -Number(sizeBytes ?? 0) })
}

async function changePlan(
  tx: Db,
  { videoId, generation }: GenerationKey,
  { plan, sizeBytes }: { plan: Plan; sizeBytes: number },
): Promise<void> {
  await tx
    .updateTable('generation')
    .set((of) => ({ plan: JSON.stringify(plan), segmentBytes: of('segmentBytes', '+', sizeBytes) }))
    .where(({ and }) => and({ videoId, number: generation }))
    .execute()
  await addSize(tx, videoId, sizeBytes)
}
