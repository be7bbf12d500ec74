import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { Failure } from '../../errors.ts'
import type { HandOut } from '../../workers/hand-out.ts'
import {
  AddressBody,
  AddressReply,
  ClaimBody,
  EndBody,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  TaskBody,
} from '../../workers/protocol.ts'
import { authenticateWorker, type Worker, type WorkerDeps } from '../../workers/worker.ts'
import { describePart, readRange } from '../media/range.ts'
import { countUnauthenticated } from '../server/identify.ts'
import type { LimitDeps } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'

// What encoders on other machines ask: docs/reference/worker-protocol.md.

const Id = Type.String({ pattern: '^[0-9a-f]{32}$' })
const Number9 = Type.String({ pattern: '^[0-9]{1,9}$' })
const TaskParams = Type.Object({ task: Id })
const InitParams = Type.Object({ task: Id, rendition: Number9 })
const SegmentParams = Type.Object({ task: Id, rendition: Number9, number: Number9 })

export type WorkerRoutesDeps = LimitDeps & Pick<WorkerDeps, 'db'> & { handOut: HandOut }

/** The routes of workers: a token opens them, and nothing else does; it opens no others. */
export async function workerInterface(app: App, deps: WorkerRoutesDeps): Promise<void> {
  const { handOut } = deps
  const workers = new WeakMap<FastifyRequest, Worker>()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, async (_request: FastifyRequest, text: string) =>
    readJson(text),
  )
  // Not limited in time: a segment may take longer than any other body, and only workers send one.
  app.addContentTypeParser('application/octet-stream', (_request, payload, done) => done(null, payload))
  app.addHook('preClose', async () => handOut.stopWaiting())
  app.addHook('onRequest', async (request, reply) => {
    try {
      workers.set(request, await authenticateWorker(deps, readToken(request)))
    } catch (error) {
      throw await countUnauthenticated(deps, { request, reply }, error)
    }
    request.isCounted = true
    assertVersion(request)
  })
  const workerOf = (request: FastifyRequest) => {
    const worker = workers.get(request)
    if (!worker) throw new Failure('unauthenticated')
    return worker
  }
  const taskOf = (request: FastifyRequest, id: string) => handOut.getTask(workerOf(request), id)

  app.post('/claim', { schema: { body: ClaimBody, response: { 200: TaskBody, 204: Type.Null() } } }, async (request, reply) => {
    const closed = new AbortController()
    reply.raw.once('close', () => closed.abort())
    const task = await handOut.claim(workerOf(request), request.body, closed.signal)
    return task ?? reply.code(204).send(null)
  })

  const source = { exposeHeadRoute: false, schema: { params: TaskParams } }
  app.get('/tasks/:task/source', source, async (request, reply) => {
    const task = taskOf(request, request.params.task)
    const { sealedBytes } = task.body.source
    const range = readRange(request.headers.range, sealedBytes)
    if (range === 'unsatisfiable') return describePart(reply, range, sealedBytes).send()
    const { first, last, bytes } = await handOut.openSource(task, range ?? { first: 0, last: sealedBytes - 1 })
    describePart(reply, { first, last }, sealedBytes).type('application/octet-stream')
    return reply.send(bytes)
  })

  app.put('/tasks/:task/init/:rendition', { schema: { params: InitParams } }, async (request, reply) => {
    const { params, body } = request
    await taskOf(request, params.task).receiveInit(Number(params.rendition), bytesOf(body))
    return reply.code(204).send()
  })

  app.put('/tasks/:task/segments/:rendition/:number', { schema: { params: SegmentParams } }, async (request, reply) => {
    const { params, body } = request
    const { renditionId, number } = segmentOf(params)
    await taskOf(request, params.task).receiveSegment(renditionId, number, bytesOf(body))
    return reply.code(204).send()
  })

  const address = { params: SegmentParams, body: AddressBody, response: { 200: AddressReply, 204: Type.Null() } }
  app.post('/tasks/:task/segments/:rendition/:number/address', { schema: address }, async (request, reply) => {
    const { params, body } = request
    return (await handOut.presign(taskOf(request, params.task), segmentOf(params), body)) ?? reply.code(204).send(null)
  })

  app.post('/tasks/:task/segments/:rendition/:number/stored', { schema: { params: SegmentParams } }, async (request, reply) => {
    const { params } = request
    await handOut.receiveStored(taskOf(request, params.task), segmentOf(params))
    return reply.code(204).send()
  })

  app.post('/tasks/:task/heartbeat', { schema: { params: TaskParams } }, async (request, reply) => {
    taskOf(request, request.params.task)
    return reply.code(204).send()
  })

  app.post('/tasks/:task/end', { schema: { params: TaskParams, body: EndBody } }, async (request, reply) => {
    handOut.end(taskOf(request, request.params.task), request.body)
    return reply.code(202).send()
  })
}

function segmentOf({ rendition, number }: Static<typeof SegmentParams>) {
  return { renditionId: Number(rendition), number: Number(number) }
}

function readToken(request: FastifyRequest): string {
  const [header = '', ...others] = request.raw.headersDistinct.authorization ?? []
  const [, token] = others.length === 0 ? (/^Bearer ([!-~]+)$/i.exec(header) ?? []) : []
  if (token === undefined) throw new Failure('unauthenticated', 'Send the token of a worker as "Authorization: Bearer …".')
  return token
}

function assertVersion({ headers }: FastifyRequest): void {
  if (headers[PROTOCOL_HEADER.toLowerCase()] === PROTOCOL_VERSION) return
  throw new Failure(
    'conflict',
    `This server speaks version ${PROTOCOL_VERSION} of the worker protocol. Install the server's version of Reelgate on the worker's machine.`,
  )
}

function readJson(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch (error) {
    throw new Failure('invalid', 'The body is not valid JSON.', { cause: error })
  }
}

/** What is left after a refusal is read, too: else the connection would be reset before the worker gets the answer. */
async function* bytesOf(body: unknown): AsyncGenerator<Buffer> {
  if (!(body instanceof Readable)) throw new Failure('unsupported', 'Send the bytes as application/octet-stream.')
  try {
    yield* body.iterator({ destroyOnReturn: false })
  } finally {
    body.resume()
  }
}
