import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import type { ListDeps } from '../../catalogue/catalogue-deps.ts'
import { type DeletionDeps, deleteVideos } from '../../catalogue/deletion.ts'
import type { VideoFilter } from '../../catalogue/search-store.ts'
import { moveToTrash } from '../../catalogue/trash.ts'
import { findVideos, getVideo, type Video } from '../../catalogue/video.ts'
import { Failure } from '../../errors.ts'
import { parseJson } from '../../json.ts'
import { countViews } from '../../usage/usage.ts'
import type { App } from '../wire/app-type.ts'
import { linkToHelp } from '../wire/errors.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { pagingQuery, readPaging } from '../wire/paging.ts'
import {
  authenticateFromBody,
  type CallerDeps,
  getField,
  getQueryText,
  NO_VIDEO,
  NoVideo,
  sendV2,
  V2_TYPE,
  v2Operation,
} from './response.ts'

export type V2VideoDeps = ListDeps & DeletionDeps & CallerDeps

const PAGE_LIMITS = { default: 30, max: 100 }

export const PAGE_QUERY = pagingQuery(PAGE_LIMITS)
const ListQuery = Type.Object({
  'search[id]': Type.Optional(Type.String({ description: 'part of the id' })),
  'search[title]': Type.Optional(Type.String({ description: 'part of the title', examples: ['light'] })),
  'search[file]': Type.Optional(Type.String({ description: 'part of the uploaded file’s name' })),
  search: Type.Optional(Type.String({ description: 'the three above as one JSON object' })),
  ...PAGE_QUERY,
  type: V2_TYPE,
})
const VideoQuery = Type.Object({
  id: Type.String({ description: 'id of the video', examples: [EXAMPLE.videoId] }),
  type: V2_TYPE,
})
const VideoForm = Type.Object({
  action: Type.Optional(Type.Literal('delete', { description: 'deletes the video; absent: reads it' })),
})
const Deleted = Type.Object({ message: Type.Literal('Deleted') })

export const Entity = Type.Object({
  id: Type.String(),
  title: Type.String(),
  description: Type.String(),
  file: Type.String({ description: 'name of the uploaded file' }),
  length: Type.Integer({ description: 'seconds; 0 before the probe' }),
  viewCount: Type.Integer(),
  statusText: Type.String({ description: 'queued, processing or ready' }),
  date_added: Type.Integer({ description: 'Unix seconds' }),
  error: Type.Optional(Type.String({ description: 'why the video failed' })),
  statusReason: Type.Optional(Type.String({ description: 'what is missing from a video that plays' })),
})

/** List, one video and deletion in the earlier interface (wire-contract.md, section 6). */
export function v2VideoRoutes(app: App, deps: V2VideoDeps): void {
  app.post(
    '/videos',
    v2Operation('viewer', {
      summary: 'List and search videos',
      querystring: ListQuery,
      response: [Type.Array(Entity), 'The videos, newest first'],
    }),
    async (request, reply) => {
      const { accountId } = await authenticateFromBody(deps, { request, reply }, 'viewer')
      return sendVideos(deps, { request, reply, accountId }, readSearch(request.query))
    },
  )

  app.post(
    '/video',
    v2Operation('viewer', {
      summary: 'One video, or its deletion',
      description: 'Deleting needs `editor` and counts as `writes`; an unknown video is then 404.',
      querystring: VideoQuery,
      body: VideoForm,
      response: [Type.Union([Entity, Deleted, NoVideo]), 'The video, or that it is deleted'],
    }),
    async (request, reply) => {
      const action = getField(request.body, 'action')
      if (action === 'delete') return deleteOne(request, reply)
      const { accountId } = await authenticateFromBody(deps, { request, reply }, 'viewer')
      if (action !== undefined) throw new Failure('invalid', 'action must be "delete"; leave it out to read the video.')
      const video = await getVideo(deps, accountId, readId(request))
      const viewCounts = await countViews(deps, accountId, [video.id])
      const entity = videoEntity(video, viewCounts(video.id))
      return sendV2(request, reply, entity, { video: entity })
    },
  )

  async function deleteOne(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const holder = await authenticateFromBody(deps, { request, reply }, 'editor')
    const remove = holder.deletesToTrash ? moveToTrash : deleteVideos
    const deleted = await remove(deps, { accountId: holder.accountId, by: holder, videoIds: [readId(request)] })
    // Here 200 means deleted, so the status shows an unknown video.
    if (deleted > 0) return sendV2(request, reply, { message: 'Deleted' })
    linkToHelp('error-not-found', request, reply)
    return sendV2(request, reply.code(404), NO_VIDEO)
  }
}

/** Sends the page of the query, of the videos that the filter finds. */
export async function sendVideos(
  deps: ListDeps,
  { request, reply, accountId }: { request: FastifyRequest; reply: FastifyReply; accountId: string },
  filter: VideoFilter,
): Promise<FastifyReply> {
  const paging = { page: getField(request.query, 'page'), limit: getField(request.query, 'limit') }
  const { videos } = await findVideos(deps, accountId, filter, readPaging(paging, PAGE_LIMITS))
  const viewCounts = await countViews(
    deps,
    accountId,
    videos.map(({ id }) => id),
  )
  const entities = videos.map((video) => videoEntity(video, viewCounts(video.id)))
  return sendV2(request, reply, entities, { videos: { video: entities } })
}

function readId(request: FastifyRequest): string {
  return getQueryText(request, ['id'], 'Name one video in the query: /v2/video?id=ID.')
}

const SEARCHED = new Map<string, 'id' | 'title' | 'fileName'>([
  ['id', 'id'],
  ['title', 'title'],
  ['file', 'fileName'],
])

/**
 * `search[id]=…&search[title]=…&search[file]=…`, the same as members of a list (`search[0][id]=…`), or as one JSON value, an object
 * or a list of objects; all joined by AND. Unknown keys are ignored, empty values filter nothing.
 */
function readSearch(query: unknown): VideoFilter {
  const search = getField(query, 'search')
  const parts = [...spreadParts(query), ...(search === undefined || search === '' ? [] : parseSearchParts(search))]
  const filter: VideoFilter = {}
  for (const [name, part] of parts) {
    const column = SEARCHED.get(name)
    if (column === undefined || part === '' || part === filter[column]) continue
    if (typeof part !== 'string' || filter[column] !== undefined) throw new Failure('invalid', `search[${name}] is one text.`)
    filter[column] = part
  }
  return filter
}

type SearchPart = [name: string, part: unknown]

function spreadParts(query: unknown): SearchPart[] {
  return Object.entries(typeof query === 'object' && query !== null ? query : {}).flatMap(([field, part]): SearchPart[] => {
    const [, name] = /^search(?:\[\d*\])?\[(\w+)\]$/.exec(field) ?? []
    return name === undefined ? [] : [[name, part]]
  })
}

function parseSearchParts(search: unknown): SearchPart[] {
  const objects = [parseJson(String(search))].flat()
  if (objects.every((each) => typeof each === 'object' && each !== null)) return objects.flatMap((each) => Object.entries(each))
  throw new Failure('invalid', 'search must be search[id], search[title] and search[file], or one JSON object with these.')
}

const STATUS_TEXTS: Record<string, string> = { 'PRE-Upload': 'queued', Queued: 'queued', ready: 'ready' }

function videoEntity(video: Video, viewCount: number): Static<typeof Entity> {
  const isFailed = video.status === 'Encoding error' || video.status === 'Not a media file'
  return {
    id: video.id,
    title: video.title,
    description: video.description,
    file: video.fileName,
    length: video.durationS > 0 ? Math.max(1, Math.round(video.durationS)) : 0,
    viewCount,
    statusText: STATUS_TEXTS[video.status] ?? 'processing',
    date_added: video.uploadTimeS,
    ...(isFailed ? { error: video.statusReason ?? video.status } : {}),
    // Not as `error`: clients take that for a failure.
    ...(!isFailed && video.statusReason !== null ? { statusReason: video.statusReason } : {}),
  }
}
