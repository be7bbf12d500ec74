import type { Db } from '../db/database.ts'
import { prepared } from '../db/prepared.ts'

/** Where a viewer left a video, in seconds. */
export type WatchPosition = { accountId: string; userId: string; videoId: string; positionS: number; savedAtS: number }

export const savePosition = prepared<WatchPosition>()((db, value) =>
  db
    .insertInto('watchPosition')
    .values({
      accountId: value('accountId'),
      userId: value('userId'),
      videoId: value('videoId'),
      positionS: value('positionS'),
      savedAtS: value('savedAtS'),
    })
    .onConflict((conflict) =>
      conflict
        .columns(['accountId', 'userId', 'videoId'])
        .doUpdateSet({ positionS: value('positionS'), savedAtS: value('savedAtS') }),
    ),
)

/** 0 for a viewer who has not watched the video. */
export async function findPosition(db: Db, of: Pick<WatchPosition, 'accountId' | 'userId' | 'videoId'>): Promise<number> {
  const found = await db
    .selectFrom('watchPosition')
    .select('positionS')
    .where('accountId', '=', of.accountId)
    .where('userId', '=', of.userId)
    .where('videoId', '=', of.videoId)
    .executeTakeFirst()
  return found?.positionS ?? 0
}

/** Removes some of the positions that were saved before then. @returns how many */
export async function removeOldPositions(tx: Db, beforeS: number, limit: number): Promise<number> {
  const old = await tx
    .selectFrom('watchPosition')
    .select(['accountId', 'userId', 'videoId'])
    .where('savedAtS', '<', beforeS)
    .orderBy('savedAtS')
    .limit(limit)
    .execute()
  for (const { accountId, userId, videoId } of old) {
    await tx
      .deleteFrom('watchPosition')
      .where('accountId', '=', accountId)
      .where('userId', '=', userId)
      .where('videoId', '=', videoId)
      .execute()
  }
  return old.length
}
