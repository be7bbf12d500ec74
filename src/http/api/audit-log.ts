import { type Static, Type } from 'typebox'
import { listAuditEvents } from '../../audit/audit-log.ts'
import { describeDetails, describeKind, ID, listIds } from '../../audit/audit-words.ts'
import { type ActorNames, findActorNames } from '../../users/actor-names.ts'
import { findSubjectNames } from '../../users/subject-name-store.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'
import { PAGED_QUERY, type PagedListDeps, readPagedList } from './paged-list.ts'

/** Events that a search looks at, the newest. */
const MAX_SEARCHED = 100_000
const SEARCH_BATCH = 1_000

const ListQuery = Type.Object({
  ...PAGED_QUERY,
  q: Type.Optional(Type.String({ description: 'only events with these words in them, case-insensitive', examples: ['lesson'] })),
})
/** Who did something. */
export const ActorBody = Type.Object({
  type: Type.Union([
    Type.Literal('key'),
    Type.Literal('user'),
    Type.Literal('upload-token'),
    Type.Literal('command-line'),
    Type.Literal('server'),
    Type.Literal('viewer'),
  ]),
  id: Type.Union([Type.String(), Type.Null()], { description: 'of the key, the person or the upload token' }),
  name: Type.Union([Type.String(), Type.Null()], {
    description: 'of the key or the person, or the reference of the token; null: there is none, or it was deleted',
  }),
})
const EventBody = Type.Object({
  id: Type.Integer(),
  at: Type.String({ description: 'ISO 8601' }),
  kind: Type.String({ examples: ['key:created'] }),
  what: Type.String({ description: 'the kind in words', examples: ['Details changed'] }),
  subject: Type.String({ description: 'the id of what was changed', examples: [EXAMPLE.videoId] }),
  subjectName: Type.Union([Type.String(), Type.Null()], { description: 'its name, title or URL; null: it has none, or is gone' }),
  actor: ActorBody,
  changes: Type.String({ description: 'the details in words', examples: ['title, folder'] }),
  details: Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]),
})
const ListReply = Type.Object({ rows: Type.Array(EventBody) })
export type AuditLogBody = Static<typeof ListReply>

type AuditRoutesDeps = PagedListDeps & { slowQueryDb: Parameters<typeof listAuditEvents>[0] }

/** Who changed what in the account. */
export function auditRoutes(app: App, deps: AuditRoutesDeps): void {
  app.get(
    '/audit-log',
    operation('editor', {
      summary: 'List the audit log',
      description:
        'Management actions of the last year, the newest first. An action on several objects is an event for each. Follow the `Link` header (`rel="next"`) for more.',
      querystring: ListQuery,
      response: { 200: ListReply },
    }),
    async (request, reply): Promise<Static<typeof ListReply>> => {
      const { accountId } = authenticateRequest(request)
      refuseMisspelledNames(Object.keys(request.query), Object.keys(ListQuery.properties))
      const words = (request.query.q ?? '').toLowerCase().split(/\s+/).filter(Boolean)
      return {
        rows: await readPagedList(deps, request, reply, (page) =>
          words.length === 0 ? readEvents(deps, accountId, page) : searchEvents(deps, accountId, page, words),
        ),
      }
    },
  )
}

type EventRow = Static<typeof EventBody>
type EventPage = { limit: number; below: number | undefined }

async function readEvents({ slowQueryDb: db }: AuditRoutesDeps, accountId: string, page: EventPage): Promise<EventRow[]> {
  const events = await listAuditEvents(db, accountId, page.limit, page.below)
  const actors = events.map(({ actor }) => actor)
  const ids = events.flatMap(({ subject, details }) => [...(ID.test(subject) ? [subject] : []), ...listIds(details)])
  const [actorNames, names] = [await findActorNames({ db }, actors), await findSubjectNames(db, accountId, ids)]
  return events.map(({ id, atS, kind, subject, actor, details }) => ({
    ...{ id, at: isoTime(atS), kind, what: describeKind(kind), subject },
    // Of a file the video is named; of what is gone, the name that the event kept.
    subjectName: names.get(subject) ?? names.get(textIn(details, 'videoId') ?? '') ?? textIn(details, 'name') ?? null,
    actor: actorBody(actor, actorNames),
    changes: describeDetails(details, (one) => names.get(one)),
    details,
  }))
}

function textIn(details: Readonly<Record<string, unknown>> | null, name: string): string | undefined {
  const value = details?.[name]
  return typeof value === 'string' ? value : undefined
}

/** Reads on until there are enough events that have all the words, as people read them: in what happened, to whom or what, and by whom. */
async function searchEvents(
  deps: AuditRoutesDeps,
  accountId: string,
  { limit, below }: EventPage,
  words: readonly string[],
): Promise<EventRow[]> {
  const found: EventRow[] = []
  let last = below
  for (let searched = 0; searched < MAX_SEARCHED && found.length < limit; searched += SEARCH_BATCH) {
    const events = await readEvents(deps, accountId, { limit: SEARCH_BATCH, below: last })
    found.push(...events.filter((event) => words.every((word) => textOf(event).includes(word))))
    last = events.at(-1)?.id
    if (events.length < SEARCH_BATCH) break
  }
  return found.slice(0, limit)
}

function textOf({ what, kind, subject, subjectName, actor, changes }: EventRow): string {
  return [what, kind, subject, subjectName, actor.name, actor.type, changes].join(' ').toLowerCase()
}

export function actorBody(actor: string, names: ActorNames): Static<typeof ActorBody> {
  if (actor === 'command-line' || actor === 'server' || actor === 'viewer') return { type: actor, id: null, name: null }
  const [, type, id] = /^(user|upload-token):(.+)$/.exec(actor) ?? []
  const name = names.get(actor) ?? null
  if (id === undefined) return { type: 'key', id: actor, name }
  return { type: type === 'user' ? type : 'upload-token', id, name }
}
