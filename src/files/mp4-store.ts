import { sql, type Updateable } from 'kysely'
import type { Db } from '../db/sqlite.ts'
import type { NewFile, Tables } from '../db/tables.ts'

/** Notes that an MP4 is to be made; one that is there, or is being made, stays, and one that could not be made is tried again. */
export async function wantMp4(tx: Db, file: Pick<NewFile, 'videoId' | 'createdAtS' | 'widthPx' | 'heightPx'>): Promise<number> {
  await tx
    .insertInto('file')
    .values({ ...file, type: 'mp4' })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const { id } = await tx
    .updateTable('file')
    .set({ enabled: 1 })
    .where('videoId', '=', file.videoId)
    .where('type', '=', 'mp4')
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** The MP4 that is to be made next, with the generation that it is made of. */
export async function findUnmadeMp4(
  db: Db,
  notNow: readonly number[],
): Promise<{ id: number; videoId: string; generation: number } | undefined> {
  return db
    .selectFrom('file')
    .innerJoin('video', 'video.id', 'file.videoId')
    .select(['file.id', 'file.videoId', 'video.generation'])
    .where('file.type', '=', sql.lit('mp4')) // written out, for the index of these alone
    .where('file.blob', 'is', null)
    .where('file.enabled', '=', 1)
    .where('file.id', 'not in', [...notNow])
    .where('video.deletedAtS', 'is', null)
    .orderBy('file.id')
    .limit(1)
    .executeTakeFirst()
}

/** Ends the making of an MP4. False: it, or its video, was deleted meanwhile. */
export async function endMp4(tx: Db, id: number, outcome: Updateable<Tables['file']>): Promise<boolean> {
  const ended = await tx
    .updateTable('file')
    .set(outcome)
    .where('id', '=', id)
    .where('blob', 'is', null)
    .where('videoId', 'in', (of) => of.selectFrom('video').select('video.id').where('deletedAtS', 'is', null))
    .executeTakeFirst()
  return ended.numUpdatedRows > 0n
}
