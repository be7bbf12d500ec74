import { type Static, Type } from 'typebox'
import { findSummaries } from '../../catalogue/video.ts'
import type { VideoSummary } from '../../catalogue/video-store.ts'
import { type StopDeps, stopAndEraseViewer } from '../../playback/sessions/stop.ts'
import { wholeSeconds } from '../../viewers/intervals.ts'
import { findViewerNames } from '../../viewers/viewer-store.ts'
import {
  type EraseDeps,
  type ListedViewing,
  listVideosOfViewer,
  listViewersOfVideo,
  listWatchedDays,
  listWatchers,
  type ViewersDeps,
} from '../../viewers/viewers.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { csvDocument } from '../wire/csv.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime, isoTimeOrNull } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'
import { PAGED_QUERY, type PagedListDeps, readPagedList } from './paged-list.ts'
import { ViewerNameBody } from './viewer-name.ts'

const PageQuery = Type.Object(PAGED_QUERY)
const UserId = Type.String({ description: 'of the OTPs', examples: ['reader-4711'] })
const VideoId = Type.String({ description: 'id of the video', examples: [EXAMPLE.videoId] })
const ViewingBody = Type.Object({
  userId: UserId,
  viewer: ViewerNameBody,
  video: VideoId,
  title: Type.Union([Type.String(), Type.Null()], { description: 'of the video; null: it was deleted' }),
  lengthS: Type.Union([Type.Integer(), Type.Null()], { description: 'of the video, in whole seconds; null: it was deleted' }),
  watchedS: Type.Integer({ description: 'seconds of the video that were watched; those watched again count once' }),
  intervals: Type.Array(Type.Array(Type.Integer()), { description: 'from and to, in seconds of the video' }),
  positionS: Type.Number({ description: 'behind the last second that was watched; the viewer resumes there' }),
  beganAt: Type.String({ description: 'ISO 8601' }),
  lastAt: Type.String({ description: 'ISO 8601' }),
  completedAt: Type.Union([Type.String(), Type.Null()], { description: 'when 90 % were watched, ISO 8601; null: not yet' }),
})
const ListReply = Type.Object({ rows: Type.Array(ViewingBody) })
export type ViewingListBody = Static<typeof ListReply>
const DaysQuery = Type.Object({
  from: Type.String({ description: 'the first day in UTC, YYYY-MM-DD', examples: ['2026-11-01'] }),
  to: Type.String({ description: 'the last day', examples: ['2026-11-21'] }),
})
const DaysReply = {
  200: {
    description: 'CSV of date, userId, video, watchedS, name and email',
    content: { 'text/csv': { schema: Type.String() } },
  },
}

const WatchedReply = Type.Object({
  rows: Type.Array(
    Type.Object({
      userId: UserId,
      viewer: ViewerNameBody,
      videos: Type.Integer({ description: 'of how many videos something was watched' }),
      watchedS: Type.Integer({ description: 'seconds, those of each day' }),
      lastDate: Type.String({ description: 'the last day in UTC, YYYY-MM-DD' }),
    }),
  ),
})
export type WatchedBody = Static<typeof WatchedReply>
const EraseReply = Type.Object({
  message: Type.Literal('Erased'),
  videos: Type.Integer({ description: 'of how many videos something was watched' }),
  sessions: Type.Integer({ description: 'how many were stopped' }),
})

type ViewerRoutesDeps = PagedListDeps & ViewersDeps & Omit<EraseDeps, 'db'> & { slowQueryDb: ViewersDeps['db']; stops: StopDeps }

/** Who has watched what: docs/videos.md, "What viewers watched". */
export function viewerRoutes(app: App, deps: ViewerRoutesDeps): void {
  app.get(
    '/viewers/:userId',
    operation('viewer', {
      summary: 'List what a viewer watched',
      description: 'One row for each video, the newest first. Follow the `Link` header (`rel="next"`) for more.',
      params: Type.Object({ userId: UserId }),
      querystring: PageQuery,
      response: { 200: ListReply },
    }),
    async (request, reply) => {
      const { accountId } = authenticateRequest(request)
      const { userId } = request.params
      const viewings = await readPagedList(deps, request, reply, (page) => listVideosOfViewer(deps, { accountId, userId }, page))
      return { rows: await viewingBodies(deps, accountId, viewings) }
    },
  )

  app.delete(
    '/viewers/:userId',
    operation('editor', {
      summary: 'Erase a viewer',
      description:
        'Stops the sessions of the viewer, and removes everything that names the viewer, except webhook deliveries, which go by themselves.',
      params: Type.Object({ userId: UserId }),
      response: { 200: EraseReply },
    }),
    async (request) => {
      const { userId } = request.params
      return { message: 'Erased' as const, ...(await stopAndEraseViewer(deps, { ...changedBy(request), userId })) }
    },
  )

  app.get(
    '/videos/:id/viewers',
    operation('viewer', {
      summary: 'List who watched a video',
      description: 'One row for each viewer, the newest first. Follow the `Link` header (`rel="next"`) for more.',
      params: Type.Object({ id: VideoId }),
      querystring: PageQuery,
      response: { 200: ListReply },
    }),
    async (request, reply) => {
      const { accountId } = authenticateRequest(request)
      const { id: videoId } = request.params
      const viewings = await readPagedList(deps, request, reply, (page) => listViewersOfVideo(deps, { accountId, videoId }, page))
      return { rows: await viewingBodies(deps, accountId, viewings) }
    },
  )

  app.get(
    '/viewers',
    {
      config: { permission: 'viewer', described: { response: DaysReply } },
      schema: {
        summary: 'Seconds watched on each day',
        description: 'A CSV file with a row for each day, viewer and video.',
        querystring: DaysQuery,
      },
    },
    async (request, reply) => {
      const { from: fromDate, to: toDate } = request.query
      const { accountId } = authenticateRequest(request)
      const days = await listWatchedDays({ db: deps.slowQueryDb }, accountId, { fromDate, toDate })
      const names = await findViewerNames(deps.slowQueryDb, accountId, days)
      const rows = days.map(({ date, userId, videoId, watchedS }) => {
        const { name, email } = names.get(userId) ?? {}
        return [date, userId, videoId, watchedS, name ?? '', email ?? '']
      })
      const heads = ['date', 'userId', 'video', 'watchedS', 'name', 'email']
      return reply.type('text/csv; charset=utf-8').send(csvDocument([heads, ...rows]))
    },
  )

  app.get(
    '/watched',
    operation('viewer', {
      summary: 'Who watched on some days',
      description: 'How much each viewer watched, those who watched most first.',
      querystring: DaysQuery,
      response: { 200: WatchedReply },
    }),
    async (request) => {
      const { from: fromDate, to: toDate } = request.query
      const { accountId } = authenticateRequest(request)
      const viewers = await listWatchers({ db: deps.slowQueryDb }, accountId, { fromDate, toDate })
      const names = await findViewerNames(deps.slowQueryDb, accountId, viewers)
      return { rows: viewers.map((viewer) => ({ ...viewer, viewer: names.get(viewer.userId) ?? null })) }
    },
  )
}

async function viewingBodies(
  deps: ViewersDeps,
  accountId: string,
  viewings: readonly ListedViewing[],
): Promise<Static<typeof ViewingBody>[]> {
  const summaries = await findSummaries(
    deps,
    accountId,
    viewings.map(({ videoId }) => videoId),
  )
  const names = await findViewerNames(deps.db, accountId, viewings)
  return viewings.map((viewing) => ({
    ...viewingBody(viewing, summaries.get(viewing.videoId)),
    viewer: names.get(viewing.userId) ?? null,
  }))
}

function viewingBody(viewing: ListedViewing, video: VideoSummary | undefined) {
  const { userId, videoId, watchedS, intervals, positionS } = viewing
  return {
    userId,
    video: videoId,
    title: video?.title ?? null,
    lengthS: video ? wholeSeconds(video.durationS) : null,
    watchedS,
    intervals,
    positionS,
    beganAt: isoTime(viewing.beganAtS),
    lastAt: isoTime(viewing.lastAtS),
    completedAt: isoTimeOrNull(viewing.completedAtS),
  }
}
