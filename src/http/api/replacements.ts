import { type Static, Type } from 'typebox'
import { type AuditKind, recordAuditEvent } from '../../audit/audit-log.ts'
import type { RequestedDeps } from '../../encode/next-generation.ts'
import { cancelReplacement, deleteKept, type ReplacementDeps, trimVideo, undoReplacement } from '../../encode/replacement.ts'
import { Failure } from '../../errors.ts'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { type IssuedUpload, issueReplacementPolicy, type PolicyDeps } from '../../ingest/upload-policy.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { IdempotencyHeaders, jsonRepresentation, sendIdempotent } from '../wire/idempotency.ts'
import { EDITOR_OR_UPLOADER, operation } from '../wire/operation.ts'
import { UploadReply, uploadReply } from './uploads.ts'
import { VideoParams } from './videos.ts'

type ReplacementRoutesDeps = PolicyDeps &
  IdempotencyDeps &
  ReplacementDeps &
  Pick<RequestedDeps, 'hasRoom'> & { publicUrl(): string }

type OfVideo = Parameters<typeof authenticateRequest>[0] & { params: Static<typeof VideoParams> }

/** No field: a client that sends some means `POST /videos/:id`. */
const EmptyBody = Type.Union([Type.Object({}), Type.Null()])

const TrimBody = Type.Object({
  startS: Type.Optional(Type.Number({ description: 'seconds of the whole file; 0 if absent', examples: [1] })),
  endS: Type.Optional(Type.Number({ description: 'seconds of the whole file; its end if absent', examples: [3] })),
})
const TrimReply = Type.Object({
  message: Type.Union([Type.Literal('Trimming'), Type.Literal('Unchanged')], {
    description: 'Unchanged: it plays this part already',
  }),
  startS: Type.Number(),
  endS: Type.Number(),
})
const CancelReply = Type.Object({ message: Type.Literal('Cancelled') })
const UndoReply = Type.Object({ message: Type.Literal('Undone') })
const DeleteReply = Type.Object({ message: Type.Literal('Deleted'), count: Type.Integer({ description: 'how many' }) })

/** Another file under the same id, and what becomes of the one before (wire-contract.md, section 3). */
export function replacementRoutes(app: App, deps: ReplacementRoutesDeps): void {
  const eventOf = (request: OfVideo, kind: AuditKind) => ({
    ...changedBy(request),
    ...{ atS: deps.wallNowS(), kind, subjects: [request.params.id] },
  })

  app.put(
    '/videos/:id',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Replace the file of a video',
      description:
        'Returns upload credentials as `PUT /videos` does, with the same id. Nothing changes until a file sent with them is complete; the old one plays until the new one is encoded, and is kept for 7 days. To change the title or other fields use `POST /videos/{id}`.',
      params: VideoParams,
      body: EmptyBody,
      headers: IdempotencyHeaders,
      response: { 200: UploadReply },
    }),
    async (request, reply) => {
      if (Object.keys(request.body ?? {}).length > 0)
        throw new Failure(
          'invalid',
          `PUT /api/videos/${request.params.id} replaces the file of the video and takes no fields. Change its title, description, folder or public with POST /api/videos/${request.params.id}.`,
        )
      const holder = authenticateRequest(request)
      return sendIdempotent(
        deps,
        { request, reply, accountId: holder.accountId },
        (alsoInTransaction) =>
          issueReplacementPolicy(deps, holder, request.params.id, async (tx, issued) => {
            await recordAuditEvent(tx, eventOf(request, 'video:replacement-requested'))
            await alsoInTransaction?.(tx, issued)
          }),
        jsonRepresentation((issued: IssuedUpload) => uploadReply(issued, deps.publicUrl())),
      )
    },
  )

  app.put(
    '/videos/:id/trim',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Trim a video',
      description:
        'Makes the video again from a part of its file, exact to a frame. It plays as before until that is complete, and the former is kept for 7 days. Without fields it gets all of its file back.',
      params: VideoParams,
      body: TrimBody,
      response: { 200: TrimReply },
    }),
    async (request) => {
      const { accountId } = authenticateRequest(request)
      const video = { accountId, videoId: request.params.id }
      const { isUnchanged, ...part } = await trimVideo(deps, video, request.body, (tx) =>
        recordAuditEvent(tx, eventOf(request, 'video:trimmed')),
      )
      return { message: isUnchanged ? ('Unchanged' as const) : ('Trimming' as const), ...part }
    },
  )

  app.delete(
    '/videos/:id/replacement',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Cancel the replacement of a video',
      description:
        'While it is not finished, or after it has failed. The video plays as before. 409 where nothing is to replace it.',
      params: VideoParams,
      response: { 200: CancelReply },
    }),
    async (request) => {
      const { accountId } = authenticateRequest(request)
      const video = { accountId, videoId: request.params.id }
      await cancelReplacement(deps, video, (tx) => recordAuditEvent(tx, eventOf(request, 'video:replacement-cancelled')))
      return { message: 'Cancelled' as const }
    },
  )

  app.post(
    '/videos/:id/undo',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Undo the last replacement of a video',
      description:
        'What was replaced last plays again, immediately, and what played until now is kept in its place: calling this twice changes nothing. 409 where nothing is kept.',
      params: VideoParams,
      response: { 200: UndoReply },
    }),
    async (request) => {
      const { accountId } = authenticateRequest(request)
      await undoReplacement(deps, { accountId, videoId: request.params.id }, (tx) =>
        recordAuditEvent(tx, eventOf(request, 'video:replacement-undone')),
      )
      return { message: 'Undone' as const }
    },
  )

  app.delete(
    '/videos/:id/kept',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Delete what a video was before',
      description:
        'Everything that is kept of its former files, with their keys, instead of after 7 days. Viewers who still watch one have to reload the page.',
      params: VideoParams,
      response: { 200: DeleteReply },
    }),
    async (request) => {
      const { accountId } = authenticateRequest(request)
      const video = { accountId, videoId: request.params.id }
      const count = await deleteKept(deps, video, (tx) => recordAuditEvent(tx, eventOf(request, 'video:kept-deleted')))
      return { message: 'Deleted' as const, count }
    },
  )
}
