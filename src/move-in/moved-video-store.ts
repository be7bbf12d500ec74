import type { Db } from '../db/database.ts'

/** Another server by its address, and the account here that gets its videos. */
export type MoveTarget = { accountId: string; origin: string }
/** A video of another server. */
export type OriginVideo = MoveTarget & { originId: string }

/** What has become of a video that was copied; `status` is null once it is deleted for good. */
export async function findMovedVideo(db: Db, { accountId, origin, originId }: OriginVideo) {
  return selectMoved(db, { accountId, origin }).where('originId', '=', originId).executeTakeFirst()
}

export async function listMovedVideos(db: Db, target: MoveTarget) {
  return selectMoved(db, target).execute()
}

function selectMoved(db: Db, { accountId, origin }: MoveTarget) {
  return db
    .selectFrom('movedVideo')
    .leftJoin('video', 'video.id', 'movedVideo.videoId')
    .select(['originId', 'movedVideo.videoId', 'hasFiles', 'status', 'statusReason', 'hasSource', 'deletedAtS'])
    .where('movedVideo.accountId', '=', accountId)
    .where('origin', '=', origin)
}

export async function insertMovedVideo(tx: Db, row: OriginVideo & { videoId: string }): Promise<void> {
  await tx.insertInto('movedVideo').values(row).execute()
}

export async function setFilesMoved(tx: Db, { accountId, origin, originId }: OriginVideo): Promise<void> {
  await tx
    .updateTable('movedVideo')
    .set({ hasFiles: 1 })
    .where(({ and }) => and({ accountId, origin, originId }))
    .execute()
}
