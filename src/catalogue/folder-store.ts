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

/** The oldest subfolder of exactly this name: several may have it. */
export async function findFolderIdIn(db: Db, accountId: string, parentId: string, name: string): Promise<string | undefined> {
  const folder = await db
    .selectFrom('folder')
    .select('id')
    .where(({ and }) => and({ accountId, parentId, foldedName: foldCase(name), name }))
    .orderBy('createdAtS')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return folder?.id
}

/** Folders, not counting the root. */
export async function countFolders(db: Db, accountId: string): Promise<number> {
  const account = await db.selectFrom('account').select('folderCount').where('id', '=', accountId).executeTakeFirst()
  return account?.folderCount ?? 0
}

/** The fields of a folder in a list, of which there may be thousands. */
export type ListedFolder = Pick<FolderRow, 'id' | 'name' | 'parentId' | 'videoCount' | 'folderCount'>

/** The direct subfolders of a folder, by name. */
export async function listFoldersIn(db: Db, accountId: string, parentId: string): Promise<ListedFolder[]> {
  return db
    .selectFrom('folder')
    .select(['id', 'name', 'parentId', 'videoCount', 'folderCount'])
    .where(({ and }) => and({ accountId, parentId }))
    .orderBy('foldedName')
    .orderBy('id')
    .execute()
}

/** Longer than any folded name, in characters. */
const MAX_FOLDED_LENGTH = 800

/** Folders other than the root, by their exact name or by its case-folded prefix. */
export async function listFoldersByPrefix(
  db: Db,
  accountId: string,
  search: { name: string; isWhole: boolean },
  limit: number,
): Promise<FolderRow[]> {
  const folded = foldCase(search.name)
  // The highest code point, repeated beyond the length of any name: an upper bound for all names with this prefix.
  const upperBound = folded + '\u{10FFFF}'.repeat(MAX_FOLDED_LENGTH)
  return db
    .selectFrom('folder')
    .selectAll()
    .where('accountId', '=', accountId)
    .where('parentId', 'is not', null)
    .where('foldedName', '>=', folded)
    .where('foldedName', '<', upperBound)
    .$if(search.isWhole, (folders) => folders.where('name', '=', search.name))
    .orderBy('foldedName')
    .orderBy('id')
    .limit(limit)
    .execute()
}

type Ancestor = { of: string; id: string; name: string; parentId: string | null }

/** The ancestors of each folder, innermost first, the root last. */
export async function listAncestors(db: Db, accountId: string, folderIds: readonly string[]): Promise<Map<string, Ancestor[]>> {
  if (folderIds.length === 0) return new Map()
  // Each is looked up by its key: for a join PostgreSQL would read all of the account's folders.
  const lookUp = (column: 'name' | 'parent_id') =>
    sql`(select ${sql.ref(column)} from folder where account_id = ${accountId} and folder.id = above.id)`
  const { rows } = await sql<Ancestor>`
    with recursive above (of, id, distance) as (
      select id, parent_id, 1 from folder where account_id = ${accountId} and id in (${sql.join(folderIds)})
      union all
      select of, ${lookUp('parent_id')}, distance + 1 from above where id is not null
    )
    select of, id, ${lookUp('name')} as name, ${lookUp('parent_id')} as parent_id from above
    where id is not null order by of, distance`.execute(db)
  return Map.groupBy(rows, (row) => row.of)
}

/** The number of levels of folders below one: 0 when it has no subfolders. */
export async function countLevelsBelow(db: Db, accountId: string, folderId: string): Promise<number> {
  // SQLite never reorders a cross join; otherwise it would read all of the account's folders for each.
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
    .where(({ and }) => and({ accountId, id: folderId }))
    .execute()
}

/** Moves some of the direct contents of a folder, videos and folders, into another. @returns how many */
export async function moveContentsBatch(
  tx: Db,
  { accountId, fromId, toId, limit }: { accountId: string; fromId: string; toId: string; limit: number },
): Promise<number> {
  const videos = await tx
    .updateTable('video')
    .set({ folderId: toId })
    .where('position', 'in', ({ selectFrom }) =>
      selectFrom('video')
        .select('position')
        .where(({ and }) => and({ accountId, folderId: fromId }))
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
        .where(({ and }) => and({ accountId, parentId: fromId }))
        .limit(limit - moved),
    )
    .executeTakeFirst()
  return moved + Number(folders.numUpdatedRows)
}

export async function removeFolder(tx: Db, accountId: string, folderId: string): Promise<void> {
  await tx.deleteFrom('folder').where('accountId', '=', accountId).where('id', '=', folderId).execute()
}
