import { type Static, Type } from 'typebox'
import { listAuditEvents } from '../../audit/audit-log.ts'
import { type ActorNames, findActorNames } from '../../users/actor-names.ts'
import { EXAMPLE } from '../docs/examples.ts'
import type { App } from '../server/app-type.ts'
import { isoTime } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { authenticateRequest } from './key.ts'
import { PAGED_QUERY, type PagedListDeps, readPagedList } from './paged-list.ts'

const ListQuery = Type.Object(PAGED_QUERY)
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

export type AuditRoutesDeps = PagedListDeps & Parameters<typeof findActorNames>[0]

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
      refuseMisspelledNames(Object.keys(request.query), Object.keys(ListQuery.properties))
      const events = await readPagedList(deps, request, reply, ({ limit, below }) =>
        listAuditEvents(deps.db, accountId, limit, below),
      )
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
