import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { FolderRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import type { CatalogueDeps, ListDeps } from './catalogue-deps.ts'
import {
  countFolders,
  countLevelsBelow,
  findFolder,
  findFolderIdIn,
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

/** The folder that contains all others. It has no parent and can be neither renamed, moved nor deleted. */
export const ROOT_FOLDER_ID = 'root'

/** More than people use; it bounds every path to the root. */
const MAX_DEPTH = 20
/** Per account. All folders of a folder are one response, so this bounds its size, too. */
const MAX_FOLDERS = 20_000
/** A search returns only the first of its matches. */
const MAX_SEARCH_RESULTS = 1_000
/** Reading more takes milliseconds, so it is done in its own thread. */
const MAX_QUICK_FOLDERS = 200

type FoundFolder = FolderRow & { path: readonly { id: string; name: string }[] }

/**
 * A folder of the account. Called in the transaction that puts something into it, so that the folder cannot be deleted in between.
 * @throws Failure `not-found`, the same for an id that does not exist and for another account's
 */
export async function getFolder(db: Db, accountId: string, folderId: string): Promise<FolderRow> {
  const folder = await findFolder(db, accountId, folderId)
  if (!folder) throw new Failure('not-found', 'Folder not found')
  return folder
}

/** A folder, its direct subfolders by name, and its parent. @throws Failure `not-found` */
export async function openFolder(
  { db, slowQueryDb }: ListDeps,
  accountId: string,
  folderId: string,
): Promise<{ folder: FolderRow; folders: ListedFolder[]; parent: FolderRow | undefined }> {
  const folder = await getFolder(db, accountId, folderId)
  const parent = folder.parentId === null ? undefined : await findFolder(db, accountId, folder.parentId)
  const folders = await listFoldersIn(folder.folderCount > MAX_QUICK_FOLDERS ? slowQueryDb : db, accountId, folderId)
  return { folder, folders, parent }
}

/**
 * Folders whose name has this prefix, compared as titles are, or with `isWhole` exactly this name: the first thousand, by name. An empty
 * prefix matches all.
 * @returns each with its path, innermost first, without the root
 * @throws Failure `invalid` for an invalid name
 */
export async function searchFolders(
  { slowQueryDb }: Pick<ListDeps, 'slowQueryDb'>,
  accountId: string,
  search: { name: string; isWhole: boolean },
): Promise<FoundFolder[]> {
  if (search.name !== '') parseFolderName(search.name)
  const folders = await listFoldersByPrefix(slowQueryDb, accountId, search, MAX_SEARCH_RESULTS)
  const ids = folders.map(({ id }) => id)
  const ancestors = await listAncestors(slowQueryDb, accountId, ids)
  return folders.map((folder) => ({
    ...folder,
    path: (ancestors.get(folder.id) ?? []).filter(({ id }) => id !== ROOT_FOLDER_ID),
  }))
}

/**
 * Creates a folder. Several folders may have the same name.
 * @throws Failure `not-found` without such a parent; `invalid` for an invalid name; `conflict` for too many folders, or too deep ones
 */
export async function createFolder(
  { write, wallNowS }: CatalogueDeps,
  accountId: string,
  by: Actor,
  { name, parentId }: { name: string; parentId: string },
): Promise<FolderRow> {
  const folder = { name: parseFolderName(name), parentId, createdAtS: wallNowS() }
  return write(async (tx) => {
    await getFolder(tx, accountId, parentId)
    const id = await addFolder(tx, accountId, by, folder)
    return getFolder(tx, accountId, id)
  })
}

/** In an existing folder. @throws Failure `conflict` for too many folders, or too deep ones */
async function addFolder(
  tx: Db,
  accountId: string,
  by: Actor,
  { name, parentId, createdAtS }: { name: string; parentId: string; createdAtS: number },
): Promise<string> {
  if ((await countFolders(tx, accountId)) >= MAX_FOLDERS)
    throw new Failure('conflict', `An account may have at most ${MAX_FOLDERS} folders. Delete some first.`)
  await assertDepthAllowed(tx, accountId, parentId, 1)
  const id = newId()
  await insertFolder(tx, accountId, { id, name, parentId, createdAtS })
  const details = { name, parentId }
  await recordAuditEvent(tx, { atS: createdAtS, accountId, by, kind: 'folder:created', subjects: [id], details })
  return id
}

/**
 * The names of folders from the root down, as they are stored.
 * @throws Failure `invalid` for an invalid name; `conflict` for too many
 */
export function parseFolderPath(names: readonly string[]): string[] {
  if (names.length > MAX_DEPTH) throw tooDeep()
  return names.map(parseFolderName)
}

/**
 * The folder at a path, with the folders on the way to it: those that are missing are created.
 * @param path see `parseFolderPath`; empty: the root
 * @param mayCreate without it, a folder that is missing is `not-found`
 * @throws Failure `not-found`; `conflict` for too many folders
 */
export async function openFolderPath(
  tx: Db,
  {
    accountId,
    by,
    path,
    mayCreate,
    atS,
  }: { accountId: string; by: Actor; path: readonly string[]; mayCreate: boolean; atS: number },
): Promise<string> {
  let folderId = ROOT_FOLDER_ID
  for (const name of path) {
    const existingId = await findFolderIdIn(tx, accountId, folderId, name)
    if (existingId === undefined && !mayCreate)
      throw new Failure('not-found', `There is no folder “${path.join('/')}”, and this key may not create folders.`)
    folderId = existingId ?? (await addFolder(tx, accountId, by, { name, parentId: folderId, createdAtS: atS }))
  }
  return folderId
}

type FolderEdit = { accountId: string; by: Actor; folderId: string; changes: { name?: string; parentId?: string } }

/**
 * Renames a folder, moves it into another, or both.
 * @throws Failure `not-found` without such a folder or parent; `invalid` for an invalid name, or the root;
 * `conflict` for a move into itself or too deep
 */
export async function editFolder(
  { write, wallNowS }: Pick<CatalogueDeps, 'write' | 'wallNowS'>,
  { accountId, by, folderId, changes }: FolderEdit,
): Promise<void> {
  const { name, parentId } = changes
  if (name !== undefined) parseFolderName(name)
  const atS = wallNowS()
  await write(async (tx) => {
    assertNotRoot(await getFolder(tx, accountId, folderId), 'renamed or moved')
    if (parentId !== undefined) await assertMoveAllowed(tx, accountId, folderId, parentId)
    await updateFolder(tx, accountId, folderId, changes)
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'folder:changed', subjects: [folderId], details: changes })
  })
}

/** Small enough that no other write waits long. */
const BATCH_SIZE = 500

/**
 * Deletes a folder, but not its contents: its videos and folders move to its parent in batches, the last batch together with the
 * deletion. A crash before that leaves the folder with what has not been moved yet.
 * @throws Failure `not-found`; `invalid` for the root
 */
export async function deleteFolder(
  { db, write, wallNowS }: Pick<CatalogueDeps, 'db' | 'write' | 'wallNowS'>,
  accountId: string,
  by: Actor,
  folderId: string,
): Promise<void> {
  const atS = wallNowS()
  const folder = await getFolder(db, accountId, folderId)
  /** @returns whether the folder is gone; false: contents are left */
  async function deleteBatch(tx: Db): Promise<boolean> {
    const parentId = assertNotRoot(await getFolder(tx, accountId, folderId), 'deleted')
    const moved = await moveContentsBatch(tx, { accountId, fromId: folderId, toId: parentId, limit: BATCH_SIZE })
    if (moved === BATCH_SIZE) return false
    await removeFolder(tx, accountId, folderId)
    const details = { name: folder.name, videos: folder.videoCount, folders: folder.folderCount }
    await recordAuditEvent(tx, { atS, accountId, by, kind: 'folder:deleted', subjects: [folderId], details })
    return true
  }
  while (!(await write(deleteBatch)));
}

/** @returns the parent, which every folder but the root has */
function assertNotRoot({ parentId }: FolderRow, change: string): string {
  if (parentId === null) throw new Failure('invalid', `The root folder cannot be ${change}.`)
  return parentId
}

async function assertMoveAllowed(tx: Db, accountId: string, folderId: string, parentId: string): Promise<void> {
  await getFolder(tx, accountId, parentId)
  const ancestors = (await listAncestors(tx, accountId, [parentId])).get(parentId) ?? []
  if (parentId === folderId || ancestors.some(({ id }) => id === folderId))
    throw new Failure('conflict', 'A folder cannot be moved into itself or into one of its subfolders.')
  await assertDepthAllowed(tx, accountId, parentId, 1 + (await countLevelsBelow(tx, accountId, folderId)))
}

async function assertDepthAllowed(tx: Db, accountId: string, parentId: string, levels: number): Promise<void> {
  const depth = (await listAncestors(tx, accountId, [parentId])).get(parentId)?.length ?? 0
  if (depth + levels > MAX_DEPTH) throw tooDeep()
}

function tooDeep(): Failure {
  return new Failure('conflict', `Folders may be nested at most ${MAX_DEPTH} levels deep.`)
}
