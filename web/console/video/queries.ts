import { queryOptions } from '@tanstack/react-query'
import type { AudioTracksBody } from '../../../src/http/api/audio.ts'
import type { VideoFileBody } from '../../../src/http/api/files.ts'
import type { PosterCandidatesBody } from '../../../src/http/api/posters.ts'
import type { HistoryBody } from '../../../src/http/api/queue.ts'
import type { RetentionBody } from '../../../src/http/api/statistics.ts'
import type { StoryboardBody } from '../../../src/http/api/storyboard.ts'
import type { OneVideoBody } from '../../../src/http/api/video-body.ts'
import type { StoredChaptersBody } from '../../../src/http/wire/chapters.ts'
import { ApiFailure, callApi } from '../api.ts'
import { isUnderWay } from '../catalogue/status.ts'
import { listNeeded } from '../protection/annotation.ts'
import type { OtpDefaults } from '../protection/protection.ts'
import { accountDefaultsQuery } from '../protection/queries.ts'
import { installationUrl } from '../urls.ts'

const REFRESH_MS = 30_000
const REFRESH_UNDER_WAY_MS = 1_000

export const videoQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'one', id],
    queryFn: ({ signal }) => callApi<OneVideoBody>('GET', `videos/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => {
      const { status = '', replacement } = state.data ?? {}
      return isUnderWay(status, replacement) || status === 'PRE-Upload' ? REFRESH_UNDER_WAY_MS : REFRESH_MS
    },
  })

export const filesQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'files', id],
    queryFn: ({ signal }) => callApi<VideoFileBody[]>('GET', `videos/${id}/files`, { signal }),
    // An MP4 is made in the background, and captions are read out of the file.
    refetchInterval: ({ state }) => (state.data?.some(isBeingMade) ? REFRESH_UNDER_WAY_MS : REFRESH_MS),
  })

export function isBeingMade({ type, isDownloadable, enabled, error }: VideoFileBody): boolean {
  if (type === 'caption') return isDownloadable === 0 && error === undefined
  return type === 'mp4' && enabled === 1 && isDownloadable === 0
}

export const otpDefaultsQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'otp-defaults', id],
    queryFn: ({ signal }) => callApi<OtpDefaults>('GET', `videos/${id}/otp-defaults`, { signal }),
  })

/** The watermarks that an OTP of the video has unless it brings its own; null: none. */
export const defaultAnnotateQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'default-annotate', id],
    queryFn: async ({ client }): Promise<unknown> => {
      const queries = [otpDefaultsQuery(id), accountDefaultsQuery] as const
      const [ofVideo, ofAccount] = await Promise.all(queries.map((query) => client.fetchQuery({ ...query, staleTime: 0 })))
      return ofVideo?.annotate ?? ofAccount?.annotate ?? null
    },
    staleTime: 0,
  })

export const audioQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'audio', id],
    queryFn: ({ signal }) => callApi<AudioTracksBody>('GET', `videos/${id}/audio`, { signal }),
    refetchInterval: ({ state }) =>
      state.data?.tracks.some(({ state }) => state === 'waiting' || state === 'encoding') ? REFRESH_UNDER_WAY_MS : false,
  })

export const chaptersQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'chapters', id],
    queryFn: ({ signal }) => callApi<StoredChaptersBody>('GET', `videos/${id}/chapters`, { signal }),
    // What is typed is not overwritten.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })

/** Addresses of pictures are valid for an hour. */
const REFRESH_ADDRESSES_MS = 50 * 60_000

export const posterCandidatesQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'poster-candidates', id],
    async queryFn({ signal }) {
      const { candidates } = await callApi<PosterCandidatesBody>('GET', `videos/${id}/poster-candidates`, { signal })
      return candidates.map((candidate) => ({ ...candidate, url: ownAddress(candidate.url) }))
    },
    // There are none before the video is complete.
    refetchInterval: ({ state }) => (state.data?.length === 0 ? REFRESH_MS : REFRESH_ADDRESSES_MS),
  })

export const storyboardQuery = (id: string) =>
  queryOptions({
    queryKey: ['storyboard', id],
    async queryFn({ signal }) {
      const storyboard = await callApi<StoryboardBody>('GET', `videos/${id}/storyboard`, { signal })
      return { ...storyboard, sheets: storyboard.sheets.map(ownAddress) }
    },
    refetchInterval: ({ state }) => (state.data?.count === 0 ? REFRESH_MS : REFRESH_ADDRESSES_MS),
  })

export const historyQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'history', id],
    queryFn: ({ signal }) => callApi<HistoryBody>('GET', `videos/${id}/history`, { signal }),
  })

export const retentionQuery = (id: string) =>
  queryOptions({
    queryKey: ['videos', 'retention', id],
    queryFn: ({ signal }) => callApi<RetentionBody>('GET', `videos/${id}/retention`, { signal }),
  })

/** The text of a file, such as captions, read through its address of one hour. */
export async function readFileText(videoId: string, fileId: number): Promise<string> {
  const response = await fetch(await fileUrl(videoId, fileId))
  if (!response.ok) throw new ApiFailure('The file cannot be read. Try again.', { status: response.status, code: 'unreadable' })
  return response.text()
}

/** Where a file can be downloaded for an hour, at the console's own address. */
export async function fileUrl(videoId: string, fileId: number): Promise<string> {
  const { redirect } = await callApi<{ redirect: string }>('GET', `videos/${videoId}/files/${fileId}`)
  return ownAddress(redirect)
}

function ownAddress(download: string): string {
  return installationUrl(download.slice(download.indexOf('/download/') + 1)).href
}

type Otp = { otp: string; playbackInfo: string }

/**
 * The query of the player's address, for the console itself. A link plays once, so none is kept for the next visit of the page.
 * @param purpose another one gets another OTP
 */
export const previewQuery = (id: string, purpose = 'page') =>
  queryOptions({
    queryKey: ['preview', id, purpose],
    queryFn: async ({ client }) => {
      const needed = listNeeded(await client.fetchQuery(defaultAnnotateQuery(id)))
      const body = { ...(needed.includes('userId') && { withUserId: 1 }) }
      return toPlayerQuery(await callApi<Otp>('POST', `videos/${id}/preview`, { body }))
    },
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  })

/** The options of an OTP that the owner tries on a page of theirs. */
type TestOptions = Readonly<Record<string, unknown>>

const SIX_HOURS_S = 21_600

/** What a page of the owner's needs to show the video once, within six hours. */
export const testOtpQuery = (id: string, options: TestOptions) =>
  queryOptions({
    queryKey: ['test-otp', id, options],
    queryFn: () => callApi<Otp>('POST', `videos/${id}/otp`, { body: { ...options, ttl: SIX_HOURS_S } }),
    staleTime: Number.POSITIVE_INFINITY,
  })

function toPlayerQuery({ otp, playbackInfo }: Otp): string {
  return `?otp=${otp}&playbackInfo=${encodeURIComponent(playbackInfo)}`
}
