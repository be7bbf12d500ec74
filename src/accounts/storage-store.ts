import type { ExpressionBuilder } from 'kysely'
import type { Db } from '../db/database.ts'
import type { Tables } from '../db/tables.ts'

/**
 * What the videos of an account take on the disk, those in the trash apart. A file that arrives in parts counts with all of its size once
 * that is known, so that there will be room for its last part.
 * @param exceptIds videos that are left out
 * @param exceptUploadsOf videos whose arriving files are left out
 */
export async function sumStorage(
  db: Db,
  accountId: string,
  exceptIds: readonly string[] = [],
  exceptUploadsOf = exceptIds,
): Promise<{ storedBytes: number; trashedBytes: number }> {
  const sum = ({ fn }: ExpressionBuilder<Tables, 'video'>) => fn.sum<number | null>('totalSizeBytes').as('bytes')
  const videos = db.selectFrom('video').$if(exceptIds.length > 0, (all) => all.where('id', 'not in', exceptIds))
  const stored = await videos.select(sum).where('accountId', '=', accountId).where('deletedAtS', 'is', null).executeTakeFirst()
  const trashed = await videos
    .select(sum)
    .where('id', 'in', (of) => of.selectFrom('trashedVideo').select('videoId').where('trashedVideo.accountId', '=', accountId))
    .executeTakeFirst()
  const arriving = await db
    .selectFrom('resumableUpload')
    .select(({ fn }) => fn.sum<number | null>(fn.coalesce('lengthBytes', 'receivedBytes')).as('bytes'))
    .where('accountId', '=', accountId)
    .where('finishedAtS', 'is', null)
    .$if(exceptUploadsOf.length > 0, (all) => all.where('videoId', 'not in', exceptUploadsOf))
    .executeTakeFirst()
  return { storedBytes: Number(stored?.bytes ?? 0) + Number(arriving?.bytes ?? 0), trashedBytes: Number(trashed?.bytes ?? 0) }
}

/** The bytes that an account's videos take now, those in the trash included. @param except as of `sumStorage` */
export async function sumStoredBytes(db: Db, accountId: string, ...except: (readonly string[])[]): Promise<number> {
  const { storedBytes, trashedBytes } = await sumStorage(db, accountId, ...except)
  return storedBytes + trashedBytes
}
