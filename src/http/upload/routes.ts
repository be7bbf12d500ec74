import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { Failure } from '../../errors.ts'
import { acceptSource, assertRoom, confirmSource, discardSource, receiveSource, type SourceDeps } from '../../ingest/source.ts'
import { admitUpload, BUCKET } from '../../ingest/upload-policy.ts'
import type { App } from '../server/app.ts'
import { type LimitDeps, limitForms } from '../server/rate-limits.ts'
import { errorResponse } from '../wire/errors.ts'
import { xmlDocument } from '../wire/xml.ts'
import { drainForm, readUploadForm } from './form.ts'
import { POLICY_FIELDS } from './policy-fields.ts'

/** A form that has proved nothing by then is closed; the file behind a true policy takes its time (U23). */
const FIELDS_MS = 30_000

export type UploadDeps = LimitDeps & SourceDeps & { publicUrl(): string }

/** S3's names for our refusals. */
const S3_CODES: Record<string, string> = {
  invalid: 'MalformedPOSTRequest',
  'not-found': 'NoSuchKey',
  'method-not-allowed': 'MethodNotAllowed',
  forbidden: 'AccessDenied',
  timeout: 'RequestTimeout',
  conflict: 'AccessDenied',
  'too-large': 'EntityTooLarge',
  unsupported: 'PreconditionFailed',
  unavailable: 'ServiceUnavailable',
  limited: 'SlowDown',
}

const UploadForm = Type.Object({
  ...POLICY_FIELDS,
  success_action_status: Type.Optional(
    Type.String({ description: 'which status answers: 200, 201 or 204 (204 if absent)', examples: ['201'] }),
  ),
  success_action_redirect: Type.Optional(
    Type.String({ description: 'an address to be sent to instead, by 303, with bucket, key and etag' }),
  ),
  file: Type.String({ format: 'binary', description: 'the video; the last field', examples: ['@video.mp4'] }),
})

const UploadReplies = {
  200: { description: 'Stored', type: 'null' },
  201: {
    description: 'Stored, with S3’s PostResponse: Location, Bucket, Key, ETag',
    content: { 'application/xml': { schema: Type.String() } },
  },
  204: { description: 'Stored', type: 'null' },
  303: { description: 'Stored; on to success_action_redirect', type: 'null' },
}

/** The S3 POST-policy form (wire-contract.md, section 4). It carries its own proof, so any origin may send it. */
export async function uploadInterface(app: App, deps: UploadDeps): Promise<void> {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('multipart/form-data', (_request, payload, done) => done(null, payload))
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('Access-Control-Allow-Origin', '*')
  })
  limitForms(app, deps)
  app.setErrorHandler(async (error, request, reply) => {
    const { status, code, message } = errorResponse(error, request, reply)
    if (!request.isBanned && status !== 408) await drainForm(request.raw)
    return sendXml(reply.code(status).header('Connection', 'close'), {
      Error: { Code: S3_CODES[code] ?? 'InternalError', Message: message, RequestId: request.id },
    })
  })

  app.setNotFoundHandler(async () => {
    throw new Failure('not-found', 'There is no page at this address. A video is sent to /upload.')
  })

  app.options('/', async (_request, reply) =>
    reply
      .code(204)
      .headers({
        'Access-Control-Allow-Methods': 'POST, OPTIONS',
        'Access-Control-Allow-Headers': '*',
        'Access-Control-Max-Age': '86400',
      })
      .send(),
  )

  app.post(
    '/',
    { config: { described: { body: UploadForm, response: UploadReplies } }, schema: { summary: 'Send a video' } },
    async (request, reply) => {
      const declaredBytes = Number(request.headers['content-length'] ?? 0)
      refuseDeclaredSize(declaredBytes, deps.uploadMaxBytes)
      await assertRoom(deps, declaredBytes)
      const { key, fields, sha256, received } = await readUploadForm(request.raw, {
        async receive({ fields, fileName, file }) {
          const { key, videoId, isSpent } = await admitUpload(deps, fields)
          if (isSpent) return { key, fields, sha256: await confirmSource(deps, videoId, file), received: undefined }
          const source = await receiveSource(deps, videoId, file)
          return { key, fields, sha256: source.sha256, received: { videoId, fileName, source } }
        },
        discard: async ({ received }) => received && discardSource(deps, received.source),
        fieldsWithinMs: FIELDS_MS,
      })
      if (received) await acceptSource(deps, { policyKey: key, ...received })
      return answerUpload(reply, deps.publicUrl(), { key, etag: sha256.toString('hex') }, fields)
    },
  )
}

function refuseDeclaredSize(declaredBytes: number, uploadMaxBytes: number): void {
  const formBytes = 2 ** 20 // fields and boundaries
  if (declaredBytes > uploadMaxBytes + formBytes)
    throw new Failure('too-large', `The file is larger than ${uploadMaxBytes} bytes, the largest this server accepts.`)
}

/** 303 to a given address, or 200, 201 with S3's document, 204. */
function answerUpload(
  reply: FastifyReply,
  publicUrl: string,
  stored: { key: string; etag: string },
  fields: ReadonlyMap<string, string>,
): FastifyReply {
  const location = `${publicUrl}/upload/${stored.key}`
  reply.header('ETag', `"${stored.etag}"`).header('Location', location)
  const redirect = fields.get('success_action_redirect') ?? ''
  if (URL.canParse(redirect) && /^https?:/i.test(redirect)) {
    const target = new URL(redirect)
    for (const [name, value] of Object.entries({ bucket: BUCKET, key: stored.key, etag: `"${stored.etag}"` }))
      target.searchParams.set(name, value)
    return reply.redirect(target.href, 303)
  }
  const status = fields.get('success_action_status')
  if (status === '200') return reply.code(200).send()
  if (status === '201') {
    return sendXml(reply.code(201), {
      PostResponse: { Location: location, Bucket: BUCKET, Key: stored.key, ETag: `"${stored.etag}"` },
    })
  }
  return reply.code(204).send()
}

function sendXml(reply: FastifyReply, document: Record<string, unknown>): FastifyReply {
  return reply.type('application/xml').send(xmlDocument(document))
}
