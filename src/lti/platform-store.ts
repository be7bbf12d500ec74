import type { Insertable } from 'kysely'
import type { Db } from '../db/database.ts'
import type { LtiCourseRow, LtiPlatformRow, Tables } from '../db/tables.ts'

export async function insertPlatform(tx: Db, row: Insertable<Tables['ltiPlatform']>): Promise<void> {
  await tx.insertInto('ltiPlatform').values(row).execute()
}

/** Of any account: its address names it. */
export async function findPlatform(db: Db, id: string): Promise<LtiPlatformRow | undefined> {
  return db.selectFrom('ltiPlatform').selectAll().where('id', '=', id).executeTakeFirst()
}

export async function findPlatformOf(db: Db, accountId: string, id: string): Promise<LtiPlatformRow | undefined> {
  const platform = await findPlatform(db, id)
  return platform?.accountId === accountId ? platform : undefined
}

/** The newest first. */
export async function listPlatformRows(db: Db, accountId: string): Promise<LtiPlatformRow[]> {
  return db
    .selectFrom('ltiPlatform')
    .selectAll()
    .where('accountId', '=', accountId)
    .orderBy('createdAtS', 'desc')
    .orderBy('id')
    .execute()
}

/** What may change of a platform. */
export type PlatformChange = Partial<
  Omit<LtiPlatformRow, 'id' | 'accountId' | 'wrappedPrivateKey' | 'publicKey' | 'createdAtS' | 'issuer'>
>

export async function updatePlatform(tx: Db, id: string, change: PlatformChange): Promise<void> {
  await tx.updateTable('ltiPlatform').set(change).where('id', '=', id).execute()
}

/** Adds the first deployment of a platform that has named none. False: it has some. */
export async function setFirstDeployment(tx: Db, id: string, deploymentId: string): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('ltiPlatform')
    .set({ deploymentIds: JSON.stringify([deploymentId]) })
    .where(({ and }) => and({ id, deploymentIds: '[]' }))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Removes a platform with its courses and grades. */
export async function deletePlatform(tx: Db, id: string): Promise<void> {
  await tx.deleteFrom('ltiGrade').where('platformId', '=', id).execute()
  await tx.deleteFrom('ltiCourse').where('platformId', '=', id).execute()
  await tx.deleteFrom('ltiPlatform').where('id', '=', id).execute()
}

export async function insertRegistration(tx: Db, row: Insertable<Tables['ltiRegistration']>): Promise<void> {
  await tx.insertInto('ltiRegistration').values(row).execute()
}

/** The account of a link that was neither used nor has expired. */
export async function findRegistration(db: Db, hash: Buffer, nowS: number): Promise<string | undefined> {
  const row = await db
    .selectFrom('ltiRegistration')
    .select('accountId')
    .where('hash', '=', hash)
    .where('expiresAtS', '>', nowS)
    .executeTakeFirst()
  return row?.accountId
}

/** Uses a link up. False: another request did so. */
export async function spendRegistration(tx: Db, hash: Buffer, nowS: number): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('ltiRegistration')
    .where('hash', '=', hash)
    .where('expiresAtS', '>', nowS)
    .executeTakeFirst()
  return numDeletedRows > 0n
}

/** Notes that a launch is used. False: it was before. */
export async function spendNonce(tx: Db, hash: Buffer, expiresAtS: number): Promise<boolean> {
  const { numInsertedOrUpdatedRows = 0n } = await tx
    .insertInto('ltiNonce')
    .values({ hash, expiresAtS })
    .onConflict((conflict) => conflict.column('hash').doNothing())
    .executeTakeFirst()
  return numInsertedOrUpdatedRows > 0n
}

/** Notes a launch from a course. */
export async function saveCourse(tx: Db, course: Omit<LtiCourseRow, 'folderId'>): Promise<void> {
  const { title, lastLaunchAtS } = course
  await tx
    .insertInto('ltiCourse')
    .values({ ...course, folderId: null })
    .onConflict((conflict) => conflict.columns(['platformId', 'courseId']).doUpdateSet({ title, lastLaunchAtS }))
    .execute()
}

export async function findCourse(db: Db, platformId: string, courseId: string): Promise<LtiCourseRow | undefined> {
  return db
    .selectFrom('ltiCourse')
    .selectAll()
    .where((row) => row.and({ platformId, courseId }))
    .executeTakeFirst()
}

/** Those that launched something last come first. */
export async function listCourses(db: Db, platformId: string, limit: number): Promise<LtiCourseRow[]> {
  return db
    .selectFrom('ltiCourse')
    .selectAll()
    .where('platformId', '=', platformId)
    .orderBy('lastLaunchAtS', 'desc')
    .orderBy('courseId')
    .limit(limit)
    .execute()
}

/** False: the course has launched nothing yet. */
export async function setCourseFolder(
  tx: Db,
  { platformId, courseId }: Pick<LtiCourseRow, 'platformId' | 'courseId'>,
  folderId: string | null,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('ltiCourse')
    .set({ folderId })
    .where((row) => row.and({ platformId, courseId }))
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Removes links and used launches that have expired. */
export async function removeExpired(tx: Db, nowS: number): Promise<void> {
  await tx.deleteFrom('ltiRegistration').where('expiresAtS', '<=', nowS).execute()
  await tx.deleteFrom('ltiNonce').where('expiresAtS', '<=', nowS).execute()
}
