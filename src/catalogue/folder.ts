import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { FolderRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import {
  countFolders,
  countLevelsBelow,
  findFolder,
  insertFolder,
  type ListedFolder,
  listAncestors,
  listFoldersByPrefix,
  listFoldersIn,
  moveContentsBatch,
  removeFolder,
  updateFolder,
} from './folder-store.ts'
import { parseFolderName } from './title.ts'
import type { CatalogueDeps, ListDeps } from './video.ts'

/** The folder in which all others lie. It has no parent, keeps its name, and stays. */
export const ROOT_FOLDER_ID = 'root'

/** As people nest folders, and more; it bounds every walk to the root. */
const MAX_DEPTH = 20
/** Of one account. The folders of a folder are one answer, so this bounds that, too. */
const MAX_FOLDERS = 20_000
/** What a search finds beyond these is not told: nobody looks through so many. */
const MAX_FOUND = 1_000
/** More are read in a thread of their own: they take milliseconds. */
const FEW_FOLDERS = 200

export type FoundFolder = FolderRow & { path: readonly { id: string; name: string }[] }

/**
 * A folder of the account, for whatever is put into it: inside the transaction that does so it is there for certain.
 * @throws Failure `not-found`, the same for an id that does not exist and for another account's
 */
export async function getFolder(db: Db, accountId: string, folderId: string): Promise<FolderRow> {
  const folder = await findFolder(db, accountId, folderId)
  if (!folder) throw new Failure('not-found', 'Folder not found')
  return folder
}

/** A folder, what lies directly in it, by name, and the folder around it. @throws Failure `not-found` */
export async function openFolder(
  { db, slowDb }: ListDeps,
  accountId: string,
  folderId: string,
): Promise<{ folder: FolderRow; folders: ListedFolder[]; parent: FolderRow | undefined }> {
  const folder = await getFolder(db, accountId, folderId)
  const parent = folder.parentId === null ? undefined : await findFolder(db, accountId, folder.parentId)
  const folders = await listFoldersIn(folder.folderCount > FEW_FOLDERS ? slowDb : db, accountId, folderId)
  return { folder, folders, parent }
}

/**
 * Folders whose name begins so, compared as titles are; or whose name is exactly this one. By name, the first thousand. Every
 * name begins with nothing, as every title contains it.
 * @returns each with what it lies in, innermost first, without the root
 * @throws Failure `invalid` for what no name can be
 */
export async function searchFolders(
  { slowDb }: Pick<ListDeps, 'slowDb'>,
  accountId: string,
  wanted: { name: string; isWhole: boolean },
): Promise<FoundFolder[]> {
  if (wanted.name !== '') parseFolderName(wanted.name)
  const folders = await listFoldersByPrefix(slowDb, accountId, wanted, MAX_FOUND)
  const ids = folders.map(({ id }) => id)
  const ancestors = await listAncestors(slowDb, accountId, ids)
  return folders.map((folder) => ({
    ...folder,
    path: (ancestors.get(folder.id) ?? []).filter(({ id }) => id !== ROOT_FOLDER_ID),
  }))
}

/**
 * Makes a folder. Names need not differ: two of one name are two folders.
 * @throws Failure `not-found` without such a parent; `invalid` for a name that cannot be kept; `conflict` when there are too many, or too deep
 */
export async function createFolder(
  { write, wallNowS }: CatalogueDeps,
  accountId: string,
  by: Actor,
  { name, parentId }: { name: string; parentId: string },
): Promise<FolderRow> {
  const folder = { id: newId(), parentId, name: parseFolderName(name), createdAtS: wallNowS() }
  return write(async (tx) => {
    await getFolder(tx, accountId, parentId)
    if ((await countFolders(tx, accountId)) >= MAX_FOLDERS)
      throw new Failure('conflict', `An account has at most ${MAX_FOLDERS} folders. Delete some first.`)
    await refuseDepth(tx, accountId, parentId, 1)
    await insertFolder(tx, accountId, folder)
    const details = { name, parentId }
    await recordAuditEvent(tx, { atS: folder.createdAtS, accountId, by, kind: 'folder:created', subjects: [folder.id], details })
    return getFolder(tx, accountId, folder.id)
  })
}

/**
 * Renames a folder, moves it into another, or both.
 * @throws Failure `not-found` without such a folder or parent; `invalid` for a name that cannot be kept, or the root;
 * `conflict` for a move into itself or too deep
 */
export async function editFolder(
  { write, wallNowS }: Pick<CatalogueDeps, 'write' | 'wallNowS'>,
  accountId: string,
  by: Actor,
  folderId: string,
  changes: { name?: string; parentId?: string },
): Promise<void> {
  const { name, parentId } = changes
  if (name !== undefined) parseFolderName(name)
  const atS = wallNowS()
  await write(async (tx) => {
    refuseRoot(await getFolder(tx, accountId, folderId), 'renamed or moved')
    if (parentId !== undefined) await refuseMove(tx, accountId, folderId, parentId)
    await updateFolder(tx, accountId, folderId, changes)
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'folder:changed', subjects: [folderId], details: changes })
  })
}

/** So few at once that nobody waits for it. */
const MOVED_AT_ONCE = 500

/**
 * Deletes a folder, never what is in it: its videos and folders move to its parent, some at a time, and the last of them with the
 * folder's end. A crash before that leaves the folder, with what has not moved yet.
 * @throws Failure `not-found`; `invalid` for the root
 */
export async function deleteFolder(
  { db, write, wallNowS }: Pick<CatalogueDeps, 'db' | 'write' | 'wallNowS'>,
  accountId: string,
  by: Actor,
  folderId: string,
): Promise<void> {
  const atS = wallNowS()
  const whole = await getFolder(db, accountId, folderId)
  async function isDeleted(tx: Db): Promise<boolean> {
    const parentId = refuseRoot(await getFolder(tx, accountId, folderId), 'deleted')
    if ((await moveContentsBatch(tx, accountId, folderId, parentId, MOVED_AT_ONCE)) === MOVED_AT_ONCE) return false
    await removeFolder(tx, accountId, folderId)
    const details = { name: whole.name, videos: whole.videoCount, folders: whole.folderCount }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'folder:deleted', subjects: [folderId], details })
    return true
  }
  while (!(await write(isDeleted)));
}

/** @returns the parent that every other folder has */
function refuseRoot({ parentId }: FolderRow, what: string): string {
  if (parentId === null) throw new Failure('invalid', `The root folder cannot be ${what}.`)
  return parentId
}

async function refuseMove(tx: Db, accountId: string, folderId: string, parentId: string): Promise<void> {
  await getFolder(tx, accountId, parentId)
  const around = (await listAncestors(tx, accountId, [parentId])).get(parentId) ?? []
  if (parentId === folderId || around.some(({ id }) => id === folderId))
    throw new Failure('conflict', 'A folder cannot be moved into itself, nor into a folder that lies in it.')
  await refuseDepth(tx, accountId, parentId, 1 + (await countLevelsBelow(tx, accountId, folderId)))
}

async function refuseDepth(tx: Db, accountId: string, parentId: string, levels: number): Promise<void> {
  const depth = (await listAncestors(tx, accountId, [parentId])).get(parentId)?.length ?? 0
  if (depth + levels > MAX_DEPTH) throw new Failure('conflict', `Folders lie at most ${MAX_DEPTH} deep in each other.`)
}
