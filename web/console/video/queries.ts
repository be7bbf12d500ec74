import { queryOptions } from '@tanstack/react-query'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { isUnderWay } from '../library/status.ts'

const REFRESH_MS = 30_000
const REFRESH_UNDER_WAY_MS = 1_000

export const videoQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'one', id],
    queryFn: ({ signal }) => callApi<VideoBody>('GET', `videos/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => {
      const status = state.data?.status ?? ''
      return isUnderWay(status) || status === 'PRE-Upload' ? REFRESH_UNDER_WAY_MS : REFRESH_MS
    },
  })

type Otp = { otp: string; playbackInfo: string }

/** The host of the console as an expression, so that a default of the account's for other sites does not refuse the owner's own look. */
const consoleHost = () => `^${location.hostname.replaceAll(/[.[\]]/g, '\\$&')}$`

/** The query of the player's address, for the console itself. A link plays once, so none is kept for the next visit of the page. */
export const previewQuery = (id: string) =>
  queryOptions({
    queryKey: ['preview', id],
    queryFn: async () =>
      toPlayerQuery(await callApi<Otp>('POST', `videos/${id}/otp`, { body: { ttl: 600, whitelisthref: consoleHost() } })),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })

/** The query of the player's address for a page of the owner's, valid for six hours. */
export const testLinkQuery = (id: string) =>
  queryOptions({
    queryKey: ['test-link', id],
    queryFn: async () => toPlayerQuery(await callApi<Otp>('POST', `videos/${id}/otp`, { body: {} })),
    staleTime: Number.POSITIVE_INFINITY,
  })

function toPlayerQuery({ otp, playbackInfo }: Otp): string {
  return `?otp=${otp}&playbackInfo=${encodeURIComponent(playbackInfo)}`
}
