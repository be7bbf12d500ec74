import { type Static, Type } from 'typebox'
import { listAuditEvents } from '../../audit/audit-log.ts'
import { type CursorDeps, decodeCursor, encodeCursor } from '../../catalogue/cursor.ts'
import { type ActorNames, findActorNames } from '../../users/actor-names.ts'
import { EXAMPLE } from '../docs/examples.ts'
import type { App } from '../server/app-type.ts'
import { isoTime } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { readPaging } from '../wire/paging.ts'
import { authenticateRequest } from './key.ts'

const PAGE = { default: 100, max: 1000 }

const ListQuery = Type.Object({
  after: Type.Optional(Type.String({ description: 'from the Link header of the previous page' })),
  limit: Type.Optional(Type.String({ description: `default ${PAGE.default}; at most ${PAGE.max}` })),
})
/** Who did something. */
export const ActorBody = Type.Object({
  type: Type.Union([
    Type.Literal('key'),
    Type.Literal('user'),
    Type.Literal('command-line'),
    Type.Literal('server'),
    Type.Literal('viewer'),
  ]),
  id: Type.Union([Type.String(), Type.Null()], { description: 'of the key or the person' }),
  name: Type.Union([Type.String(), Type.Null()], { description: 'of the key or the person; null: deleted' }),
})
const EventBody = Type.Object({
  id: Type.Integer(),
  at: Type.String({ description: 'ISO 8601' }),
  kind: Type.String({ examples: ['key:created'] }),
  subject: Type.String({ description: 'the id of what was changed', examples: [EXAMPLE.videoId] }),
  actor: ActorBody,
  details: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
})
const ListReply = Type.Object({ rows: Type.Array(EventBody) })
export type AuditLogBody = Static<typeof ListReply>

export type AuditRoutesDeps = CursorDeps & Parameters<typeof findActorNames>[0] & { publicUrl(): string }

/** Who changed what in the account. */
export function auditRoutes(app: App, deps: AuditRoutesDeps): void {
  app.get(
    '/audit-log',
    {
      config: { permission: 'editor' },
      schema: {
        summary: 'List the audit log',
        description:
          'Management actions of the last year, the newest first. An action on several objects is an event for each. Follow the `Link` header (`rel="next"`) for more.',
        querystring: ListQuery,
        response: { 200: ListReply },
      },
    },
    async (request, reply): Promise<Static<typeof ListReply>> => {
      const { accountId } = authenticateRequest(request)
      const { query } = request
      refuseMisspelledNames(Object.keys(query), Object.keys(ListQuery.properties))
      const { limit } = readPaging(query, PAGE)
      const below = query.after === undefined ? undefined : decodeCursor(deps, accountId, query.after)
      const events = await listAuditEvents(deps.db, accountId, limit, below)
      const last = events.length === limit ? events.at(-1) : undefined
      if (last) {
        const next = new URLSearchParams({ limit: String(limit), after: encodeCursor(deps, accountId, last.id) })
        reply.header('Link', `<${deps.publicUrl()}${app.prefix}/audit-log?${next}>; rel="next"`)
      }
      const names = await findActorNames(
        deps,
        events.map(({ actor }) => actor),
      )
      return {
        rows: events.map(({ id, atS, kind, subject, actor, details }) => ({
          ...{ id, at: isoTime(atS), kind, subject, actor: actorBody(actor, names), details },
        })),
      }
    },
  )
}

export function actorBody(actor: string, names: ActorNames): Static<typeof ActorBody> {
  if (actor === 'command-line' || actor === 'server' || actor === 'viewer') return { type: actor, id: null, name: null }
  const [, userId] = /^user:(.+)$/.exec(actor) ?? []
  return { type: userId === undefined ? 'key' : 'user', id: userId ?? actor, name: names.get(actor) ?? null }
}
