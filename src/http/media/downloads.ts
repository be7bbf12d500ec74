import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { type DownloadDeps, getDownload, mayDownload } from '../../assets/download.ts'
import { DamagedFile } from '../../errors.ts'
import { PlaybackRefusal } from '../../playback/refusal.ts'
import type { Usage } from '../../usage/usage.ts'
import { refuseViewers } from '../play/limit-viewers.ts'
import type { LimitDeps } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { errorResponse } from '../wire/errors.ts'
import { contentDisposition } from './attachment.ts'
import { onResponseSent } from './count-sent-bytes.ts'
import { describePart, readRange } from './range.ts'

const DownloadParams = Type.Object({
  exp: Type.String({ pattern: '^[1-9][0-9]{0,11}$' }),
  sig: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
  keyId: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  fileId: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }),
})

/** Files on short-lived, signed paths: decrypted while they are sent, and never shown by a browser as a page of ours. */
export async function downloadInterface(
  app: App,
  deps: DownloadDeps & LimitDeps & { usage: Pick<Usage, 'recordDownloadedBytes'> },
): Promise<void> {
  refuseViewers(app, deps, ['bad-request', 'not-allowed'])
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'Cache-Control': 'no-store',
      'Content-Security-Policy': "default-src 'none'; sandbox",
      'Cross-Origin-Resource-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
    })
  })
  app.route({
    method: ['GET', 'HEAD'],
    url: '/:exp/:sig/:keyId/:fileId',
    schema: { params: DownloadParams },
    handler: async (request, reply) => {
      const { exp, sig, keyId, fileId } = request.params
      const mayOpen = await mayDownload(deps, { exp: Number(exp), sig, keyId, fileId: Number(fileId) })
      if (!mayOpen) throw new PlaybackRefusal('not-allowed')
      const download = await getDownload(deps, Number(fileId)).catch(passDamage)
      if (download instanceof DamagedFile) return sendDamage(download, request, reply)
      const { sizeBytes, videoId } = download
      // A file id is never reused.
      const tag = `"${download.version}"`
      const mayBePartial = [undefined, tag].includes(request.headers['if-range']?.toString())
      const range = readRange(mayBePartial ? request.headers.range : undefined, sizeBytes)
      const part = range === undefined || range === 'unsatisfiable' ? { first: 0, last: sizeBytes - 1 } : range
      const isSent = range !== 'unsatisfiable' && request.method !== 'HEAD' && sizeBytes > 0
      const bytes = isSent ? await download.read(part).catch(passDamage) : undefined // before any header is set
      if (bytes instanceof DamagedFile) return sendDamage(bytes, request, reply)
      reply.headers({
        'Accept-Ranges': 'bytes',
        ETag: tag,
        'Content-Type': download.contentType,
        'Content-Disposition': contentDisposition(download.name),
      })
      describePart(reply, range, sizeBytes)
      if (!bytes) return reply.send()
      onResponseSent(reply, part.last - part.first + 1, (sentBytes) => deps.usage.recordDownloadedBytes(videoId, sentBytes))
      return reply.send(bytes)
    },
  })
}

function sendDamage(damage: DamagedFile, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, ...body } = errorResponse(damage, request, reply)
  return reply.code(status).send({ ...body, requestId: request.id })
}

/** Its words are for the owner; the error handler has only those for viewers. */
function passDamage(error: unknown): DamagedFile {
  if (error instanceof DamagedFile) return error
  throw error
}
