import type { Db } from '../db/database.ts'
import type { WatermarkImageRow } from '../db/tables.ts'

export async function findWatermarkImage(db: Db, accountId: string, urlHash: Buffer): Promise<WatermarkImageRow | undefined> {
  return db
    .selectFrom('watermarkImage')
    .selectAll()
    .where(({ and }) => and({ accountId, urlHash }))
    .executeTakeFirst()
}

/**
 * Stores the result of an attempt. A failed download keeps the image of an earlier one. Keeps the account's newest `limit` images.
 */
export async function saveWatermarkImage(tx: Db, image: WatermarkImageRow, limit: number): Promise<void> {
  const { accountId, sealed, problem, triedAtS } = image
  await tx
    .insertInto('watermarkImage')
    .values(image)
    .onConflict((conflict) =>
      conflict
        .columns(['accountId', 'urlHash'])
        .doUpdateSet(sealed === null ? { problem, triedAtS } : { sealed, problem, triedAtS }),
    )
    .execute()
  await tx
    .deleteFrom('watermarkImage')
    .where('accountId', '=', accountId)
    .where('urlHash', 'in', (of) =>
      of
        .selectFrom('watermarkImage')
        .select('urlHash')
        .where('accountId', '=', accountId)
        .orderBy('triedAtS', 'desc')
        .limit(1000)
        .offset(limit),
    )
    .execute()
}
