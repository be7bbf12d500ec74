import { type Static, Type } from 'typebox'
import type { DeletionDeps } from '../../catalogue/deletion.ts'
import { deleteFromTrash, listTrash, restoreFromTrash } from '../../catalogue/trash.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'
import { pagingQuery } from '../wire/paging.ts'
import { readNumberedPage } from './paged-list.ts'

const PAGE = { default: 100, max: 1000 }

const TrashedVideoBody = Type.Object({
  id: Type.String({ examples: [EXAMPLE.videoId] }),
  title: Type.String(),
  length: Type.Number({ description: 'seconds' }),
  totalSizeBytes: Type.Integer({ description: 'storage that it still takes' }),
  trashedAt: Type.String({ description: 'ISO 8601' }),
  deletedAt: Type.String({ description: 'when it will be deleted for good, ISO 8601' }),
})
const TrashReply = Type.Object({
  count: Type.Integer(),
  totalSizeBytes: Type.Integer({ description: 'storage that all of them take' }),
  rows: Type.Array(TrashedVideoBody),
})
export type TrashBody = Static<typeof TrashReply>

const VideosBody = Type.Object({
  videos: Type.Array(Type.String(), { description: 'ids, at most 1 000', maxItems: 1_000, examples: [[EXAMPLE.videoId]] }),
})
const CountReply = Type.Object({ message: Type.String(), count: Type.Integer({ description: 'how many videos' }) })

/** Videos that were deleted and can be restored for 7 days. */
export function trashRoutes(app: App, deps: DeletionDeps): void {
  app.get(
    '/trash',
    operation('viewer', {
      summary: 'List the trash',
      description:
        'Videos that were moved to the trash, the newest first. They play nowhere and are in no other list, but still take storage; 7 days later they are deleted.',
      querystring: Type.Object(pagingQuery(PAGE)),
      response: { 200: TrashReply },
    }),
    async (request) => {
      const { accountId } = authenticateRequest(request)
      const { rows, count, sizeBytes } = await readNumberedPage(request, PAGE, (paging) => listTrash(deps, accountId, paging))
      return {
        count,
        totalSizeBytes: sizeBytes,
        rows: rows.map(({ videoId, title, durationS, totalSizeBytes, trashedAtS, endsAtS }) => ({
          id: videoId,
          title,
          length: durationS,
          totalSizeBytes,
          trashedAt: isoTime(trashedAtS),
          deletedAt: isoTime(endsAtS),
        })),
      }
    },
  )

  app.post(
    '/trash/restore',
    operation('editor', {
      summary: 'Restore videos from the trash',
      description: 'With their tags, in their folders; a folder that was deleted meanwhile is replaced by the root.',
      body: VideosBody,
      response: { 200: CountReply },
    }),
    async (request) => {
      const count = await restoreFromTrash(deps, { ...changedBy(request), videoIds: request.body.videos })
      return { message: 'Restored', count }
    },
  )

  app.delete(
    '/trash',
    operation('editor', {
      summary: 'Delete videos in the trash now',
      description: 'Their keys are destroyed and their files removed: they cannot be restored.',
      body: VideosBody,
      response: { 200: CountReply },
    }),
    async (request) => {
      const count = await deleteFromTrash(deps, { ...changedBy(request), videoIds: request.body.videos })
      return { message: 'Deleted', count }
    },
  )
}
