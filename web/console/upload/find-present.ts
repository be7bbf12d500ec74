import type { QueryClient } from '@tanstack/react-query'
import type { VideoListBody } from '../../../src/http/api/list.ts'
import { callApi } from '../api.ts'
import { folderPathOf, ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { folderSearchQuery } from '../catalogue/queries.ts'
import type { ChosenFile } from './dropped-files.ts'
import { titleOf } from './uploads.ts'

/** A question about more would take longer than it is worth. */
const MAX_ASKED = 100
const MAX_CONCURRENT = 4
const PAGE_SIZE = 40

/** Finds files whose title a video with a file has already, in the folder where they would go. What cannot be read is not found. */
export function createPresentFinder(queries: QueryClient) {
  return async (chosen: readonly ChosenFile[], folderId: string): Promise<ReadonlySet<ChosenFile>> => {
    const present = new Set<ChosenFile>()
    const folderOf = await readFolders(queries, folderId, chosen)
    const open = chosen.slice(0, MAX_ASKED)
    const next = async (): Promise<void> => {
      const one = open.shift()
      if (!one) return
      const id = folderOf(one.folders)
      if (id !== undefined && (await hasVideo(titleOf(one.file.name), id).catch(() => false))) present.add(one)
      await next()
    }
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, next))
    return present
  }
}

async function hasVideo(title: string, folderId: string): Promise<boolean> {
  const { rows } = await callApi<VideoListBody>('GET', 'videos', { query: { q: title, folderId, limit: PAGE_SIZE } })
  return rows.some((video) => video.title === title && video.status !== 'PRE-Upload')
}

/** The ids of folders that exist, by their path from the one where files are added. */
async function readFolders(queries: QueryClient, rootId: string, chosen: readonly ChosenFile[]) {
  const ids = new Map([['', rootId]])
  if (chosen.some(({ folders }) => folders.length > 0)) {
    const { folders: found } = await queries.fetchQuery(folderSearchQuery('')).catch(() => ({ folders: [] }))
    for (const { id } of found) {
      const path = folderPathOf(found, id)
      const below = rootId === ROOT_FOLDER_ID ? path : path.slice(path.findIndex((folder) => folder.id === rootId) + 1)
      if (rootId === ROOT_FOLDER_ID || below.length < path.length) ids.set(keyOf(below.map(({ name }) => name)), id)
    }
  }
  return (folders: readonly string[]) => ids.get(keyOf(folders.map((name) => name.slice(0, 255))))
}

function keyOf(names: readonly string[]): string {
  return names.join('/')
}
