import { queryOptions } from '@tanstack/react-query'
import type { VideoListBody } from '../../../src/http/api/list.ts'
import { callApi } from '../api.ts'
import type { LibrarySearch } from './library-search.ts'

/** Rows of a page: as many as every account may ask for. */
export const PAGE_SIZE = 40

/** A page of the list, from 1. Its `count` is that of all videos that match. */
export const videosPageQuery = (search: LibrarySearch, page: number) =>
  queryOptions({
    queryKey: ['videos', 'list', search, page],
    queryFn: ({ signal }) => callApi<VideoListBody>('GET', 'videos', { query: { q: search.q, page, limit: PAGE_SIZE }, signal }),
  })
