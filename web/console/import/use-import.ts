import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ApiFailure, callApi } from '../api.ts'
import { ROOT_FOLDER_ID } from '../library/folder-path.ts'
import { refreshLibrary } from '../library/queries.ts'
import { createFolderFinder } from '../upload/find-folder.ts'
import type { ImportRow } from './import-list.ts'

/** What has become of a row: the id of its video, or why there is none. */
export type ImportResult = { videoId: string } | { problem: string }

export type ImportRun = {
  isRunning: boolean
  results: ReadonlyMap<ImportRow, ImportResult>
  start(rows: readonly ImportRow[]): Promise<void>
  stop(): void
}

/** Adds one video after the other; the server fetches them, also after the page is closed. */
export function useImport(): ImportRun {
  const queries = useQueryClient()
  const [findFolder] = useState(() => createFolderFinder(queries))
  const [isRunning, setRunning] = useState(false)
  const [results, setResults] = useState<ReadonlyMap<ImportRow, ImportResult>>(new Map())
  const stopping = useRef(new AbortController())

  async function start(rows: readonly ImportRow[]) {
    stopping.current = new AbortController()
    const { signal } = stopping.current
    setRunning(true)
    for (const row of rows) {
      if (signal.aborted) break
      const result = await importOne(row).catch((error: unknown) => ({ problem: sentenceOf(error) }))
      setResults((before) => new Map(before).set(row, result))
    }
    setRunning(false)
    await refreshLibrary(queries)
  }

  async function importOne({ url, title, tags, folders, addedAtS }: ImportRow): Promise<ImportResult> {
    const folderId = await findFolder(ROOT_FOLDER_ID, folders)
    const body = {
      url,
      folderId,
      ...(title === '' ? {} : { title }),
      ...(addedAtS === undefined ? {} : { upload_time: addedAtS }),
    }
    const { id } = await whenAllowed(() => callApi<{ id: string }>('PUT', 'videos/importUrl', { body }))
    if (tags.length > 0) await whenAllowed(() => callApi<unknown>('POST', 'videos/tags', { body: { videos: [id], tags } }))
    return { videoId: id }
  }

  return { isRunning, results, start, stop: () => stopping.current.abort() }
}

/** Waits as long as the server asks when there were too many calls. */
async function whenAllowed<Reply>(call: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.status !== 429) throw error
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterS ?? 5) * 1000))
    }
  }
}

function sentenceOf(error: unknown): string {
  return error instanceof ApiFailure ? error.message : 'This row could not be imported. Try it again alone.'
}
