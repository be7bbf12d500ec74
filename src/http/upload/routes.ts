import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import type { DeletionDeps } from '../../catalogue/deletion.ts'
import { FAILURES } from '../../error-catalogue.ts'
import { Failure } from '../../errors.ts'
import type { SourceDeps } from '../../ingest/source.ts'
import { receiveWithToken } from '../../ingest/token-form.ts'
import { type IncomingUpload, receiveUpload } from '../../ingest/upload.ts'
import { BUCKET } from '../../ingest/upload-policy.ts'
import { admitFromOrigin, getUploadToken } from '../../ingest/upload-token.ts'
import { type LimitDeps, limitForms } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { errorResponse } from '../wire/errors.ts'
import { operation } from '../wire/operation.ts'
import { xmlDocument } from '../wire/xml.ts'
import { drainForm, MAX_FORM_BYTES, readUploadForm } from './form.ts'
import { POLICY_FIELDS } from './policy-fields.ts'

/** For the fields before the file, which contain the policy. A file with a valid policy may take longer (U23). */
const FIELDS_TIMEOUT_MS = 30_000

type UploadDeps = LimitDeps & SourceDeps & DeletionDeps & { publicUrl(): string }

const UploadForm = Type.Object({
  ...POLICY_FIELDS,
  success_action_status: Type.Optional(
    Type.String({ description: 'status of the response: 200, 201 or 204 (204 if absent)', examples: ['201'] }),
  ),
  success_action_redirect: Type.Optional(
    Type.String({ description: 'URL to redirect to instead (303), with bucket, key and etag' }),
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
  303: { description: 'Stored; redirects to success_action_redirect', type: 'null' },
}

/** The S3 POST-policy form (wire-contract.md, section 4). Its policy is signed, so any origin may send it. */
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
      Error: { Code: FAILURES[code].s3, Message: message, RequestId: request.id },
    })
  })

  app.setNotFoundHandler(async () => {
    throw new Failure('not-found', 'There is no page at this address. Send videos to /upload.')
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
    operation({ described: { body: UploadForm, response: UploadReplies } }, { summary: 'Send a video' }),
    async (request, reply) => {
      const declaredBytes = Math.max(0, Number(request.headers['content-length'] ?? 0) - MAX_FORM_BYTES)
      const { origin } = request.headers
      const { fields, videoId, key, sha256 } = await readUploadForm(
        request.raw,
        async (upload) => ({ fields: upload.fields, ...(await receiveForm(deps, origin, { ...upload, declaredBytes })) }),
        FIELDS_TIMEOUT_MS,
      )
      if (videoId !== undefined)
        reply.headers({ 'Reelgate-Video-Id': videoId, 'Access-Control-Expose-Headers': 'Reelgate-Video-Id' })
      return sendStored(reply, deps.publicUrl(), { key, etag: sha256.toString('hex') }, fields)
    },
  )
}

type Received = { key: string; sha256: Buffer; videoId?: string }

/** By the token in its fields, or the policy. A token is a field, because a form without a script can send no header. */
async function receiveForm(deps: UploadDeps, origin: string | undefined, upload: IncomingUpload): Promise<Received> {
  const token = upload.fields.get('token')
  if (token === undefined || upload.fields.has('policy')) return receiveUpload(deps, upload)
  return receiveWithToken(deps, admitFromOrigin(await getUploadToken(deps, token), origin), upload)
}

/** 303 to the given address, or 200, 201 with S3's document, or 204. */
function sendStored(
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
