import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { GenerationKey } from '../../catalogue/generation-key.ts'
import type { MediaDelivery } from '../../playback/media/delivery.ts'
import { parseSegmentFileName, SEGMENT_FILE_NAME } from '../../playback/media/playlist.ts'
import type { OpenSegment, SegmentFile } from '../../playback/media/segment-reader.ts'
import { openInit, openSegment, type SegmentDeps } from '../../playback/media/segments.ts'
import { PlaybackRefusal } from '../../playback/refusal.ts'
import type { TrafficMeter } from '../../playback/sessions/traffic.ts'
import type { Usage } from '../../usage/usage.ts'
import { refuseViewers } from '../play/limit-viewers.ts'
import type { LimitDeps } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { onResponseSent, sendWhole } from './count-sent-bytes.ts'
import { describePart, readRange } from './range.ts'

const MediaParams = Type.Object({
  exp: Type.String({ pattern: '^[1-9][0-9]{0,11}$' }),
  sig: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$' }),
  videoId: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  generation: Type.String({ pattern: '^[1-9][0-9]{0,8}$' }),
  rendition: Type.String({ pattern: '^[1-9][0-9]{0,8}$' }),
  file: Type.String({ pattern: `^init\\.mp4$|${SEGMENT_FILE_NAME.source}` }),
})

const IMMUTABLE = 'public, max-age=31536000, immutable'

type MediaDeps = SegmentDeps &
  LimitDeps & {
    usage: Pick<Usage, 'recordSentBytes'>
    traffic: TrafficMeter | undefined
    delivery: Pick<MediaDelivery, 'findSizesElsewhere' | 'findPresigner'>
    /** The path of the folder of segments at the proxy that a request came through; undefined: the server sends them. */
    accelPathFor(request: FastifyRequest): string | undefined
  }

/** Ciphertext on signed paths: cacheable without limit, open to any origin, no credentials (playback-protocol.md, section 8). */
export async function mediaInterface(app: App, deps: MediaDeps): Promise<void> {
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'Cache-Control': 'no-store',
      'Access-Control-Allow-Origin': '*',
      'Cross-Origin-Resource-Policy': 'cross-origin',
    })
  })
  refuseViewers(app, deps, ['bad-request', 'not-allowed', 'video-gone', 'file-gone'])
  const options = { exposeHeadRoute: false, schema: { params: MediaParams } } // sent bytes are counted
  app.get('/:exp/:sig/:videoId/:generation/:rendition/:file', options, async (request, reply) => {
    const { params } = request
    const path = { exp: Number(params.exp), sig: params.sig, videoId: params.videoId, generation: Number(params.generation) }
    const closed = new AbortController()
    reply.raw.once('close', () => closed.abort())
    const address = deps.addressOf(request) // a closed connection has none
    const renditionId = Number(params.rendition)
    const segmentName = parseSegmentFileName(params.file)
    if (!segmentName) {
      const init = await openInit(deps, { path, renditionId, signal: closed.signal })
      onResponseSent(reply, init.length, await newSentCounter(deps, path, address))
      return reply.headers({ 'Cache-Control': IMMUTABLE, 'Content-Type': 'video/mp4' }).send(init)
    }
    const accelPath = deps.accelPathFor(request)
    const presign = deps.delivery.findPresigner()
    const sentBy = presign ? 'bucket' : accelPath === undefined ? 'server' : 'proxy'
    const segment = await openSegment(deps, { path, renditionId, ...segmentName, sentBy, signal: closed.signal })
    if (presign && 'file' in segment) {
      const count = await newSentCounter(deps, path, address)
      count(segment.sizeBytes)
      return reply.redirect(presign(segment.file, segmentName.repairs), 307)
    }
    const video = await deps.videos.get(path.videoId, path.generation)
    const findWait = (sizeBytes: number) => video && deps.traffic?.take(address, video, sizeBytes)
    return sendSegment({ request, reply, accelPath }, segment, findWait, await newSentCounter(deps, path, address))
  })
}

/** What another origin fetches is counted where its viewers get their keys. */
async function newSentCounter(
  { delivery, usage }: MediaDeps,
  video: GenerationKey,
  address: string,
): Promise<(sentBytes: number) => void> {
  const isCounted = (await delivery.findSizesElsewhere(video)) === undefined
  return (sentBytes) => isCounted && usage.recordSentBytes(video.videoId, address, sentBytes)
}

/**
 * Sends a segment, or has the proxy send its file, with the range that was asked for.
 * @param findWait returns the seconds until so many bytes may be sent; undefined: now
 */
async function sendSegment(
  { request, reply, accelPath = '' }: { request: FastifyRequest; reply: FastifyReply; accelPath: string | undefined },
  segment: OpenSegment | SegmentFile,
  findWait: (sizeBytes: number) => number | undefined,
  onSent: (sentBytes: number) => void,
): Promise<FastifyReply> {
  const sizeBytes = sizeOf(segment)
  const range = readRange(request.headers.range, sizeBytes)
  reply.headers({ 'Accept-Ranges': 'bytes', 'Content-Type': 'video/iso.segment' })
  if (range === 'unsatisfiable') {
    if ('blob' in segment) await segment.blob.close()
    return describePart(reply, range, sizeBytes).send()
  }
  const { first, last } = range ?? { first: 0, last: sizeBytes - 1 }
  const lengthBytes = last - first + 1
  const retryAfterS = findWait(lengthBytes)
  if (retryAfterS !== undefined) {
    if ('blob' in segment) await segment.blob.close()
    throw new PlaybackRefusal('slow-down', { retryAfterS })
  }
  reply.header('Cache-Control', IMMUTABLE)
  if ('file' in segment) {
    onSent(lengthBytes)
    return reply.header('X-Accel-Redirect', `${accelPath}${segment.file}`).send()
  }
  describePart(reply, range, sizeBytes)
  onResponseSent(reply, lengthBytes, onSent)
  if ('bytes' in segment) return reply.send(segment.bytes.subarray(first, last + 1))
  return sendWhole(reply, segment.blob.stream({ first, last }), lengthBytes)
}

function sizeOf(segment: OpenSegment | SegmentFile): number {
  if ('bytes' in segment) return segment.bytes.length
  return 'blob' in segment ? segment.blob.sizeBytes : segment.sizeBytes
}
