import type { GenerationKey } from '../catalogue/generation-key.ts'
import { countRows } from '../db/count-rows.ts'
import type { Db } from '../db/database.ts'
import type { Plan } from '../encode/plan.ts'

/** A video of the account with the plan of its generation; without one before its source is examined. */
export async function findEncodeState(db: Db, accountId: string, videoId: string) {
  const row = await db
    .selectFrom('video')
    .leftJoin('generation', (on) =>
      on.onRef('generation.videoId', '=', 'video.id').onRef('generation.number', '=', 'video.generation'),
    )
    .select(['status', 'statusReason', 'durationS', 'generation', 'plan', 'finishedAtS'])
    .where(({ and }) => and({ id: videoId, accountId }))
    .where('deletedAtS', 'is', null)
    .executeTakeFirst()
  const plan: Plan | undefined = row?.plan ? JSON.parse(row.plan) : undefined
  return row && { ...row, plan }
}

export async function countChunks(db: Db, video: GenerationKey) {
  const row = await db
    .selectFrom('chunk')
    .select(({ fn }) => [fn.countAll<number>().as('all'), fn.countAll<number>().filterWhere('state', '=', 'done').as('done')])
    .where(({ and }) => and({ videoId: video.videoId, generation: video.generation }))
    .executeTakeFirstOrThrow()
  return { all: Number(row.all), done: Number(row.done) }
}

/** Chunks of all videos that wait and that are being encoded. */
export async function countOpenChunks(db: Db): Promise<{ pending: number; running: number }> {
  const count = (state: 'pending' | 'running') => countRows(db.selectFrom('chunk').where('state', '=', state))
  return { pending: await count('pending'), running: await count('running') }
}
