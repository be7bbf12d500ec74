import type { FastifyReply } from 'fastify'
import { type Static, Type } from 'typebox'
import { type AlertDeps, listAlerts } from '../../alerts/alert.ts'
import { ALERT_CAUSES, type AlertCause } from '../../alerts/cause.ts'
import { type CursorDeps, decodeCursor, encodeCursor } from '../../catalogue/cursor.ts'
import { Failure } from '../../errors.ts'
import { EXAMPLE } from '../docs/examples.ts'
import type { App } from '../server/app-type.ts'
import { isoTime } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { readPaging } from '../wire/paging.ts'
import { authenticateRequest } from './key.ts'

const PAGE = { default: 100, max: 1000 }

const ListQuery = Type.Object({
  cause: Type.Optional(Type.String({ description: ALERT_CAUSES.join(', '), examples: ['keys-drawn'] })),
  userId: Type.Optional(Type.String({ description: 'only of this viewer', examples: ['reader-4711'] })),
  after: Type.Optional(Type.String({ description: 'from the Link header of the previous page' })),
  limit: Type.Optional(Type.String({ description: `default ${PAGE.default}; at most ${PAGE.max}` })),
})
const AlertBody = Type.Object({
  cause: Type.String({ description: ALERT_CAUSES.join(', ') }),
  session: Type.Union([Type.String(), Type.Null()], { description: 'with which it can be stopped' }),
  userId: Type.Union([Type.String(), Type.Null()]),
  video: Type.Union([Type.String({ examples: [EXAMPLE.videoId] }), Type.Null()], {
    description: 'id of the video; null: it is about none',
  }),
  at: Type.String({ description: 'the first time on its day, ISO 8601' }),
  count: Type.Integer({ description: 'how often on that day (UTC)' }),
  numbers: Type.Record(Type.String(), Type.Union([Type.Number(), Type.String()]), {
    description: 'what was measured the first time; they depend on the cause',
  }),
})
const ListReply = Type.Object({ rows: Type.Array(AlertBody) })

export type AlertRoutesDeps = AlertDeps & CursorDeps & { publicUrl(): string }

/** What the account should look at. */
export function alertRoutes(app: App, deps: AlertRoutesDeps): void {
  app.get(
    '/alerts',
    {
      config: { permission: 'viewer' },
      schema: {
        summary: 'List alerts',
        description:
          'Suspicious playback, and what the operator should look at, the newest first; kept for 90 days (`REELGATE_VIEWER_DATA_DAYS`). One row for each cause, viewer and day. Follow the `Link` header (`rel="next"`) for more.',
        querystring: ListQuery,
        response: { 200: ListReply },
      },
    },
    async (request, reply) => {
      const { accountId } = authenticateRequest(request)
      const { query } = request
      refuseMisspelledNames(Object.keys(query), Object.keys(ListQuery.properties))
      const { limit } = readPaging(query, PAGE)
      const below = query.after === undefined ? undefined : decodeCursor(deps, accountId, query.after)
      const filter = { cause: readCause(query.cause), userId: query.userId || undefined }
      const alerts = await listAlerts(deps, accountId, filter, { limit, below })
      const last = alerts.length === limit ? alerts.at(-1) : undefined
      if (last) linkNext(reply, `${deps.publicUrl()}${app.prefix}`, { ...query, after: encodeCursor(deps, accountId, last.id) })
      return {
        rows: alerts.map(({ cause, sessionId, userId, videoId, atS, occurrenceCount, numbers }) => ({
          ...{ cause, session: sessionId, userId, video: videoId || null, at: isoTime(atS), count: occurrenceCount, numbers },
        })),
      }
    },
  )
}

function linkNext(reply: FastifyReply, interfaceUrl: string, query: Static<typeof ListQuery>): void {
  reply.header('Link', `<${interfaceUrl}/alerts?${new URLSearchParams(query)}>; rel="next"`)
}

/** @throws Failure `invalid` */
function readCause(text: string | undefined): AlertCause | undefined {
  if (text === undefined || text === '') return undefined
  const cause = ALERT_CAUSES.find((known) => known === text)
  if (!cause) throw new Failure('invalid', `There is no such cause. It is one of ${ALERT_CAUSES.join(', ')}.`)
  return cause
}
