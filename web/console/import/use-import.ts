import { useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import type { ImportListBody, ImportListReply } from '../../../src/http/api/imports.ts'
import { ApiFailure, callApi } from '../api.ts'
import { refreshLibrary } from '../catalogue/queries.ts'
import type { ImportRow } from './import-list.ts'

/** What has become of a row: the id of its video, or why there is none. */
export type ImportResult = { videoId: string } | { problem: string }

export type ImportRun = {
  isRunning: boolean
  results: ReadonlyMap<ImportRow, ImportResult>
  start(rows: readonly ImportRow[]): Promise<void>
  stop(): void
}

/** As many as the server takes in one call. */
const ROWS_PER_CALL = 500

/** Adds the videos, many in one call; the server fetches them at its own pace, also after the page is closed. */
export function useImport(): ImportRun {
  const queries = useQueryClient()
  const [isRunning, setRunning] = useState(false)
  const [results, setResults] = useState<ReadonlyMap<ImportRow, ImportResult>>(new Map())
  const stopping = useRef(new AbortController())

  async function start(rows: readonly ImportRow[]) {
    stopping.current = new AbortController()
    const { signal } = stopping.current
    setRunning(true)
    for (let first = 0; first < rows.length && !signal.aborted; first += ROWS_PER_CALL) {
      const part = rows.slice(first, first + ROWS_PER_CALL)
      const found = await importRows(part).catch((error: unknown) => part.map(() => ({ problem: sentenceOf(error) })))
      setResults((before) => new Map([...before, ...part.flatMap((row, index) => entryOf(row, found[index]))]))
    }
    setRunning(false)
    await refreshLibrary(queries)
    await queries.invalidateQueries({ queryKey: ['folders'] })
  }

  return { isRunning, results, start, stop: () => stopping.current.abort() }
}

function entryOf(row: ImportRow, result: ImportResult | undefined): [ImportRow, ImportResult][] {
  return result === undefined ? [] : [[row, result]]
}

async function importRows(rows: readonly ImportRow[]): Promise<ImportResult[]> {
  const body: ImportListBody = { imports: rows.map(toImport) }
  const idempotencyKey = crypto.randomUUID() // an answer that was lost is asked for again
  const reply = await whenAccepted(() => callApi<ImportListReply>('POST', 'imports', { body, idempotencyKey }))
  return reply.imports.map((one) => ('id' in one ? { videoId: one.id } : { problem: one.message }))
}

function toImport({ url, title, tags, folders, addedAtS }: ImportRow): ImportListBody['imports'][number] {
  return {
    url,
    ...(title === '' ? {} : { title }),
    ...(addedAtS === undefined ? {} : { upload_time: addedAtS }),
    tags: [...tags],
    folders: [...folders],
  }
}

const RETRY_AFTER_S = 5
/** Calls without any answer before the rows are given up. */
const MAX_UNREACHED = 12

/** Waits as long as the server asks when there were too many calls or imports, and for a server that is away. */
async function whenAccepted<Reply>(call: () => Promise<Reply>): Promise<Reply> {
  for (let unreached = 0; ; ) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof ApiFailure) || ![0, 429, 503].includes(error.status)) throw error
      if (error.status === 0 && ++unreached >= MAX_UNREACHED) throw error
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterS ?? RETRY_AFTER_S) * 1000))
    }
  }
}

function sentenceOf(error: unknown): string {
  return error instanceof ApiFailure ? error.message : 'This row could not be imported. Try it again alone.'
}
