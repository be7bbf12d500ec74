import type { Db } from '../db/database.ts'

const DEMO_VIDEO = 'demo-video'

/** Names the one video that is the demo, for ever: where the video is gone there is no demo, and none is made again. */
export async function insertDemo(tx: Db, videoId: string): Promise<void> {
  await tx.insertInto('setting').values({ name: DEMO_VIDEO, value: videoId }).execute()
}

/** The demo's video; undefined when this installation has none, or it was deleted. */
export async function findDemoVideo(db: Db) {
  return db
    .selectFrom('setting')
    .innerJoin('video', 'video.id', 'setting.value')
    .select(['video.id', 'video.accountId', 'video.status'])
    .where('setting.name', '=', DEMO_VIDEO)
    .where('video.deletedAtS', 'is', null)
    .executeTakeFirst()
}
