import { type Static, Type } from 'typebox'
import { getStatistics, getUsageByVideo, type StatisticsDeps, USAGE_SPANS } from '../../usage/statistics.ts'
import { getRetention, type RetentionDeps } from '../../viewers/retention.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isCsvRequest } from '../wire/list-csv.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'
import { MAX_CSV_ROWS } from './paged-list.ts'
import { VideoParams } from './videos.ts'

const MAX_USAGE_ROWS = 1_000

const StatisticsQuery = Type.Object({
  from: Type.String({ description: 'the first day in UTC, YYYY-MM-DD', examples: ['2026-11-01'] }),
  to: Type.String({ description: 'the last day', examples: ['2026-11-21'] }),
  video: Type.Optional(Type.String({ description: 'id of a video: only of this one' })),
})
const Views = Type.Integer({ description: 'playback sessions that were given a first key' })
const SentBytes = Type.Integer({ description: 'bytes of video that were sent' })
const StatisticsReply = Type.Object({
  days: Type.Array(
    Type.Object({
      day: Type.String({ description: 'YYYY-MM-DD, UTC' }),
      views: Views,
      sentBytes: SentBytes,
      storageBytes: Type.Union([Type.Integer(), Type.Null()], {
        description:
          'what the videos took on the disk when it was last measured on that day, those in the trash included; today: now. null: not measured, or one video was asked for',
      }),
    }),
    { description: 'each day of the period' },
  ),
  videos: Type.Array(
    Type.Object({
      video: Type.String({ description: 'its id', examples: [EXAMPLE.videoId] }),
      title: Type.Union([Type.String(), Type.Null()], { description: 'null: it was deleted' }),
      views: Views,
      sentBytes: SentBytes,
    }),
    { description: 'the 20 with the most views in the period; empty where one video was asked for' },
  ),
})
export type StatisticsBody = Static<typeof StatisticsReply>
const UsageQuery = Type.Object({
  from: StatisticsQuery.properties.from,
  to: StatisticsQuery.properties.to,
  by: Type.Optional(
    Type.Union(
      USAGE_SPANS.map((span) => Type.Literal(span)),
      { description: 'month if absent; all: sums of the whole period', examples: ['month'] },
    ),
  ),
})
const UsageReply = Type.Object({
  rows: Type.Array(
    Type.Object({
      span: Type.String({ description: 'a month, a day, or the whole period', examples: ['2026-11'] }),
      video: Type.String({ description: 'its id', examples: [EXAMPLE.videoId] }),
      title: Type.Union([Type.String(), Type.Null()], { description: 'null: it was deleted' }),
      views: Views,
      sentBytes: SentBytes,
    }),
  ),
})
export type UsageBody = Static<typeof UsageReply>
const RetentionReply = Type.Object({
  lengthS: Type.Number({ description: 'of the video; 0 before the probe' }),
  viewers: Type.Integer({ description: 'who watched any of it, by the userId of their OTPs; at most the newest 20 000' }),
  completed: Type.Integer({ description: 'who watched 90 % of it' }),
  averageWatchedS: Type.Number({ description: 'of one viewer; seconds that were watched again count once' }),
  parts: Type.Array(
    Type.Object({
      fromS: Type.Integer(),
      toS: Type.Integer(),
      viewers: Type.Number({ description: 'who watched this part, on average over its seconds' }),
    }),
    { description: 'up to 100 equal parts of the video' },
  ),
})
export type RetentionBody = Static<typeof RetentionReply>

type StatisticsRoutesDeps = StatisticsDeps & RetentionDeps

/** What the charts of the console show. */
export function statisticsRoutes(app: App, deps: StatisticsRoutesDeps): void {
  app.get(
    '/statistics',
    operation('viewer', {
      summary: 'Views, bandwidth and storage by day',
      description:
        'Of the account, or of one video; kept for 400 days. Counted a few seconds late; storage is measured every hour.',
      querystring: StatisticsQuery,
      response: { 200: StatisticsReply },
    }),
    async (request): Promise<Static<typeof StatisticsReply>> => {
      refuseMisspelledNames(Object.keys(request.query), Object.keys(StatisticsQuery.properties))
      const { from, to, video } = request.query
      const { accountId } = authenticateRequest(request)
      const { days, videos } = await getStatistics(deps, accountId, { from, to, videoId: video || undefined })
      return {
        days: days.map(({ day, viewCount: views, sentBytes, storageBytes = null }) => ({ day, views, sentBytes, storageBytes })),
        videos: videos.map(({ videoId, title, viewCount: views, sentBytes }) => ({ video: videoId, title, views, sentBytes })),
      }
    },
  )

  app.get(
    '/usage',
    operation('viewer', {
      summary: 'Usage by month and video',
      description: `Views and bytes of each video, by month, by day or of the whole period (UTC); the newest first, and the most viewed video first. At most ${MAX_USAGE_ROWS} rows; as CSV all. Kept for 400 days, also of videos that were deleted.`,
      querystring: UsageQuery,
      response: { 200: UsageReply },
    }),
    async (request): Promise<Static<typeof UsageReply>> => {
      refuseMisspelledNames(Object.keys(request.query), Object.keys(UsageQuery.properties))
      const { accountId } = authenticateRequest(request)
      const { from, to, by = 'month' } = request.query
      const limit = isCsvRequest(request) ? MAX_CSV_ROWS : MAX_USAGE_ROWS
      const usage = await getUsageByVideo(deps, accountId, { from, to, by }, limit)
      return {
        rows: usage.map(({ videoId, viewCount, ...row }) => ({ ...row, video: videoId, views: viewCount })),
      }
    },
  )

  app.get(
    '/videos/:id/retention',
    operation('viewer', {
      summary: 'How much of a video was watched',
      description: 'How many viewers watched each part of it. Viewers are known where their OTPs have a `userId`.',
      params: VideoParams,
      response: { 200: RetentionReply },
    }),
    async (request): Promise<Static<typeof RetentionReply>> => {
      const found = await getRetention(deps, authenticateRequest(request).accountId, request.params.id)
      const { viewerCount: viewers, completedCount: completed, parts, ...rest } = found
      return { ...rest, viewers, completed, parts: parts.map(({ viewerCount, ...part }) => ({ ...part, viewers: viewerCount })) }
    },
  )
}
