import { sql } from 'kysely'
import type { Db } from '../db/database.ts'
import { foldCase } from '../db/fold-case.ts'
import type { FolderRow } from '../db/tables.ts'

/** Adds an empty folder; the parent counts it. */
export async function insertFolder(
  tx: Db,
  accountId: string,
  folder: { id: string; parentId: string; name: string; createdAtS: number },
): Promise<void> {
  await tx
    .insertInto('folder')
    .values({ ...folder, accountId, foldedName: foldCase(folder.name) })
    .execute()
}

export async function findFolder(db: Db, accountId: string, folderId: string): Promise<FolderRow | undefined> {
  return db.selectFrom('folder').selectAll().where('accountId', '=', accountId).where('id', '=', folderId).executeTakeFirst()
}

/** Folders besides the root. */
export async function countFolders(db: Db, accountId: string): Promise<number> {
  const account = await db.selectFrom('account').select('folderCount').where('id', '=', accountId).executeTakeFirst()
  return account?.folderCount ?? 0
}

/** What is told of a folder in a list: there may be thousands. */
export type ListedFolder = Pick<FolderRow, 'id' | 'name' | 'parentId' | 'videoCount' | 'folderCount'>

/** The folders directly in one, by name. */
export async function listFoldersIn(db: Db, accountId: string, parentId: string): Promise<ListedFolder[]> {
  return db
    .selectFrom('folder')
    .select(['id', 'name', 'parentId', 'videoCount', 'folderCount'])
    .where('accountId', '=', accountId)
    .where('parentId', '=', parentId)
    .orderBy('foldedName')
    .orderBy('id')
    .execute()
}

/** More characters than a folded name has. */
const LONGER_THAN_ANY = 800

/** Folders other than the root by their name, character for character, or by its folded beginning. */
export async function listFoldersByPrefix(
  db: Db,
  accountId: string,
  wanted: { name: string; isWhole: boolean },
  limit: number,
): Promise<FolderRow[]> {
  const folded = foldCase(wanted.name)
  // The last of all characters, more often than a name is long: whatever begins with these letters lies below.
  const beyond = folded + '\u{10FFFF}'.repeat(LONGER_THAN_ANY)
  return db
    .selectFrom('folder')
    .selectAll()
    .where('accountId', '=', accountId)
    .where('parentId', 'is not', null)
    .where('foldedName', '>=', folded)
    .where('foldedName', '<', beyond)
    .$if(wanted.isWhole, (folders) => folders.where('name', '=', wanted.name))
    .orderBy('foldedName')
    .orderBy('id')
    .limit(limit)
    .execute()
}

type Ancestor = { of: string; id: string; name: string; parentId: string | null }

/** What each of the folders lies in, innermost first, the root last. */
export async function listAncestors(db: Db, accountId: string, folderIds: readonly string[]): Promise<Map<string, Ancestor[]>> {
  if (folderIds.length === 0) return new Map()
  // Each is looked up by its key: for a join PostgreSQL reads all that the account has.
  const itsOwn = (column: 'name' | 'parent_id') =>
    sql`(select ${sql.ref(column)} from folder where account_id = ${accountId} and folder.id = above.id)`
  const { rows } = await sql<Ancestor>`
    with recursive above (of, id, distance) as (
      select id, parent_id, 1 from folder where account_id = ${accountId} and id in (${sql.join(folderIds)})
      union all
      select of, ${itsOwn('parent_id')}, distance + 1 from above where id is not null
    )
    select of, id, ${itsOwn('name')} as name, ${itsOwn('parent_id')} as parent_id from above
    where id is not null order by of, distance`.execute(db)
  return Map.groupBy(rows, (row) => row.of)
}

/** How many levels of folders hang below one: 0 when there is none in it. */
export async function countLevelsBelow(db: Db, accountId: string, folderId: string): Promise<number> {
  // A cross join is never turned round: SQLite would read all that the account has for each.
  const { rows } = await sql<{ levels: number }>`
    with recursive below (id, distance) as (
      select folder.id, 0 from folder where account_id = ${accountId} and id = ${folderId}
      union all
      select folder.id, distance + 1 from below cross join folder
        where folder.account_id = ${accountId} and folder.parent_id = below.id
    )
    select max(distance) as levels from below`.execute(db)
  return rows[0]?.levels ?? 0
}

export async function updateFolder(
  tx: Db,
  accountId: string,
  folderId: string,
  { name, parentId }: { name?: string; parentId?: string },
): Promise<void> {
  await tx
    .updateTable('folder')
    .set({ ...(name === undefined ? {} : { name, foldedName: foldCase(name) }), ...(parentId === undefined ? {} : { parentId }) })
    .where('accountId', '=', accountId)
    .where('id', '=', folderId)
    .execute()
}

/** Moves some of the videos and folders that lie directly in one folder into another. @returns how many */
export async function moveContentsBatch(tx: Db, accountId: string, fromId: string, toId: string, limit: number): Promise<number> {
  const videos = await tx
    .updateTable('video')
    .set({ folderId: toId })
    .where('position', 'in', ({ selectFrom }) =>
      selectFrom('video')
        .select('position')
        .where('accountId', '=', accountId)
        .where('folderId', '=', fromId)
        .where('deletedAtS', 'is', null)
        .limit(limit),
    )
    .executeTakeFirst()
  const moved = Number(videos.numUpdatedRows)
  const folders = await tx
    .updateTable('folder')
    .set({ parentId: toId })
    .where('accountId', '=', accountId)
    .where('id', 'in', ({ selectFrom }) =>
      selectFrom('folder')
        .select('id')
        .where('accountId', '=', accountId)
        .where('parentId', '=', fromId)
        .limit(limit - moved),
    )
    .executeTakeFirst()
  return moved + Number(folders.numUpdatedRows)
}

export async function removeFolder(tx: Db, accountId: string, folderId: string): Promise<void> {
  await tx.deleteFrom('folder').where('accountId', '=', accountId).where('id', '=', folderId).execute()
}
