import type { QueryClient } from '@tanstack/react-query'
import type { FolderBody } from '../../../src/http/api/folders.ts'
import { callApi } from '../api.ts'
import { folderQuery } from '../catalogue/queries.ts'

/** Finds folders by their paths, and creates the missing ones; one after another, so that two files do not create the same folder. */
export function createFolderFinder(queries: QueryClient) {
  const found = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()

  async function findIn(parentId: string, name: string): Promise<string> {
    const key = `${parentId}/${name}`
    const known = found.get(key)
    if (known !== undefined) return known
    const { folderList } = await queries.fetchQuery(folderQuery(parentId))
    const existing = folderList.find((folder) => folder.name === name)
    const { id } = existing ?? (await callApi<FolderBody>('POST', 'videos/folders', { body: { name, parent: parentId } }))
    if (!existing) await queries.invalidateQueries({ queryKey: ['folders'] })
    found.set(key, id)
    return id
  }

  return (rootId: string, path: readonly string[]): Promise<string> => {
    const finding = last.then(async () => {
      let folderId = rootId
      for (const name of path) folderId = await findIn(folderId, name.slice(0, 255))
      return folderId
    })
    last = finding.catch(() => undefined)
    return finding
  }
}
