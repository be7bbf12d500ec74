import { queryOptions } from '@tanstack/react-query'
import type { TrashBody } from '../../../src/http/api/trash.ts'
import { callApi } from '../api.ts'

/** As many as the API answers with in one page, and as one call restores. */
const MAX_ROWS = 1_000

/** Below `videos`, so that what changes the library refreshes it, too. */
export const trashQuery = queryOptions({
  queryKey: ['videos', 'trash'],
  queryFn: ({ signal }) => callApi<TrashBody>('GET', 'trash', { query: { limit: MAX_ROWS }, signal }),
})
