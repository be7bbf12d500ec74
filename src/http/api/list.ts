import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Caller } from '../../accounts/permission.ts'
import type { ListDeps } from '../../catalogue/catalogue-deps.ts'
import { type CursorDeps, decodeCursor, encodeCursor } from '../../catalogue/cursor.ts'
import { parseExternalId, parseMetadataFilter } from '../../catalogue/own-fields.ts'
import type { VideoFilter, VideoOrder } from '../../catalogue/search-store.ts'
import { VIDEO_STATUSES, type VideoStatus } from '../../catalogue/status.ts'
import { parseTagFilter } from '../../catalogue/tag.ts'
import { findSortedVideos, findVideos, MAX_COUNT_UP_TO, type PageRequest } from '../../catalogue/video.ts'
import { Failure } from '../../errors.ts'
import type { Servers } from '../../servers/servers.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { isCsvRequest } from '../wire/list-csv.ts'
import { refuseMisspelledNames } from '../wire/misspelled-names.ts'
import { operation } from '../wire/operation.ts'
import { isMetadataParameter, METADATA_PARAMETER, MetadataParameter, readMetadataParameters } from '../wire/own-fields.ts'
import { readCount, readPaging } from '../wire/paging.ts'
import type { CachedResponse, ResponseCache } from '../wire/response-cache.ts'
import { MAX_CSV_ROWS } from './paged-list.ts'
import { VideoBody, videoBody } from './video-body.ts'

type ListRoutesDeps = ListDeps & CursorDeps & { publicUrl(): string; pages: ResponseCache; servers: Pick<Servers, 'era'> }

const ListQuery = Type.Object({
  page: Type.Optional(Type.String({ description: 'from 1' })),
  after: Type.Optional(Type.String({ description: 'instead of page: from the Link header of the previous page' })),
  limit: Type.Optional(
    Type.String({ description: 'default 20; at most 40, or the higher limit of the account', examples: ['40'] }),
  ),
  tag: Type.Optional(Type.String({ description: 'a tag that a video must have' })),
  tags: Type.Optional(Type.String({ description: 'separated by commas; a video must have all of them' })),
  q: Type.Optional(
    Type.String({ description: 'part of the id or title, case-insensitive, taken literally', examples: ['light'] }),
  ),
  folderId: Type.Optional(Type.String({ description: 'id of a folder, or root: videos directly in it' })),
  externalId: Type.Optional(Type.String({ description: 'your own id of one video, exactly' })),
  [METADATA_PARAMETER]: MetadataParameter,
  status: Type.Optional(
    Type.String({ description: 'one or several states, separated by commas', examples: ['Queued,Processing'] }),
  ),
  countUpTo: Type.Optional(
    Type.String({
      description: `count no further than this number, 1 to ${MAX_COUNT_UP_TO}: \`count\` is exact below it, and equal to it where as many videos match or more. Absent: exact. A search for one or two letters that many videos contain is answered sooner with it`,
      examples: ['1000'],
    }),
  ),
  sort: Type.Optional(
    Type.String({
      description:
        'title, upload_time, length, size or views, with a minus before it for the other direction; absent, or anything else: newest first. Page by page, without after',
    }),
  ),
})

const SORTS = { title: 'title', upload_time: 'uploadTime', length: 'length', size: 'size', views: 'views' } as const

const ListReply = Type.Object({ count: Type.Integer(), rows: Type.Array(VideoBody) })
export type VideoListBody = Static<typeof ListReply>

const DEFAULT_LIMIT = 20

/** `GET /videos`: an account that has not changed since is answered from memory, or by 304 (wire-contract.md, section 3). */
export function listRoutes(app: App, deps: ListRoutesDeps): void {
  let form: string | undefined
  /** Of the responses: rows that were restored from a backup have the numbers of before, and another version another form. */
  const formOfResponses = () =>
    (form ??= hash('sha256', [deps.servers.era, packageJson.version, deps.publicUrl()].join(' ')).slice(0, 8))

  app.get(
    '/videos',
    operation('viewer', {
      summary: 'List and search videos',
      description:
        'Newest first. To read each video exactly once, follow the `Link` header (`rel="next"`); numbered pages shift when videos are added or deleted. The response has an `ETag`. A request with it as `If-None-Match` is answered by 304 while nothing has changed, and does not count as a read.',
      querystring: ListQuery,
      response: { 200: ListReply, 304: Type.Null() },
    }),
    async (request, reply) => {
      const holder = authenticateRequest(request)
      if (isCsvRequest(request)) return readAllVideos(deps, holder, request.query)
      const order = readOrder(request.query.sort)
      const isAlwaysRead = order?.by === 'views' // which change nothing else that a list shows
      const etag = `"${formOfResponses()}.${holder.accountId.slice(0, 12)}.${holder.pageMax}.${holder.changeNumber}"`
      reply.header('Cache-Control', 'private, max-age=0')
      if (isAlwaysRead)
        return sendPage(reply, await readSortedPage({ ...deps, prefix: app.prefix }, holder, request.query, order))
      reply.header('ETag', etag)
      if (matchesETag(request, etag)) {
        request.uncount?.()
        return reply.code(304).send(null)
      }
      const key = `${holder.accountId} ${holder.pageMax} ${request.url}`
      const cached = deps.pages.find(key, holder.changeNumber)
      if (cached) return sendPage(reply, cached)
      const reading = { ...deps, prefix: app.prefix }
      const page = order
        ? await readSortedPage(reading, holder, request.query, order)
        : await readPage(reading, holder, request.query)
      deps.pages.store(key, holder.changeNumber, page)
      return sendPage(reply, page)
    },
  )
}

/** Of a CSV file: all videos that match, newest first. */
async function readAllVideos(
  deps: ListRoutesDeps,
  { accountId, pageMax }: Caller,
  query: Static<typeof ListQuery>,
): Promise<VideoListBody> {
  const filter = readFilter(query)
  const rows: VideoListBody['rows'] = []
  let position: { page: number } | { below: number } = { page: 1 }
  for (;;) {
    const { videos, lastPosition } = await findVideos(deps, accountId, filter, { limit: pageMax, countUpTo: 1, ...position })
    rows.push(...videos.map((video) => videoBody(deps.publicUrl(), video)))
    if (lastPosition === undefined || rows.length >= MAX_CSV_ROWS) return { count: rows.length, rows }
    position = { below: lastPosition }
  }
}

async function readPage(
  { prefix, ...deps }: ListRoutesDeps & { prefix: string },
  holder: Caller,
  query: Static<typeof ListQuery>,
): Promise<CachedResponse> {
  const { count, videos, lastPosition } = await findVideos(
    deps,
    holder.accountId,
    readFilter(query),
    readPageRequest(deps, holder, query),
  )
  const page: VideoListBody = { count, rows: videos.map((video) => videoBody(deps.publicUrl(), video)) }
  const after = lastPosition === undefined ? undefined : encodeCursor(deps, holder.accountId, lastPosition)
  return { body: Buffer.from(JSON.stringify(page)), link: after && linkTo(`${deps.publicUrl()}${prefix}`, { ...query, after }) }
}

async function readSortedPage(
  { prefix, ...deps }: ListRoutesDeps & { prefix: string },
  { accountId, pageMax }: Caller,
  query: Static<typeof ListQuery>,
  order: VideoOrder,
): Promise<CachedResponse> {
  if (query.after !== undefined) throw new Failure('invalid', 'A sorted list is read by page: send page instead of after.')
  const paging = readPaging(query, { default: DEFAULT_LIMIT, max: pageMax })
  const { count, videos, hasMore } = await findSortedVideos(deps, accountId, { filter: readFilter(query), order }, paging)
  const rows = videos.map((video) => videoBody(deps.publicUrl(), video))
  const page: VideoListBody = { count: Math.min(count, readCountUpTo(query) ?? count), rows }
  const known = Object.entries(query).filter(([name]) => isKnown(name) && name !== 'page')
  const next = new URLSearchParams([...known, ['page', String(paging.page + 1)]])
  const link = hasMore ? `<${deps.publicUrl()}${prefix}/videos?${next}>; rel="next"` : undefined
  return { body: Buffer.from(JSON.stringify(page)), link }
}

/** Other values count as absent: clients of the contract may send a `sort` that means nothing here (threat Q15). */
function readOrder(sort = ''): VideoOrder | undefined {
  const found = Object.entries(SORTS).find(([name]) => name === sort.replace(/^-/, ''))
  return found && { by: found[1], descending: sort.startsWith('-') }
}

/** @throws Failure `invalid` */
function readPageRequest(deps: ListRoutesDeps, { accountId, pageMax }: Caller, query: Static<typeof ListQuery>): PageRequest {
  const paging = readPaging(query, { default: DEFAULT_LIMIT, max: pageMax })
  const countUpTo = readCountUpTo(query)
  if (query.after === undefined) return { ...paging, countUpTo }
  if (query.page !== undefined) throw new Failure('invalid', 'Send page or after, not both.')
  return { limit: paging.limit, countUpTo, below: decodeCursor(deps, accountId, query.after) }
}

/** @throws Failure `invalid` */
function readCountUpTo({ countUpTo }: Static<typeof ListQuery>): number | undefined {
  const limit = readCount('countUpTo', countUpTo)
  if (limit !== undefined && limit > MAX_COUNT_UP_TO)
    throw new Failure('invalid', `countUpTo is at most ${MAX_COUNT_UP_TO}. Leave it out for the exact count.`)
  return limit
}

/** RFC 8288: the page of what is older than this one's last video. */
function linkTo(interfaceUrl: string, { page: _, ...query }: Static<typeof ListQuery>): string {
  const known = Object.entries(query).filter(([name]) => isKnown(name))
  return `<${interfaceUrl}/videos?${new URLSearchParams(known)}>; rel="next"`
}

const PARAMETERS = Object.keys(ListQuery.properties)
const isKnown = (name: string) => PARAMETERS.includes(name) || isMetadataParameter(name)

/** Empty parameters filter nothing. @throws Failure `invalid`, also for a parameter that nearly is one of these */
function readFilter(query: Static<typeof ListQuery>): VideoFilter {
  const metadata = readMetadataParameters(query)
  refuseMisspelledNames(
    Object.keys(query).filter((name) => !isMetadataParameter(name)),
    PARAMETERS,
  )
  const { tag = '', tags = '', q = '', folderId = '', status = '', externalId = '' } = query
  const required = parseTagFilter([tag, ...tags.split(',')].filter((name) => name.trim() !== ''))
  return {
    tags: required,
    ...(q === '' ? {} : { text: q }),
    ...(folderId === '' ? {} : { folderId }),
    ...(externalId === '' ? {} : { externalId: parseExternalId(externalId) }),
    ...(metadata === undefined ? {} : { metadata: parseMetadataFilter(metadata) }),
    ...(status === '' ? {} : { statuses: status.split(',').map(readStatus) }),
  }
}

function readStatus(text: string): VideoStatus {
  const status = VIDEO_STATUSES.find((known) => known === text.trim())
  if (status === undefined)
    throw new Failure(
      'invalid',
      `There is no state "${text.trim().slice(0, 40)}". status is one or several of ${VIDEO_STATUSES.join(', ')}.`,
    )
  return status
}

/** RFC 9110, section 13.1.2: any of the listed tags, compared weakly. */
function matchesETag(request: FastifyRequest, etag: string): boolean {
  const header = request.headers['if-none-match']
  if (header === undefined) return false
  return header.split(',').some((known) => known.trim().replace(/^W\//, '') === etag || known.trim() === '*')
}

// Bytes, since the framework would serialise a string once more.
function sendPage(reply: FastifyReply, { body, link }: CachedResponse): FastifyReply {
  if (link !== undefined) reply.header('Link', link)
  return reply.type('application/json; charset=utf-8').send(body)
}
