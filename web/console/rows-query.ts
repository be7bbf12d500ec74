import { type QueryKey, queryOptions } from '@tanstack/react-query'
import { callApi } from './api.ts'

type RowsQueryOptions = { queryKey?: QueryKey; query?: Readonly<Record<string, string | number | undefined>> }

/** The rows of a list of the API, such as `rowsQuery<Key>('keys')`. */
export function rowsQuery<Row>(path: string, { queryKey = [path], query }: RowsQueryOptions = {}) {
  return queryOptions({
    queryKey,
    queryFn: ({ signal }) => callApi<{ rows: Row[] }>('GET', path, { query, signal }),
    select: ({ rows }) => rows,
  })
}
