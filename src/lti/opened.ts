import { getFolder, ROOT_FOLDER_ID } from '../catalogue/folder.ts'
import { findFolder, listAncestors } from '../catalogue/folder-store.ts'
import { findVideo } from '../catalogue/video-store.ts'
import type { Db } from '../db/database.ts'
import type { LtiPlatformRow } from '../db/tables.ts'
import { Failure } from '../errors.ts'
import { findCourse } from './platform-store.ts'

// What an owner has opened to a course: one folder with all in it. Asked in each launch, so that what is moved out of it ends there.

type Course = { platform: Pick<LtiPlatformRow, 'id' | 'accountId' | 'folderId'>; courseId: string | undefined }

/** The folder that is open to a course. @throws Failure `forbidden` when none is */
export async function getOpenFolder(db: Db, { platform, courseId }: Course): Promise<string> {
  const own = courseId === undefined ? undefined : await findCourse(db, platform.id, courseId)
  const folderId = own?.folderId ?? platform.folderId
  const folder = folderId === null ? undefined : await findFolder(db, platform.accountId, folderId)
  if (!folder) throw new Failure('forbidden', 'The owner of the videos has not opened any to this course yet.')
  return folder.id
}

/** Refuses a folder that is neither the open one nor in it. @throws Failure `not-found` */
export async function assertFolderOpen(
  db: Db,
  accountId: string,
  { open, folderId }: { open: string; folderId: string },
): Promise<void> {
  await getFolder(db, accountId, folderId)
  if (!(await isWithin(db, accountId, { open, folderId }))) throw new Failure('not-found', 'Folder not found')
}

/** The title of a video that is open. @throws Failure `forbidden`, the same for one that does not exist */
export async function getOpenVideo(
  db: Db,
  accountId: string,
  { open, videoId }: { open: string; videoId: string },
): Promise<{ id: string; title: string }> {
  const video = await findVideo(db, accountId, videoId)
  if (video && (await isWithin(db, accountId, { open, folderId: video.folderId }))) return video
  throw new Failure(
    'forbidden',
    'This video is not open to this course: it was deleted or moved, or never was. Ask the teacher to choose another.',
  )
}

async function isWithin(db: Db, accountId: string, { open, folderId }: { open: string; folderId: string }): Promise<boolean> {
  if (open === ROOT_FOLDER_ID || open === folderId) return true
  const ancestors = (await listAncestors(db, accountId, [folderId])).get(folderId) ?? []
  return ancestors.some(({ id }) => id === open)
}
