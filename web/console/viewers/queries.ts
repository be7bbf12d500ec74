import { infiniteQueryOptions } from '@tanstack/react-query'
import type { RefusalListBody } from '../../../src/http/api/refusals.ts'
import type { SessionListBody } from '../../../src/http/api/sessions.ts'
import type { ViewingListBody, WatchedBody } from '../../../src/http/api/viewers.ts'
import { callApiForPage } from '../api.ts'
import { rowsQuery } from '../rows-query.ts'

export type Session = SessionListBody['rows'][number]
export type Viewing = ViewingListBody['rows'][number]
export type Watcher = WatchedBody['rows'][number]
export type ViewerName = Session['viewer']
export type Refusal = RefusalListBody['rows'][number]
export type SessionFilter = { userId?: string; video?: string }

const REFRESH_MS = 5_000
/** As many as the API lists at once. */
const MAX_VIEWINGS = 1_000

export const sessionsQuery = (filter: SessionFilter = {}) => ({
  ...rowsQuery<Session>('sessions', { queryKey: ['sessions', filter], query: filter }),
  refetchInterval: REFRESH_MS,
})

export const viewingsOfViewerQuery = (userId: string) =>
  rowsQuery<Viewing>(`viewers/${encodeURIComponent(userId)}`, { query: { limit: MAX_VIEWINGS } })

export const viewingsOfVideoQuery = (videoId: string) =>
  rowsQuery<Viewing>(`videos/${videoId}/viewers`, { query: { limit: MAX_VIEWINGS } })

const REFUSALS_ON_PAGE = 100

/** Viewers who were refused, newest first. */
export const refusalsQuery = infiniteQueryOptions({
  queryKey: ['refusals'],
  queryFn: ({ pageParam, signal }) =>
    callApiForPage<RefusalListBody>('refusals', { query: { limit: REFUSALS_ON_PAGE, after: pageParam }, signal }),
  initialPageParam: '',
  getNextPageParam: ({ after }) => after,
})

const DAY_MS = 24 * 3600 * 1000

/** Who watched in the last days, by viewer, those who watched most first. */
export const watchedQuery = (days: number) =>
  rowsQuery<Watcher>('watched', { queryKey: ['watched', days], query: lastDays(days) })

/** The first and the last of the last days in UTC, as the API counts them. */
export function lastDays(days: number): { from: string; to: string } {
  return { from: dateOf(Date.now() - (days - 1) * DAY_MS), to: dateOf(Date.now()) }
}

function dateOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}
