import { type Static, Type } from 'typebox'
import { type DeletionDeps, deleteVideos } from '../../catalogue/deletion.ts'
import { findVideos, getVideo, type Video } from '../../catalogue/video.ts'
import type { App } from '../app.ts'
import { posterPath } from '../media/posters.ts'
import { holderOf } from './key.ts'

export type VideoRoutesDeps = DeletionDeps & { publicUrl(): string; deletionsWaiting(): void }

export const VideoParams = Type.Object({ id: Type.String() })

const PosterBody = Type.Object({ width: Type.Integer(), height: Type.Integer(), posterUrl: Type.String() })

export const VideoBody = Type.Object({
  id: Type.String({ description: '32 lower-case hexadecimal digits' }),
  title: Type.String(),
  description: Type.String(),
  upload_time: Type.Integer({ description: 'Unix seconds' }),
  length: Type.Number({ description: 'seconds; 0 before the probe' }),
  status: Type.String({ description: 'PRE-Upload, Queued, Processing, ready, Not a media file or Encoding error' }),
  statusReason: Type.Optional(Type.String({ description: 'why it failed, in words' })),
  posters: Type.Array(PosterBody),
  poster: Type.String({ description: 'address of the main poster, empty while there is none' }),
  tags: Type.Array(Type.String()),
  public: Type.Integer({ description: '0 or 1: whether posters and meta are served without a playback session' }),
  ipGeoRules: Type.String(),
  whitelisthref: Type.String(),
  totalSizeBytes: Type.Integer(),
  folderId: Type.String(),
})

const ListQuery = Type.Object({
  page: Type.Integer({ minimum: 1, maximum: 2 ** 40, default: 1 }),
  limit: Type.Integer({ minimum: 1, default: 20 }),
})
const DeleteQuery = Type.Object({ videos: Type.String({ description: 'ids, separated by commas' }) })

export function videoRoutes(app: App, deps: VideoRoutesDeps): void {
  app.get(
    '/videos',
    {
      config: { permission: 'viewer' },
      schema: { querystring: ListQuery, response: { 200: Type.Object({ count: Type.Integer(), rows: Type.Array(VideoBody) }) } },
    },
    async (request) => {
      const holder = holderOf(request)
      const limit = Math.min(request.query.limit, holder.pageMax)
      const { count, videos } = await findVideos(deps, holder.accountId, { page: request.query.page, limit })
      return { count, rows: videos.map((video) => videoBody(deps.publicUrl(), video)) }
    },
  )

  app.get(
    '/videos/:id',
    { config: { permission: 'viewer' }, schema: { params: VideoParams, response: { 200: VideoBody } } },
    async (request) => videoBody(deps.publicUrl(), await getVideo(deps, holderOf(request).accountId, request.params.id)),
  )

  app.delete(
    '/videos',
    {
      config: { permission: 'editor' },
      schema: { querystring: DeleteQuery, response: { 200: Type.Object({ code: Type.Integer(), message: Type.String() }) } },
    },
    async (request) => {
      const ids = request.query.videos
        .split(',')
        .map((id) => id.trim())
        .filter((id) => id !== '')
      const count = ids.length === 0 ? 0 : await deleteVideos(deps, holderOf(request).accountId, ids)
      if (count > 0) deps.deletionsWaiting()
      return { code: 200, message: `Successfully deleted ${count} videos` }
    },
  )
}

function videoBody(publicUrl: string, video: Video): Static<typeof VideoBody> {
  const posters = video.posters.map((poster) => ({
    width: poster.widthPx,
    height: poster.heightPx,
    posterUrl: `${publicUrl}/${posterPath(poster.token)}`,
  }))
  return {
    id: video.id,
    title: video.title,
    description: video.description,
    upload_time: video.uploadTimeS,
    length: Math.round(video.durationS * 1000) / 1000,
    status: video.status,
    ...(video.statusReason === null ? {} : { statusReason: video.statusReason }),
    posters,
    poster: posters[0]?.posterUrl ?? '',
    tags: [],
    public: video.public,
    ipGeoRules: '',
    whitelisthref: '',
    totalSizeBytes: video.totalSizeBytes,
    folderId: video.folderId,
  }
}
