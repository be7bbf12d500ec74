import type { FastifyReply, FastifyRequest } from 'fastify'
import { FAILURES } from '../../error-catalogue.ts'
import { Failure } from '../../errors.ts'
import { countUnauthenticated } from '../server/identify.ts'
import type { LimitDeps } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { addBodyParsers } from '../wire/bodies.ts'
import { errorResponse } from '../wire/errors.ts'
import { type V2FileDeps, v2FileRoutes } from './files.ts'
import { type V2ImportDeps, v2ImportRoutes } from './import.ts'
import { findKeyBeforeBody } from './key-field.ts'
import { type V2OtpDeps, v2OtpRoutes } from './otp.ts'
import { NO_VIDEO, sendV2 } from './response.ts'
import { type V2TagDeps, v2TagRoutes } from './tags.ts'
import { type V2UploadDeps, v2UploadRoutes } from './uploads.ts'
import { type V2VideoDeps, v2VideoRoutes } from './videos.ts'

export type V2Deps = LimitDeps & V2FileDeps & V2OtpDeps & V2VideoDeps & V2ImportDeps & V2TagDeps & V2UploadDeps

/** The earlier interface, `/v2`: POST with `clientSecretKey` in the body, JSON or XML out (wire-contract.md, section 6). */
export async function v2Interface(app: App, deps: V2Deps): Promise<void> {
  addBodyParsers(app)
  const paths: string[] = []
  app.addHook('onRoute', ({ url }) => void paths.push(url))
  app.addHook('preParsing', async (request, reply, payload) => {
    if (!request.is404) return findKeyBeforeBody(deps.authenticate, request, payload)
    await refuseUnknown(request, reply)
    return payload
  })
  app.setErrorHandler(async (error, request, reply) => {
    const refusal = await countUnauthenticated(deps, { request, reply }, error)
    const { status, message, code } = errorResponse(refusal, request, reply)
    if (code === 'not-found') return sendV2(request, reply.code(FAILURES[code].v2Status), NO_VIDEO)
    // The sentence of a fault points to the log, which knows it by this id.
    return sendV2(request, reply.code(status), status === 500 ? { error: message, requestId: request.id } : { error: message })
  })
  app.setNotFoundHandler(refuseUnknown)
  v2OtpRoutes(app, deps)
  v2VideoRoutes(app, deps)
  v2ImportRoutes(app, deps)
  v2TagRoutes(app, deps)
  v2UploadRoutes(app, deps)
  v2FileRoutes(app, deps)

  async function refuseUnknown(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const sentence = `There is no such operation. The earlier interface is called by POST at ${inWords(paths)}.`
    const refusal = await countUnauthenticated(deps, { request, reply }, new Failure('not-found', sentence))
    const { status, message } = errorResponse(refusal, request, reply)
    return sendV2(request, reply.code(status), { error: message })
  }
}

function inWords(paths: readonly string[]): string {
  return new Intl.ListFormat('en-GB').format(paths)
}
