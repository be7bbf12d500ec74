import { queryOptions } from '@tanstack/react-query'
import type { AlertListBody } from '../../../src/http/api/alerts.ts'
import { callApi } from '../api.ts'

export type Alert = AlertListBody['rows'][number]

const REFRESH_MS = 30_000
/** Of the last days, newest first: what is older is in the API. */
const MAX_ROWS = 200

export const alertsQuery = queryOptions({
  queryKey: ['alerts'],
  queryFn: ({ signal }) => callApi<AlertListBody>('GET', 'alerts', { query: { limit: MAX_ROWS }, signal }),
  select: ({ rows }) => rows,
  refetchInterval: REFRESH_MS,
})
