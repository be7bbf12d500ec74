import type { FolderSearchBody } from '../../../src/http/api/folders.ts'

/** The folder that contains all others; a video in it is in no folder. */
export const ROOT_FOLDER_ID = 'root'

type Found = FolderSearchBody['folders']

/** From the outermost folder to this one; empty when it is not among those found. */
export function folderPathOf(found: Found, id: string): readonly { id: string; name: string }[] {
  const folder = found.find((one) => one.id === id)
  return folder ? [...folder.folderPath.toReversed(), { id, name: folder.name }] : []
}

/** Options of a select: each folder by its path, such as `Courses / Light`, in that order. */
export function folderOptions(found: Found): { value: string; label: string }[] {
  return found
    .map(({ id }) => ({
      value: id,
      label: folderPathOf(found, id)
        .map(({ name }) => name)
        .join(' / '),
    }))
    .toSorted((a, b) => a.label.localeCompare(b.label))
}
