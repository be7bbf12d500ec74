import { type Static, Type } from 'typebox'
import { findSummaries } from '../../catalogue/video.ts'
import { Failure } from '../../errors.ts'
import { listSessions, type StopDeps, type StopTarget, stopSessions } from '../../playback/sessions/stop.ts'
import { findViewerNames } from '../../viewers/viewer-store.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'
import { ViewerNameBody } from './viewer-name.ts'

const MAX_ROWS = 1000

const UserId = Type.String({ description: 'of its OTP', examples: ['reader-4711'] })
const VideoId = Type.String({ description: 'id of the video', examples: [EXAMPLE.videoId] })

const ListQuery = Type.Object({ userId: Type.Optional(UserId), video: Type.Optional(VideoId) })
const SessionBody = Type.Object({
  session: Type.String({ description: 'its id, with which it can be stopped' }),
  userId: Type.Union([Type.String(), Type.Null()]),
  viewer: ViewerNameBody,
  video: VideoId,
  title: Type.Union([Type.String(), Type.Null()], { description: 'of the video; null: it was deleted' }),
  startedAt: Type.String({ description: 'when its OTP was redeemed, ISO 8601' }),
  lastSeenAt: Type.String({ description: 'its last request, ISO 8601; a few seconds late' }),
  address: Type.Union([Type.String(), Type.Null()], { description: 'where its OTP was redeemed' }),
  country: Type.Union([Type.String(), Type.Null()], { description: 'of the address, ISO 3166-1 alpha-2; null: not known' }),
  userAgent: Type.Union([Type.String(), Type.Null()]),
  drawnS: Type.Union([Type.Integer(), Type.Null()], {
    description: 'seconds of video for which it got keys; null after a restart of the server',
  }),
  playedS: Type.Union([Type.Integer(), Type.Null()], { description: 'seconds of video that its player reports as played' }),
})
const ListReply = Type.Object({ rows: Type.Array(SessionBody) })
export type SessionListBody = Static<typeof ListReply>

const Target = Type.Object({
  session: Type.Optional(Type.String({ description: 'a session, by its id' })),
  userId: Type.Optional(Type.String({ description: 'all sessions of a viewer', examples: ['reader-4711'] })),
  video: Type.Optional(Type.String({ description: 'all sessions on a video' })),
  otp: Type.Optional(Type.String({ description: 'the session of an OTP; an OTP that is not spent yet opens nothing any more' })),
})
const StopReply = Type.Object({ message: Type.Literal('Stopped'), count: Type.Integer({ description: 'how many sessions' }) })

type SessionRoutesDeps = { stops: StopDeps }

/** Who watches the account's videos, and how it stops them. */
export function sessionRoutes(app: App, { stops }: SessionRoutesDeps): void {
  app.get(
    '/sessions',
    operation('viewer', {
      summary: 'List playback sessions',
      description: `Who watches now: the playback sessions that were started and whose page is open, the newest first, at most ${MAX_ROWS}. Filter by viewer or video. A viewer who left can still be stopped.`,
      querystring: ListQuery,
      response: { 200: ListReply },
    }),
    async (request) => {
      const { userId, video: videoId } = request.query
      const { accountId } = authenticateRequest(request)
      const sessions = await listSessions(stops, accountId, { userId, videoId }, MAX_ROWS)
      const summaries = await findSummaries(
        stops,
        accountId,
        sessions.map(({ videoId }) => videoId),
      )
      const names = await findViewerNames(stops.db, accountId, sessions)
      return {
        rows: sessions.map(({ id, videoId, startedAtS, lastSeenAtS, ...session }) => ({
          session: id,
          viewer: names.get(session.userId ?? '') ?? null,
          video: videoId,
          title: summaries.get(videoId)?.title ?? null,
          startedAt: isoTime(startedAtS),
          lastSeenAt: isoTime(lastSeenAtS),
          ...session,
        })),
      }
    },
  )

  app.delete(
    '/sessions',
    operation('editor', {
      summary: 'Stop playback sessions',
      description:
        'Stops one session, or all of a viewer, a video or an OTP: they get no further key, and the player stops within 8 s. In the query or in the body.',
      querystring: Target,
      body: Type.Union([Target, Type.Null()]),
      response: { 200: StopReply },
    }),
    async (request) => {
      const target = readTarget({ ...request.query, ...request.body })
      const count = await stopSessions(stops, { ...changedBy(request), target })
      return { message: 'Stopped' as const, count }
    },
  )
}

function readTarget({ session, userId, video, otp }: Static<typeof Target>): StopTarget {
  const targets: StopTarget[] = [
    ...(session === undefined ? [] : [{ sessionId: session }]),
    ...(userId === undefined ? [] : [{ userId }]),
    ...(video === undefined ? [] : [{ videoId: video }]),
    ...(otp === undefined ? [] : [{ otp }]),
  ]
  const [target, ...others] = targets
  if (!target || others.length > 0)
    throw new Failure('invalid', 'Name what to stop by one of session, userId, video and otp: DELETE /api/sessions?userId=ID.')
  return target
}
