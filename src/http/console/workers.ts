import { type Static, Type } from 'typebox'
import { describeWorker, findWorkers, removeWorker, setWorkerDrained, type WorkerDeps } from '../../workers/worker.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { Flag, isOn } from '../wire/flag.ts'
import { isoTime } from '../wire/iso-time.ts'
import { ADMINISTRATOR, operation } from '../wire/operation.ts'

const Name = Type.String({ description: 'of the worker', maxLength: 63, examples: ['office'] })
const WorkerParams = Type.Object({ name: Name })
const WorkerBody = Type.Object({
  name: Name,
  trusted: Type.Boolean({ description: 'one of twenty of its segments is compared with the source, not each' }),
  state: Type.Union(
    [Type.Literal('encodes'), Type.Literal('waits'), Type.Literal('silent'), Type.Literal('drained'), Type.Literal('suspended')],
    { description: 'silent: no request in ten minutes' },
  ),
  reason: Type.Union([Type.String(), Type.Null()], { description: 'why it is suspended' }),
  kinds: Type.String({ description: 'what it takes: video, audio, or both with a comma' }),
  encodes: Type.Array(
    Type.Object({
      video: Type.String({ description: 'its id' }),
      kind: Type.Union([Type.Literal('video'), Type.Literal('audio')]),
      firstSegment: Type.Integer(),
      segmentCount: Type.Integer(),
      forS: Type.Integer({ description: 'since when, in seconds' }),
    }),
    { description: 'its chunks' },
  ),
  speed: Type.Union([Type.Number(), Type.Null()], { description: 'seconds of video in a second of a chunk' }),
  lastSeenAt: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601; null: never' }),
})
const ListReply = Type.Object({ rows: Type.Array(WorkerBody) })
export type WorkerListBody = Static<typeof ListReply>
const ChangeBody = Type.Object({
  drained: {
    ...Flag,
    description: '1: it gets no more chunks, and finishes those that it has; 0: it gets chunks again, also after a suspension',
  },
})
const ChangedReply = Type.Object({ message: Type.Literal('Changed') })
const RemovedReply = Type.Object({ message: Type.Literal('Removed') })

/** `workers`: a server that answers no workers, such as another one's, has none of their tasks. */
export type WorkerAdminDeps = { workers: WorkerDeps }

/** Encoders on other machines, for administrators. They are added on the command line, which shows the token. */
export function workerAdminRoutes(app: App, { workers }: WorkerAdminDeps): void {
  app.get(
    '/system/workers',
    operation(
      { permission: 'viewer', isForAdministrators: true },
      {
        summary: 'List workers',
        description: 'For administrators: encoders on other machines, by name, and what each encodes.',
        response: { 200: ListReply },
      },
    ),
    async (): Promise<WorkerListBody> => ({
      rows: (await findWorkers(workers)).map((worker) => {
        const { name, state, reason, speed, lastSeenAtS } = describeWorker(worker, workers.nowS())
        return {
          ...{ name, trusted: worker.trusted, state, reason, kinds: worker.kinds.join(','), speed },
          encodes: worker.tasks.map(({ videoId, ...task }) => ({ video: videoId, ...task })),
          lastSeenAt: lastSeenAtS === null ? null : isoTime(lastSeenAtS),
        }
      }),
    }),
  )

  app.put(
    '/system/workers/:name',
    operation(ADMINISTRATOR, {
      summary: 'Drain or resume a worker',
      description: 'For administrators.',
      params: WorkerParams,
      body: ChangeBody,
      response: { 200: ChangedReply },
    }),
    async (request) => {
      await setWorkerDrained(workers, request.params.name, isOn(request.body.drained), authenticateRequest(request))
      return { message: 'Changed' as const }
    },
  )

  app.delete(
    '/system/workers/:name',
    operation(ADMINISTRATOR, {
      summary: 'Remove a worker',
      description: 'For administrators. Its token is refused from then on, and other encoders take its chunks.',
      params: WorkerParams,
      response: { 200: RemovedReply },
    }),
    async (request) => {
      await removeWorker(workers, request.params.name, authenticateRequest(request))
      return { message: 'Removed' as const }
    },
  )
}
