import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { recordAuditEvent } from '../../audit/audit-log.ts'
import { describeDetails, describeKind, listIds } from '../../audit/audit-words.ts'
import { type HistoryDeps, listVideoHistory } from '../../catalogue/video-history.ts'
import type { EncodePartAgain } from '../../encode/encode-part-again.ts'
import type { Retry } from '../../encode/retry.ts'
import { type AccountQueueDeps, listQueue } from '../../progress/account-queue.ts'
import { findActorNames } from '../../users/actor-names.ts'
import { findSubjectNames } from '../../users/subject-name-store.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { isoTime } from '../wire/iso-time.ts'
import { EDITOR_OR_UPLOADER, operation } from '../wire/operation.ts'
import { ActorBody, actorBody } from './audit-log.ts'
import { VideoParams } from './videos.ts'

const OrNull = <Schema extends Type.TSchema>(schema: Schema) => Type.Union([schema, Type.Null()])

const QueueReply = Type.Object({
  rows: Type.Array(
    Type.Object({
      video: Type.String({ description: 'its id', examples: [EXAMPLE.videoId] }),
      title: Type.String(),
      status: Type.String({ description: 'of the video: it can be ready while the rest of it is encoded' }),
      state: Type.Union([Type.Literal('importing'), Type.Literal('waiting'), Type.Literal('encoding')], {
        description: 'waiting: for its file to be examined; importing: or waiting for its turn to be imported',
      }),
      receivedBytes: OrNull(Type.Integer({ description: 'of an import' })),
      part: OrNull(Type.Number({ description: 'of an encode: how much of it is done, 0 to 1' })),
      chunks: OrNull(Type.Object({ done: Type.Integer(), all: Type.Integer() }, { description: 'of an encode' })),
      speed: OrNull(Type.Number({ description: 'of an encode: seconds of video in a second, since it began' })),
      playableS: OrNull(
        Type.Integer({
          description:
            'of a video that does not play yet: in about how many seconds its beginning does; the beginnings of all videos are encoded before the rest of any',
        }),
      ),
      remainingS: OrNull(
        Type.Integer({
          description:
            'of an encode: in about how many seconds it is finished, when the encodes of the account go on as fast as so far',
        }),
      ),
    }),
    { description: 'at most 50 of each state' },
  ),
})
export type QueueBody = Static<typeof QueueReply>
const HistoryReply = Type.Object({
  status: Type.String(),
  statusReason: Type.Optional(Type.String({ description: 'why the video failed, or what is missing from one that plays' })),
  rows: Type.Array(
    Type.Object({
      at: Type.String({ description: 'ISO 8601' }),
      kind: Type.String({
        description:
          'video:created, encode:began, posters:extracted, encode:finished, poster:added, caption:added, mp4:added, or the kind of an audit event',
      }),
      what: Type.String({ description: 'the kind in words' }),
      actor: OrNull(ActorBody),
      changes: Type.String({ description: 'the details in words' }),
      details: OrNull(Type.Record(Type.String(), Type.Unknown())),
    }),
  ),
})
export type HistoryBody = Static<typeof HistoryReply>

const EncodeQuery = Type.Object({
  positionS: Type.Optional(
    Type.String({ pattern: '^[0-9]{1,6}([.][0-9]{1,3})?$', description: 'only what plays at this second', examples: ['754.5'] }),
  ),
})
const RetryReply = Type.Object({ message: Type.Literal('Queued') })

type QueueRoutesDeps = AccountQueueDeps &
  HistoryDeps & {
    retry: Retry
    encodeAgain: Retry
    encodePartAgain: EncodePartAgain
    wallNowS: () => number
  }

/** What the server does with the account's videos. */
export function queueRoutes(app: App, deps: QueueRoutesDeps): void {
  app.get(
    '/queue',
    operation('viewer', {
      summary: 'List work on videos',
      description: 'What is encoded, what waits, and what is imported, in this order and the oldest of each first.',
      response: { 200: QueueReply },
    }),
    async (request): Promise<Static<typeof QueueReply>> => {
      const queued = await listQueue(deps, authenticateRequest(request).accountId)
      return { rows: queued.map(({ videoId, ...row }) => ({ video: videoId, ...row })) }
    },
  )

  type QueueKind = 'video:retried' | 'video:reencrypted' | 'video:part-encoded'
  async function queueVideo(
    request: FastifyRequest,
    videoId: string,
    kind: QueueKind,
    queue: Retry,
    details?: { positionS: number },
  ) {
    const by = authenticateRequest(request)
    const { accountId } = by
    const event = { atS: deps.wallNowS(), accountId, by, kind, subjects: [videoId], details } as const
    await queue({ accountId, videoId }, (tx) => recordAuditEvent(tx, event))
    return { message: 'Queued' as const }
  }

  app.post(
    '/videos/:id/retry',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Encode a failed video again',
      description:
        'From the file that was uploaded, for example after the cause on the server was corrected. An import that did not fit into the storage limit is fetched again. 409 for a video that has not failed, or whose file never arrived.',
      params: VideoParams,
      response: { 200: RetryReply },
    }),
    (request) => queueVideo(request, request.params.id, 'video:retried', deps.retry),
  )

  app.post(
    '/videos/:id/encode',
    operation(EDITOR_OR_UPLOADER, {
      summary: 'Encode a video again',
      description:
        'From the file that it was made from, with a new key, for example after a change of the encoder. What it plays now stays until the new encode is complete; then viewers who watch it begin again. 409 for a video that is not ready, is being encoded again already, or whose file was lost. With `positionS` only the parts of about 20 s of video and a minute of sound that play there are encoded again, and compared with what is stored: where the same bytes come out nothing changes, else all of the video is encoded again.',
      params: VideoParams,
      querystring: EncodeQuery,
      response: { 200: RetryReply },
    }),
    (request) => {
      const { params, query } = request
      if (query.positionS === undefined) return queueVideo(request, params.id, 'video:reencrypted', deps.encodeAgain)
      const positionS = Number(query.positionS)
      const encodePart: Retry = (video, alsoInTransaction) => deps.encodePartAgain({ ...video, positionS }, alsoInTransaction)
      return queueVideo(request, params.id, 'video:part-encoded', encodePart, { positionS })
    },
  )

  app.get(
    '/videos/:id/history',
    operation('viewer', {
      summary: 'History of a video',
      description: 'How it came, was encoded and was changed, the newest first. Changes are kept for a year.',
      params: VideoParams,
      response: { 200: HistoryReply },
    }),
    async (request): Promise<Static<typeof HistoryReply>> => {
      const { video, events } = await listVideoHistory(deps, authenticateRequest(request).accountId, request.params.id)
      const actors = events.flatMap(({ actor }) => (actor === null ? [] : [actor]))
      const names = await findActorNames(deps, actors)
      const ids = events.flatMap(({ details }) => listIds(details))
      const subjectNames = await findSubjectNames(deps.db, authenticateRequest(request).accountId, ids)
      return {
        status: video.status,
        ...(video.statusReason === null ? {} : { statusReason: video.statusReason }),
        rows: events.map(({ atS, kind, actor, details }) => ({
          ...{ at: isoTime(atS), kind, what: describeKind(kind), details },
          changes: describeDetails(details, (id) => subjectNames.get(id)),
          actor: actor === null ? null : actorBody(actor, names),
        })),
      }
    },
  )
}
