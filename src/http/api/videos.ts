import { type Static, Type } from 'typebox'
import { listAudioTracks } from '../../assets/audio-tracks.ts'
import { type DeletionDeps, deleteVideos } from '../../catalogue/deletion.ts'
import { ROOT_FOLDER_ID } from '../../catalogue/folder.ts'
import { moveToTrash } from '../../catalogue/trash.ts'
import { editVideo, getVideo, moveVideos } from '../../catalogue/video.ts'
import { findGeneration, listKept } from '../../encode/generation-store.ts'
import { Failure } from '../../errors.ts'
import { findReplacedPart } from '../../progress/replacement-progress.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOn } from '../wire/flag.ts'
import { EDITOR_OR_UPLOADER, operation } from '../wire/operation.ts'
import { ExternalId, Metadata, readMetadataParameters } from '../wire/own-fields.ts'
import { OneVideoBody, oneVideoBody } from './video-body.ts'

export type VideoRoutesDeps = DeletionDeps & { publicUrl(): string }

export const VideoParams = Type.Object({ id: Type.String({ description: 'id of the video', examples: [EXAMPLE.videoId] }) })

const EditBody = Type.Object({
  title: Type.Optional(Type.String({ description: '1 to 500 characters', examples: ['Lesson 12 – Light'] })),
  description: Type.Optional(Type.String({ description: 'at most 5 000 characters' })),
  folderId: Type.Optional(Type.String()),
  public: Type.Optional(Flag),
  externalId: Type.Optional(Type.Union([ExternalId, Type.Null()], { description: 'your own id; null removes it' })),
  metadata: Type.Optional(
    Type.Union([Metadata, Type.Null()], { description: 'your own pairs of texts, in place of all of before; null removes them' }),
  ),
})
const EditReply = Type.Object({ message: Type.Literal('Successfully updated') })

const MAX_MOVED = 1_000
const MoveBody = Type.Object({
  videos: Type.Array(Type.String(), {
    description: `at most ${MAX_MOVED} ids`,
    maxItems: MAX_MOVED,
    examples: [[EXAMPLE.videoId]],
  }),
  folderId: Type.String({ description: 'id of a folder, or root', examples: ['root'] }),
})
const MoveReply = Type.Object({ message: Type.Literal('Moved'), count: Type.Integer({ description: 'how many videos' }) })

const DeleteQuery = Type.Object({
  videos: Type.Optional(Type.String({ description: 'ids, separated by commas', examples: [EXAMPLE.videoId] })),
  trash: Type.Optional(Flag),
})
const MAX_DELETED = 1_000
const DeleteBody = Type.Union([
  Type.Object({
    videos: Type.Optional(
      Type.Array(Type.String(), {
        description: `instead of the query: at most ${MAX_DELETED} ids`,
        examples: [[EXAMPLE.videoId]],
      }),
    ),
  }),
  Type.Null(),
])
const DeleteReply = Type.Object({ code: Type.Integer(), message: Type.String() })

export function videoRoutes(app: App, deps: VideoRoutesDeps): void {
  app.get(
    '/videos/:id',
    operation('viewer', { summary: 'One video', params: VideoParams, response: { 200: OneVideoBody } }),
    async (request) => {
      const video = await getVideo(deps, authenticateRequest(request).accountId, request.params.id)
      const part = video.replacement ? await findReplacedPart(deps.db, video.replacement) : 0
      const played = await findGeneration(deps.db, { videoId: video.id, generation: video.generation })
      const { accountId, id } = video
      const left = video.replacement?.kind === 'replace' ? await listAudioTracks(deps, accountId, id) : []
      const leaves = left.filter(({ isAdded }) => isAdded).map(({ label }) => label)
      return oneVideoBody(deps.publicUrl(), video, { part, kept: await listKept(deps.db, id), played, leaves })
    },
  )

  app.post(
    '/videos/:id',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Edit a video',
      description: 'Changes the fields that are given.',
      params: VideoParams,
      body: EditBody,
      response: { 200: EditReply },
    }),
    async (request) => {
      await editVideo(deps, { ...changedBy(request), videoId: request.params.id, changes: readChanges(request.body) })
      return { message: 'Successfully updated' as const }
    },
  )

  app.post(
    '/videos/move',
    operation('editor', {
      summary: 'Move videos into a folder',
      description: 'All or none: an unknown id is an error.',
      body: MoveBody,
      response: { 200: MoveReply },
    }),
    async (request) => {
      const { videos: videoIds, folderId } = request.body
      const count = await moveVideos(deps, { ...changedBy(request), videoIds, folderId: folderId || ROOT_FOLDER_ID })
      return { message: 'Moved' as const, count }
    },
  )

  app.delete(
    '/videos',
    operation('editor', {
      summary: 'Delete videos',
      description:
        'Permanently; with `trash=1`, or where the account asks for that, into the trash, from which they can be restored for 7 days. The message counts the videos that existed.',
      querystring: DeleteQuery,
      body: DeleteBody,
      response: { 200: DeleteReply },
    }),
    async (request) => {
      const videoIds = readIds(request.query.videos, request.body?.videos)
      const change = { ...changedBy(request), videoIds }
      const remove = change.by.deletesToTrash || isOn(request.query.trash ?? 0) ? moveToTrash : deleteVideos
      const count = videoIds.length === 0 ? 0 : await remove(deps, change)
      return { code: 200, message: `Successfully deleted ${count} videos` }
    },
  )
}

/** @throws Failure `invalid` where none are given, or too many */
function readIds(inQuery: string | undefined, inBody: readonly string[] | undefined): string[] {
  if (inQuery === undefined && inBody === undefined)
    throw new Failure('invalid', 'No videos are named. Send DELETE /api/videos?videos=ID,ID, or a body {"videos":["ID"]}.')
  const ids = [...(inQuery?.split(',') ?? []), ...(inBody ?? [])].map((id) => id.trim()).filter((id) => id !== '')
  if ((inBody?.length ?? 0) > MAX_DELETED)
    throw new Failure('invalid', `One call deletes at most ${MAX_DELETED} videos, but got ${inBody?.length}. Send several calls.`)
  return ids
}

function readChanges({ metadata: pairs, ...form }: Static<typeof EditBody>) {
  const { title, description, folderId, public: isPublic, externalId } = form
  const metadata = readMetadataParameters(form) ?? pairs
  if ([title, description, folderId, isPublic, externalId, metadata].every((change) => change === undefined))
    throw new Failure('invalid', 'Nothing to change. Send title, description, folderId, public, externalId or metadata.')
  return {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(folderId === undefined ? {} : { folderId: folderId || ROOT_FOLDER_ID }),
    ...(isPublic === undefined ? {} : { public: isOn(isPublic) ? (1 as const) : (0 as const) }),
    externalId,
    metadata,
  }
}
