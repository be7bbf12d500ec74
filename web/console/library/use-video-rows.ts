import { keepPreviousData, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { filterOf, isCountCut, listOf, PAGE_SIZE, videoCountQuery, videosPageQuery, viewsQuery } from '../catalogue/queries.ts'
import type { LibrarySearch } from '../catalogue/search.ts'

export type VideoRows = {
  /** Of all videos that match, or of the first of them until they are counted; undefined until the first page has been read. */
  count: number | undefined
  isCounted: boolean
  error: Error | null
  retry(): void
  /** Undefined while its page is loading. */
  rowAt(index: number): VideoBody | undefined
  /** How often a row's video was viewed; undefined until that has been read. */
  viewsAt(index: number): number | undefined
  /** What is on the screen, first and last: their pages are read. */
  show(first: number, last: number): void
  /** The rows from one to another, read if they have not been yet. */
  readRange(first: number, last: number): Promise<VideoBody[]>
}

const pageOf = (index: number) => Math.floor(index / PAGE_SIZE) + 1

/** The list of videos as if it were in memory: of 100 000 rows only the pages that are looked at are read. */
export function useVideoRows(search: LibrarySearch): VideoRows {
  const queries = useQueryClient()
  const filter = filterOf(search)
  const list = listOf(search)
  const [shown, setShown] = useState({ firstPage: 1, lastPage: 1 })
  const first = useQuery({ ...videosPageQuery(list, 1), placeholderData: keepPreviousData })
  // The links of states ask for it after a pause in typing.
  const exact = useQuery({ ...videoCountQuery(filter), placeholderData: undefined, enabled: false })
  const pages = Array.from({ length: shown.lastPage - shown.firstPage + 1 }, (_, index) => shown.firstPage + index)
  const results = useQueries({ queries: pages.map((page) => videosPageQuery(list, page)) })

  const resultOf = (page: number) => (page === 1 ? first : results[page - shown.firstPage])
  const rowsOf = (page: number) => resultOf(page)?.data?.rows ?? []
  const filled = pages.filter((page) => rowsOf(page).length > 0)
  const views = useQueries({ queries: filled.map((page) => viewsQuery(rowsOf(page))) })

  const rowAt = (index: number) => rowsOf(pageOf(index))[index % PAGE_SIZE]
  const viewsAt = (index: number) => {
    const id = rowAt(index)?.id
    return views[filled.indexOf(pageOf(index))]?.data?.rows.find((row) => row.id === id)?.views
  }
  const show = useCallback((firstIndex: number, lastIndex: number) => {
    const next = { firstPage: pageOf(firstIndex), lastPage: pageOf(Math.max(firstIndex, lastIndex)) }
    setShown((now) => (now.firstPage === next.firstPage && now.lastPage === next.lastPage ? now : next))
  }, [])
  const readRange = async (firstIndex: number, lastIndex: number) => {
    const rows: VideoBody[] = []
    for (let page = pageOf(firstIndex); page <= pageOf(lastIndex); page++) {
      const { rows: ofPage } = await queries.ensureQueryData(videosPageQuery(list, page))
      const offset = (page - 1) * PAGE_SIZE
      rows.push(...ofPage.filter((_, index) => offset + index >= firstIndex && offset + index <= lastIndex))
    }
    return rows
  }
  // What was empty when it was last read may have a video now: it counts as empty once it has been read again.
  const mayBeOutdated = first.data?.count === 0 && first.isFetching && !first.isFetchedAfterMount
  const known = mayBeOutdated ? undefined : first.data
  const failed = [first, ...results].find(({ error }) => error !== null)
  const isCut = known !== undefined && isCountCut(filter, known)
  return {
    count: isCut ? Math.max(known.count, exact.data ?? 0) : known?.count,
    isCounted: known !== undefined && (!isCut || exact.data !== undefined),
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
    rowAt,
    viewsAt,
    show,
    readRange,
  }
}
