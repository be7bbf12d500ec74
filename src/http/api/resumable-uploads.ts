import type { IncomingMessage } from 'node:http'
import type { Server as TusServer, Upload as TusUpload } from '@tus/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type ErrorCode, FAILURES } from '../../error-catalogue.ts'
import { Failure, type FailureKind } from '../../errors.ts'
import {
  beginUpload,
  checkArrived,
  getUpload,
  type ResumableUpload,
  type ResumableUploadDeps,
  receivePart,
  terminateUpload,
  type UploadPart,
  uploadFinished,
} from '../../ingest/resumable-upload.ts'
import type { UploadConnection } from '../../ingest/upload-locks.ts'
import { limitToToken, type Uploader } from '../../ingest/upload-token.ts'
import { uploaderOf } from '../server/caller.ts'
import { type LimitDeps, limitByAddress } from '../server/limit.ts'
import { answerPreflight } from '../server/upload-tokens.ts'
import { drainForm } from '../upload/form.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { parseMetadata } from '../wire/own-fields.ts'
import { pathToRoot } from '../wire/path-to-root.ts'

// Resumable uploads: tus 1.0 (https://tus.io/protocols/resumable-upload). @tus/server reads the headers and has the protocol's rules; what
// an upload is, and what of it is durable, is ingest/resumable-upload.ts. Expiry and checksums are ours, by our clock.

type RoutesDeps = ResumableUploadDeps & LimitDeps & { publicUrl(): string }

const PART_TYPE = 'application/offset+octet-stream'
const EXTENSIONS = ['creation', 'creation-with-upload', 'creation-defer-length', 'expiration', 'termination', 'checksum']
const CHECKSUM_ALGORITHMS: readonly string[] = ['sha1', 'sha256', 'md5']

const UploadParams = Type.Object({
  uploadId: Type.String({ description: 'the end of the address in Location', examples: [EXAMPLE.uploadId] }),
})
// Left to the protocol's rules: without it the answer is 412.
const tus = { 'tus-resumable': Type.Optional(Type.String({ description: 'always 1.0.0; needed', examples: ['1.0.0'] })) }
const partHeaders = {
  'upload-checksum': Type.Optional(
    Type.String({ description: 'sha1, sha256 or md5, a space, and the hash of this request’s bytes in base64' }),
  ),
}
const CreateHeaders = Type.Object({
  ...tus,
  'upload-length': Type.Optional(Type.String({ description: 'bytes of the whole file', examples: ['1000000'] })),
  'upload-defer-length': Type.Optional(Type.String({ description: '1: the length comes with a later part' })),
  'upload-metadata': Type.Optional(
    Type.String({
      description:
        'pairs of a name and a value in base64, with commas between them: title, filename, folderId, tags (with commas between them), externalId, metadata (JSON); or filename and videoId, whose file is replaced (needs editor)',
      examples: ['title TGVzc29uIDEy'],
    }),
  ),
  ...partHeaders,
})
const PartHeaders = Type.Object({
  ...tus,
  'content-type': Type.Optional(Type.String({ examples: [PART_TYPE] })),
  'upload-offset': Type.Optional(
    Type.String({ description: 'where the bytes belong: as many as have arrived', examples: ['0'] }),
  ),
  'upload-length': Type.Optional(Type.String({ description: 'of the whole file, when it was not known before' })),
  ...partHeaders,
})
const Tus = Type.Object(tus)

/** A request for an upload, while it is answered. */
type TusCall = {
  request: FastifyRequest
  reply: FastifyReply
  holder: Uploader
  connection: BodyConnection
  upload?: ResumableUpload
  error?: unknown
}

export function resumableUploadRoutes(api: App, deps: RoutesDeps): void {
  api.register(async (app) => {
    app.addContentTypeParser(PART_TYPE, (_request, _payload, done) => done(null)) // read below, as it comes
    const queued = { bytes: 0 }
    const answer = async (request: FastifyRequest, reply: FastifyReply) => {
      const call = { request, reply, holder: uploaderOf(request), connection: connectionOf(request.raw, queued) }
      const allowed = limitToToken(deps, call.holder)
      return answerTus(allowed, call, await createTusServer(allowed, call))
    }
    app.post(
      '/uploads',
      {
        config: {
          permission: 'uploader',
          acceptsBearer: true,
          described: { response: { 201: { description: 'Begun', type: 'null' } } },
        },
        schema: {
          summary: 'Begin a resumable upload',
          description: `tus 1.0: answered with 201, the address of the upload in Location, and the id of its video in Reelgate-Video-Id. The body may already have bytes, as ${PART_TYPE}.`,
          headers: CreateHeaders,
        },
      },
      answer,
    )
    const ofOne = {
      ...({ permission: 'uploader', acceptsBearer: true, budget: 'reads' } as const),
      described: { response: { 204: { description: 'Done', type: 'null' } } },
    }
    app.head('/uploads/:uploadId', { config: ofOne, schema: { params: UploadParams } }, answer)
    app.patch(
      '/uploads/:uploadId',
      {
        config: ofOne,
        schema: {
          summary: 'Send a part of a resumable upload',
          description: `The body is ${PART_TYPE}. Answered with 204 once it is durable, and how many bytes have arrived in Upload-Offset. HEAD returns the same.`,
          params: UploadParams,
          headers: PartHeaders,
        },
      },
      answer,
    )
    app.delete(
      '/uploads/:uploadId',
      {
        config: ofOne,
        schema: {
          summary: 'End a resumable upload',
          description: 'Deletes what has arrived, and its video unless that has another file. One that has finished is refused.',
          params: UploadParams,
          headers: Tus,
        },
      },
      answer,
    )
  })
  if (api.prefix !== '/api') return // the console's pages need no such question
  api.register(async (app) => {
    limitByAddress(app, deps, 'playback')
    const describe = async (request: FastifyRequest, reply: FastifyReply) => {
      await answerPreflight(deps, request, reply)
      return reply
        .code(204)
        .headers({
          'Tus-Resumable': '1.0.0',
          'Tus-Version': '1.0.0',
          'Tus-Extension': EXTENSIONS.join(','),
          'Tus-Max-Size': String(deps.uploadMaxBytes),
          'Tus-Checksum-Algorithm': CHECKSUM_ALGORITHMS.join(','),
        })
        .send()
    }
    for (const path of ['/uploads', '/uploads/:uploadId']) app.options(path, { config: { isPublic: true } }, describe)
  })
}

/** Answers by the rules of the protocol. @throws Failure with the headers of the protocol set */
async function answerTus(deps: RoutesDeps, call: TusCall, server: TusServer): Promise<FastifyReply> {
  const { request, reply } = call
  // Without the body, which is read from the connection: through a web stream and back again it would take twice the time.
  const { method, headers: given } = request
  const [path] = request.url.split('?')
  const headers = Object.entries(given).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[name, value]] : [],
  )
  const response = await server.handleWeb(new Request(`http://localhost${path}`, { method, headers }))
  for (const [name, value] of response.headers) if (/^(tus|upload|location)/.test(name)) reply.header(name, value)
  describeUpload(deps, call, response.status)
  if (response.status < 400) return reply.code(response.status).send()
  call.connection.release()
  if (!request.raw.complete) {
    reply.header('Connection', 'close')
    if (!request.raw.destroyed) await drainForm(request.raw)
  }
  throw toFailure(call.error, response.status, (await response.text()).trim())
}

function describeUpload(deps: RoutesDeps, { request, reply, upload }: TusCall, status: number): void {
  if (!upload) return
  reply.header('Reelgate-Video-Id', upload.videoId)
  if (status < 400 || status === 409) reply.header('Upload-Offset', String(upload.receivedBytes))
  if (request.method === 'HEAD' && upload.metadata) reply.header('Upload-Metadata', upload.metadata)
  if (upload.finishedAtS !== null) return
  const expiresAtMs = (deps.wallNowS() + upload.expiresAtS - deps.nowS()) * 1000
  reply.header('Upload-Expires', new Date(expiresAtMs).toUTCString())
}

const KINDS: readonly FailureKind[] = ['invalid', 'forbidden', 'not-found', 'conflict', 'gone', 'tus-version', 'too-large']

/** What the protocol's rules refused, or what the feature threw. */
function toFailure(error: unknown, status: number, message: string): unknown {
  if (error instanceof Error) return error
  const kind = KINDS.find((each: ErrorCode) => FAILURES[each].status === status) ?? 'invalid'
  return new Failure(kind, SENTENCES[kind] ?? `${message}.`.replace(/\.\.$/, '.'))
}

const SENTENCES: Partial<Record<FailureKind, string>> = {
  conflict: 'The part does not begin where what has arrived ends: Upload-Offset has that. Send from there.',
  'tus-version': 'Send the header "Tus-Resumable: 1.0.0": resumable uploads follow version 1.0.0 of tus.',
  'too-large': 'The part is longer than the rest of the upload, or the file than this server accepts.',
}

async function createTusServer(deps: RoutesDeps, call: TusCall): Promise<TusServer> {
  const { Server, DataStore, Upload } = await import('@tus/server')
  const { request, holder, connection } = call
  let lengthBytes: number | undefined
  let lock: Disposable | undefined

  async function find(id: string): Promise<ResumableUpload> {
    call.upload = await getUpload(deps, holder, id)
    if (request.method === 'PATCH' && call.upload.finishedAtS !== null) throw uploadFinished()
    return call.upload
  }

  class Uploads extends DataStore {
    override extensions = EXTENSIONS
    /** By our clock, not by the machine's. */
    override hasExtension = (name: string) => name !== 'expiration' && EXTENSIONS.includes(name)

    override async create(upload: TusUpload) {
      const metadata = request.headers['upload-metadata']?.toString() ?? ''
      call.upload = await beginUpload(deps, holder, { ...readMetadata(upload), metadata, lengthBytes: upload.size })
      upload.id = call.upload.id
      return upload
    }

    override async getUpload(id: string) {
      call.upload = await checkArrived(deps, await find(id))
      const { receivedBytes, lengthBytes } = call.upload
      return new Upload({ id, offset: receivedBytes, ...(lengthBytes !== null && { size: lengthBytes }) })
    }

    override async declareUploadLength(_id: string, length: number) {
      lengthBytes = length
    }

    override async write() {
      if (!call.upload) throw new Error('the upload was not looked for')
      const { id } = call.upload
      const offset = await receivePart(deps, call.upload, { ...readPart(request), bytes: connection.bytes(), lengthBytes })
      call.upload = await getUpload(deps, holder, id)
      return offset
    }

    override async remove(id: string) {
      await terminateUpload(deps, holder, await find(id))
      delete call.upload
    }
  }

  return new Server({
    path: '/uploads',
    datastore: new Uploads(),
    maxSize: deps.uploadMaxBytes,
    generateUrl: (_request, { id }) => locationOf(deps, request, id),
    allowedOrigins: () => false,
    onIncomingRequest: async (_request, id) => {
      if (request.method !== 'POST') await find(id)
    },
    onResponseError: (_request, error) => {
      call.error = error
      return undefined
    },
    locker: {
      newLock: (id) => ({
        async lock() {
          lock = await deps.uploadLocks.take(id, connection)
        },
        async unlock() {
          lock?.[Symbol.dispose]()
        },
      }),
    },
  })
}

/**
 * Absolute where the client used the public URL, else relative to the address that it used: so it is right behind any proxy and below any
 * prefix, with and without its headers.
 */
function locationOf({ publicUrl }: RoutesDeps, request: FastifyRequest, id: string): string {
  const root = new URL(publicUrl())
  const [path = ''] = request.originalUrl.split('?')
  const address = `${path.replace(/\/$/, '').slice(1)}/${id}`
  return request.headers.host === root.host
    ? `${root.href.replace(/\/$/, '')}/${address}`
    : pathToRoot(request.originalUrl) + address
}

/** What a client says of the file; other pairs are its own, and come back to it alone. */
function readMetadata({ metadata = {} }: TusUpload) {
  const { title, filename, name, folderId, tags, videoId, externalId, metadata: pairs } = metadata
  return {
    title: title || undefined,
    fileName: filename || name || '',
    folderId: folderId || undefined,
    tags: tags ? tags.split(',') : [],
    videoId: videoId || undefined,
    ownFields: { externalId, metadata: pairs ? parseMetadata(pairs) : undefined },
  }
}

function readPart({ headers }: FastifyRequest): Pick<UploadPart, 'declaredBytes' | 'checksum'> {
  return { declaredBytes: Number(headers['content-length'] ?? 0), checksum: readChecksum(headers['upload-checksum']?.toString()) }
}

/** @throws Failure `invalid` */
function readChecksum(header: string | undefined): UploadPart['checksum'] {
  if (header === undefined) return undefined
  const [, algorithm = '', hash = ''] = /^([a-z0-9]+) ([A-Za-z0-9+/]+={0,2})$/.exec(header) ?? []
  if (!CHECKSUM_ALGORITHMS.includes(algorithm))
    throw new Failure('invalid', `Upload-Checksum must be ${CHECKSUM_ALGORITHMS.join(', ')}, a space, and the hash in base64.`)
  return { algorithm, digest: Buffer.from(hash, 'base64') }
}

/**
 * How much of a body waits in memory: what is sealed next, while a MiB is sealed and written. Many uploads at once share what they may have
 * beyond the least.
 */
const QUEUE = { leastBytes: 2 ** 18, mostBytes: 2 ** 20, sharedBytes: 6 * 2 ** 20 }
type Queued = { bytes: number }

/** A request for an upload, with what it brings. */
type BodyConnection = UploadConnection & {
  /** All that comes, also of a body that breaks off. @throws Failure `invalid` then */
  bytes(): AsyncGenerator<Buffer>
  /** Keeps nothing more of the body: what still comes is for its reader to discard. */
  release(): void
}

/**
 * Takes a body as it comes, from now on: a stream that breaks off would lose what was not yet read of it.
 * @param all of all bodies that come
 */
function connectionOf(body: IncomingMessage, all: Queued): BodyConnection {
  const queue: Buffer[] = []
  let queuedBytes = 0
  const count = (bytes: number) => {
    queuedBytes += bytes
    all.bytes += bytes
  }
  const mayQueue = () => queuedBytes < QUEUE.leastBytes || (queuedBytes < QUEUE.mostBytes && all.bytes < QUEUE.sharedBytes)
  body.once('close', () => {
    all.bytes -= queuedBytes
    all = { bytes: 0 } // what is still read of it makes no others wait
  })
  let waitingSinceMs: number | undefined
  let wake = () => {}

  function add(chunk: Buffer): void {
    queue.push(chunk)
    count(chunk.length)
    if (!mayQueue()) body.pause()
    wake()
  }
  body.on('data', add)
  for (const event of ['end', 'close', 'error']) body.on(event, () => wake())

  return {
    silentForMs() {
      const { headers, complete, destroyed } = body
      const isExpected = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
      if (!isExpected || complete || destroyed) return undefined
      return waitingSinceMs === undefined ? 0 : performance.now() - waitingSinceMs
    },
    end: () => void body.destroy(),
    release() {
      body.off('data', add)
      queue.length = 0
      count(-queuedBytes)
    },
    async *bytes() {
      for (;;) {
        const chunk = queue.shift()
        if (chunk) {
          count(-chunk.length)
          if (mayQueue()) body.resume()
          yield chunk
        } else if (body.readableEnded) return
        else if (body.destroyed)
          throw new Failure('invalid', 'The part broke off. Ask for the offset: without a checksum, what came of it is kept.')
        else {
          waitingSinceMs = performance.now()
          await new Promise<void>((resolve) => {
            wake = resolve
          })
          waitingSinceMs = undefined
        }
      }
    },
  }
}
