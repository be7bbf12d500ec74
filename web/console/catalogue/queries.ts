import { keepPreviousData, type QueryClient, queryOptions } from '@tanstack/react-query'
import type { FolderContents, FolderSearchBody } from '../../../src/http/api/folders.ts'
import type { VideoListBody } from '../../../src/http/api/list.ts'
import type { ViewsBody } from '../../../src/http/console/videos.ts'
import { callApi, csvUrl } from '../api.ts'
import type { LibrarySearch } from './search.ts'
import { isUnderWay, STATES } from './status.ts'

/** Rows of a page: as many as every account may ask for. */
export const PAGE_SIZE = 40

const REFRESH_MS = 20_000
const REFRESH_UNDER_WAY_MS = 2_000

type Filter = Pick<LibrarySearch, 'q' | 'folder' | 'tags' | 'state'>
type Selection = Filter & Pick<LibrarySearch, 'sort'>

function listQuery({ q, folder, tags, state }: Filter) {
  return { q, folderId: folder, tags, status: state && STATES[state].statuses.join(',') }
}

/** Only what selects videos, which no order changes. */
export function filterOf({ q, folder, tags, state }: LibrarySearch): Filter {
  return { q, folder, tags, state }
}

/** What makes the list: a change of the view is no other one. */
export function listOf({ sort, ...search }: LibrarySearch): Selection {
  return { ...filterOf(search), sort }
}

/** Of what is searched, no more are counted with the rows: an exact count takes longer than they do. */
const COUNT_UP_TO = 1000

/** Whether a list has at least as many videos as it says, instead of exactly as many. */
export function isCountCut(filter: Filter, { count }: VideoListBody): boolean {
  return isSearch(filter) && count >= COUNT_UP_TO
}

function isSearch({ q, state }: Filter): boolean {
  return q !== undefined || state !== undefined
}

/** A page of the list, from 1. Its `count` is that of all videos that match, or else `isCountCut`. Unchanged lists are answered from the browser's cache (ETag). */
export const videosPageQuery = ({ sort, ...filter }: Selection, page: number) =>
  queryOptions({
    queryKey: ['videos', 'list', filter, sort, page],
    queryFn: ({ signal }) => {
      const countUpTo = isSearch(filter) ? COUNT_UP_TO : undefined
      return callApi<VideoListBody>('GET', 'videos', {
        query: { ...listQuery(filter), sort, page, limit: PAGE_SIZE, countUpTo },
        signal,
      })
    },
    refetchInterval: ({ state }) =>
      state.data?.rows.some(({ status, replacement }) => isUnderWay(status, replacement)) ? REFRESH_UNDER_WAY_MS : REFRESH_MS,
  })

const REFRESH_VIEWS_MS = 60_000

/** How often the videos of a page of the list, which is not empty, were viewed. */
export const viewsQuery = (rows: VideoListBody['rows']) => {
  const ids = rows.map(({ id }) => id).join(',')
  return queryOptions({
    queryKey: ['views', ids],
    queryFn: ({ signal }) => callApi<ViewsBody>('GET', 'videos/views', { query: { ids }, signal }),
    refetchInterval: REFRESH_VIEWS_MS,
  })
}

/** The same videos as a file. */
export const videosCsv = (filter: Filter) => csvUrl('videos', listQuery(filter))

/** How many videos match. */
export const videoCountQuery = (filter: Filter) =>
  queryOptions({
    queryKey: ['videos', 'count', filter],
    queryFn: ({ signal }) => callApi<VideoListBody>('GET', 'videos', { query: { ...listQuery(filter), limit: 1 }, signal }),
    select: ({ count }) => count,
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  })

export const folderQuery = (id: string) =>
  queryOptions({
    queryKey: ['folders', 'contents', id],
    queryFn: ({ signal }) => callApi<FolderContents>('GET', `videos/folders/${encodeURIComponent(id)}`, { signal }),
  })

/** All folders, or those whose names begin with a text, each with the folders around it. */
export const folderSearchQuery = (name: string) =>
  queryOptions({
    queryKey: ['folders', 'search', name],
    queryFn: ({ signal }) => callApi<FolderSearchBody>('POST', 'videos/folders/search', { body: { name }, signal }),
    placeholderData: keepPreviousData,
  })

export const tagsQuery = queryOptions({
  queryKey: ['videos', 'tags'],
  queryFn: ({ signal }) => callApi<{ rows: string[] }>('GET', 'videos/tags', { signal }),
  select: ({ rows }) => rows.toSorted((a, b) => a.localeCompare(b)),
})

/** What a change of videos, their tags or folders makes read again. */
export const LIBRARY = [['videos'], ['folders'], ['account']] as const

export async function refreshLibrary(queries: QueryClient): Promise<void> {
  await Promise.all(LIBRARY.map((queryKey) => queries.invalidateQueries({ queryKey })))
}
