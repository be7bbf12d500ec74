import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import { parseJson } from '../../json.ts'
import { MAX_SPEED } from '../../playback/keys/key-budget.ts'
import { LEASE_S } from '../../playback/lease.ts'
import type { SegmentCheck } from '../../playback/media/segment-check.ts'
import type { PlaybackDeps } from '../../playback/playback-deps.ts'
import { hasWatermarks } from '../../playback/player-page.ts'
import { mayRedeem, redeem } from '../../playback/redeem.ts'
import { PlaybackRefusal } from '../../playback/refusal.ts'
import { admit, requestBeat, requestKey, requestLeave } from '../../playback/requests.ts'
import { buildPlaylist, openSessionFile, POSTER_NAME, STORYBOARD_NAME } from '../../playback/serve.ts'
import type { SessionRequest } from '../../playback/sessions/admit-request.ts'
import { type LiveSession, MAX_IDLE_S } from '../../playback/sessions/live-session.ts'
import { type Operation, readProof } from '../../playback/sessions/proof.ts'
import type { ViewerRequest } from '../../playback/sessions/session-deps.ts'
import { loadVideoView, type ShownWatermark } from '../../playback/video-view.ts'
import { acceptsCoding } from '../pages/asset.ts'
import type { LimitDeps } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { toChaptersBody } from '../wire/chapters.ts'
import { posterPath } from '../wire/poster-path.ts'
import { createPlaylistCompressor } from './compress-playlist.ts'
import { isFlooding, redeemWithin, refuseViewers } from './limit-viewers.ts'
import { BeatBody, DamageBody, RedeemBody, SessionBody, type WatermarkBody } from './wire.ts'

// The routes behind the player page: playback-protocol.md, sections 2 to 5 and 9.

const MAX_BODY_BYTES = 8 * 1024

/** @see playback-protocol.md, section 7 */
const BEAT_EVERY_MS = 6_000

const Token = Type.String({ pattern: '^[A-Za-z0-9_-]{22}$' })
const SessionParams = Type.Object({ session: Token })
const PlaylistParams = Type.Object({
  session: Token,
  name: Type.String({ pattern: '^(main|caption-[1-9][0-9]{0,14}|[1-9][0-9]{0,8})$' }),
})
const FileParams = Type.Object({
  session: Token,
  name: Type.String({ pattern: `^(${POSTER_NAME}|${STORYBOARD_NAME}(-[0-3])?|caption-[1-9][0-9]{0,14})$` }),
})
const KeyParams = Type.Object({ session: Token, window: Type.String({ pattern: '^(0|[1-9][0-9]{0,8})$' }) })

export async function playbackInterface(
  app: App,
  deps: PlaybackDeps & LimitDeps & { checkSegment: SegmentCheck },
): Promise<void> {
  const compress = createPlaylistCompressor()
  // The proof covers the body's bytes, so they are kept as they came.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  )
  refuseViewers(app, deps, ['bad-request', 'not-allowed', 'proof-stale'])
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({
      'Cache-Control': 'no-store',
      'Reelgate-Nonce': deps.nonces.current(),
      'Cross-Origin-Resource-Policy': 'same-origin',
    })
    if (request.url.includes('?')) throw new PlaybackRefusal('bad-request')
    const site = request.headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin') throw new PlaybackRefusal('not-allowed')
    done()
  })

  app.post('/redeem', { config: { isRedeem: true }, schema: { response: { 200: SessionBody } } }, async (request) => {
    const proof = readProof(proofHeader(request))
    const raw = readRawBody(request)
    const { otp, videoId, publicKey: point, serverKeyId, ticket, ancestors = [], support = {} } = readBody(RedeemBody, raw)
    const publicKey = Buffer.from(point, 'base64url')
    const session = await redeemWithin(deps, request, {
      otp,
      isSpendable: () => mayRedeem(deps, { otp, publicKey }),
      redeem: () =>
        redeem(deps, { otp, videoId, publicKey, serverKeyId, ticket, ancestors, support, body: raw }, proof, readViewer(request)),
    })
    return answerSession(deps, session)
  })

  app.post('/:session/page', { schema: { params: SessionParams, response: { 200: SessionBody } } }, async (request) =>
    answerSession(deps, await admit(deps, readRequest(request, 'page', request.params.session))),
  )

  app.get('/:session/playlist/:name', { exposeHeadRoute: false, schema: { params: PlaylistParams } }, async (request, reply) => {
    const { session: id, name } = request.params
    const session = await admit(deps, readRequest(request, 'playlist', id, name))
    return sendPlaylist(request, reply, await buildPlaylist(deps, session, name), compress)
  })

  app.get('/:session/file/:name', { exposeHeadRoute: false, schema: { params: FileParams } }, async (request, reply) => {
    const { session: id, name } = request.params
    const session = await admit(deps, readRequest(request, 'file', id, name))
    const file = await openSessionFile(deps, session, name)
    return reply.type(fileType(name)).send(file)
  })

  app.get('/:session/key/:window', { exposeHeadRoute: false, schema: { params: KeyParams } }, async (request, reply) => {
    const { session: id, window } = request.params
    return sendKey(reply, await requestKey(deps, readRequest(request, 'key', id, window), Number(window)))
  })

  app.post('/:session/beat', { schema: { params: SessionParams } }, async (request) => {
    const readBeat = () => readBody(BeatBody, readRawBody(request))
    await requestBeat(deps, readRequest(request, 'beat', request.params.session), readBeat)
    return {}
  })

  app.post('/:session/damage', { schema: { params: SessionParams } }, async (request) => {
    const { row } = await admit(deps, readRequest(request, 'damage', request.params.session))
    const { rendition, segment } = readBody(DamageBody, readRawBody(request))
    await deps.checkSegment(row, rendition, segment)
    return {}
  })

  app.post('/:session/leave', { schema: { params: SessionParams } }, async (request) => {
    await requestLeave(deps, readRequest(request, 'leave', request.params.session))
    return {}
  })

  /** @throws PlaybackRefusal `not-allowed` */
  function readRequest(request: FastifyRequest, operation: Operation, sessionId: string, argument = ''): SessionRequest {
    const proof = readProof(proofHeader(request))
    const signed = { operation, argument, body: readRawBody(request) }
    return { sessionId, proof, signed, visit: readViewer(request), isFlooding: isFlooding(deps, request) }
  }

  function readViewer(request: FastifyRequest): ViewerRequest {
    return { address: deps.addressOf(request), userAgent: request.headers['user-agent'] ?? '' }
  }
}

/** What the player needs to know, after redeem and after each page load. */
async function answerSession(deps: PlaybackDeps, session: LiveSession): Promise<SessionBody> {
  const { title, durationS, aspectRatio, poster, hasStoryboard, chapters, watermarks, sentences } = await loadVideoView(
    deps,
    session,
  )
  const { id, videoId, endsAtS } = session.row
  return {
    session: id,
    pageId: session.pages.at(-1) ?? '',
    video: {
      id: videoId,
      title,
      durationS,
      aspectRatio,
      ...(poster && { poster: poster.isPublic ? posterPath(poster.token) : `play/${id}/file/${POSTER_NAME}` }),
      ...(hasStoryboard && { storyboard: `play/${id}/file/${STORYBOARD_NAME}` }),
      ...(chapters.chapters.length > 0 && { chapters: toChaptersBody(chapters) }),
    },
    playlist: `/play/${id}/playlist/main`,
    marks: watermarks.map(watermarkBody),
    mayFloat: !hasWatermarks(session.row),
    resumeAtS: session.positionS,
    ...(Object.keys(sentences).length > 0 && { sentences }),
    keepsPosition: session.row.userId !== null,
    beatEveryMs: BEAT_EVERY_MS,
    leaseMs: LEASE_S * 1000,
    maxSpeed: MAX_SPEED,
    endsAtS,
    idleEndsS: MAX_IDLE_S,
  }
}

function fileType(name: string): string {
  if (name === POSTER_NAME) return 'image/jpeg'
  return name.startsWith(`${STORYBOARD_NAME}-`) ? 'image/webp' : 'text/vtt; charset=utf-8'
}

function watermarkBody(watermark: ShownWatermark): WatermarkBody {
  if (watermark.type !== 'image') return watermark
  const { png, ...rest } = watermark
  return { ...rest, image: `data:image/png;base64,${png.toString('base64')}` }
}

/** An hour has 173 kB of lines, and 23 kB as gzip: on a slow network they delay the first picture by seconds. */
async function sendPlaylist(
  request: FastifyRequest,
  reply: FastifyReply,
  playlist: string,
  compress: (playlist: string) => Promise<Buffer>,
): Promise<FastifyReply> {
  reply.type('application/vnd.apple.mpegurl')
  if (!acceptsCoding(request.headers['accept-encoding']?.toString() ?? '', 'gzip')) return reply.send(playlist)
  return reply.header('Content-Encoding', 'gzip').send(await compress(playlist))
}

function sendKey(reply: FastifyReply, key: Buffer): FastifyReply {
  return reply.type('application/octet-stream').send(key)
}

/** Node joins a doubled header with a comma, which the proof's one form does not match. */
function proofHeader(request: FastifyRequest): string | undefined {
  return request.headers['reelgate-proof']?.toString()
}

function readRawBody(request: FastifyRequest): Buffer {
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
}

/** @throws PlaybackRefusal `bad-request` */
function readBody<S extends TSchema>(schema: S, body: Buffer): Static<S> {
  const value = parseJson(body.toString())
  if (!Value.Check(schema, value)) throw new PlaybackRefusal('bad-request')
  return value
}
