import { type Static, Type } from 'typebox'
import { type AlertDeps, listAlerts, markSeen, type SeenDeps } from '../../alerts/alert.ts'
import { ALERT_CAUSES, type AlertCause } from '../../alerts/cause.ts'
import { findSummaries } from '../../catalogue/video.ts'
import { Failure } from '../../errors.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'
import { PAGED_QUERY, type PagedListDeps, readPagedList } from './paged-list.ts'

const ListQuery = Type.Object({
  cause: Type.Optional(Type.String({ description: ALERT_CAUSES.join(', '), examples: ['keys-drawn'] })),
  userId: Type.Optional(Type.String({ description: 'only of this viewer', examples: ['reader-4711'] })),
  ...PAGED_QUERY,
})
const AlertBody = Type.Object({
  id: Type.Integer({ description: 'rises with each alert' }),
  cause: Type.String({ description: ALERT_CAUSES.join(', ') }),
  session: Type.Union([Type.String(), Type.Null()], { description: 'with which it can be stopped' }),
  userId: Type.Union([Type.String(), Type.Null()]),
  video: Type.Union([Type.String({ examples: [EXAMPLE.videoId] }), Type.Null()], {
    description: 'id of the video; null: it is about none',
  }),
  title: Type.Union([Type.String(), Type.Null()], { description: 'of the video; null: it was deleted, or there is none' }),
  videos: Type.Array(Type.Object({ id: Type.String(), title: Type.Union([Type.String(), Type.Null()]) }), {
    description: 'all videos of that day, at most 20; `video` is the first',
  }),
  at: Type.String({ description: 'the first time on its day, ISO 8601' }),
  count: Type.Integer({ description: 'how often on that day (UTC)' }),
  numbers: Type.Record(Type.String(), Type.Union([Type.Number(), Type.String()]), {
    description: 'what was measured the first time; they depend on the cause',
  }),
  seen: Type.Boolean({ description: 'whether it was marked as seen' }),
})
const ListReply = Type.Object({ rows: Type.Array(AlertBody) })
export type AlertListBody = Static<typeof ListReply>

const SeenBody = Type.Object({
  upTo: Type.Integer({ description: 'id of the newest alert that was seen', minimum: 1, examples: [12] }),
})
const SeenReply = Type.Object({ message: Type.Literal('Seen') })

type AlertRoutesDeps = AlertDeps & SeenDeps & PagedListDeps

/** What the account should look at. */
export function alertRoutes(app: App, deps: AlertRoutesDeps): void {
  app.get(
    '/alerts',
    operation('viewer', {
      summary: 'List alerts',
      description:
        'Suspicious playback, and what the operator should look at, the newest first; kept for 90 days (`REELGATE_VIEWER_DATA_DAYS`). One row for each cause, viewer and day. Follow the `Link` header (`rel="next"`) for more.',
      querystring: ListQuery,
      response: { 200: ListReply },
    }),
    async (request, reply) => {
      const { accountId } = authenticateRequest(request)
      const { query } = request
      refuseMisspelledNames(Object.keys(query), Object.keys(ListQuery.properties))
      const filter = { cause: readCause(query.cause), userId: query.userId || undefined }
      const alerts = await readPagedList(deps, request, reply, (page) => listAlerts(deps, accountId, filter, page))
      const summaries = await findSummaries(
        deps,
        accountId,
        alerts.flatMap(({ videoIds }) => videoIds),
      )
      return {
        rows: alerts.map(({ id, cause, sessionId, userId, videoId, videoIds, atS, occurrenceCount, numbers, isSeen }) => ({
          ...{ id, cause, session: sessionId, userId, video: videoId || null, title: summaries.get(videoId)?.title ?? null },
          videos: videoIds.map((id) => ({ id, title: summaries.get(id)?.title ?? null })),
          ...{ at: isoTime(atS), count: occurrenceCount, numbers, seen: isSeen },
        })),
      }
    },
  )

  app.put(
    '/alerts/seen',
    operation('editor', {
      summary: 'Mark alerts as seen',
      description: 'An alert and all older ones: the console shows them on every page until then.',
      body: SeenBody,
      response: { 200: SeenReply },
    }),
    async (request) => {
      await markSeen(deps, authenticateRequest(request).accountId, request.body.upTo)
      return { message: 'Seen' as const }
    },
  )
}

/** @throws Failure `invalid` */
function readCause(text: string | undefined): AlertCause | undefined {
  if (text === undefined || text === '') return undefined
  const cause = ALERT_CAUSES.find((known) => known === text)
  if (!cause) throw new Failure('invalid', `There is no such cause. It is one of ${ALERT_CAUSES.join(', ')}.`)
  return cause
}
