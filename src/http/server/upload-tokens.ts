import type { FastifyReply, FastifyRequest } from 'fastify'
import { admitFromOrigin, getUploadToken, isUploadToken, type TokenHolder } from '../../ingest/upload-token.ts'
import { hasLiveToken } from '../../ingest/upload-token-store.ts'
import { ipRateLimitKey } from '../../net/ip.ts'
import { countUnauthenticated } from './identify.ts'
import { createLimitFailure, type LimitDeps, type LimitedCall, setLimitHeaders } from './limit.ts'

// Upload tokens, which pages of other origins send (ingest/upload-token.ts). Their answers alone have CORS headers, for the token's origin.

export type TokenRouteDeps = LimitDeps & Parameters<typeof getUploadToken>[0] & { publicUrl(): string }

const METHODS = 'POST, HEAD, PATCH, DELETE'
/** Headers that clients of tus send. */
const SENT = [
  ...['Authorization', 'Content-Type', 'Tus-Resumable', 'Upload-Length', 'Upload-Offset', 'Upload-Metadata'],
  ...['Upload-Defer-Length', 'Upload-Checksum', 'X-Request-ID', 'X-Requested-With'],
].join(', ')
const EXPOSED = [
  ...[
    'Location',
    'Reelgate-Video-Id',
    'Upload-Offset',
    'Upload-Length',
    'Upload-Defer-Length',
    'Upload-Metadata',
    'Upload-Expires',
  ],
  ...['Tus-Resumable', 'Retry-After', 'RateLimit', 'RateLimit-Policy', 'Link'],
].join(', ')
/** A token may be revoked meanwhile: then its requests are refused all the same. */
const PREFLIGHT_S = 600

/** The token that a request sends as `Bearer` to a route that accepts one. */
export function readUploadToken(request: FastifyRequest): string | undefined {
  const [header = '', ...others] = request.raw.headersDistinct.authorization ?? []
  const [, secret = ''] = /^Bearer ([!-~]+)$/i.exec(header) ?? []
  return request.routeOptions.config.acceptsBearer && others.length === 0 && isUploadToken(secret) ? secret : undefined
}

/**
 * Admits a token from the page of its origin, within the limits of its address: one for all requests, and one for files that are begun.
 * @throws Failure `unauthenticated`, `forbidden`, `limited`; answered to the page where it has the token's origin
 */
export async function identifyToken(deps: TokenRouteDeps, { request, reply }: LimitedCall, secret: string): Promise<TokenHolder> {
  const holder = await admitToken(deps, { request, reply }, secret).catch(async (error) => {
    throw await countUnauthenticated(deps, { request, reply }, error)
  })
  request.isCounted = true
  for (const budget of request.method === 'POST' ? (['forms', 'uploadTokens'] as const) : (['uploadTokens'] as const)) {
    const taken = deps.limits?.[budget].take(ipRateLimitKey(deps.addressOf(request)))
    if (taken) setLimitHeaders(reply, taken)
    if (taken?.refused) throw await createLimitFailure(taken, taken.refused)
  }
  return holder
}

async function admitToken(deps: TokenRouteDeps, { request, reply }: LimitedCall, secret: string): Promise<TokenHolder> {
  const token = await getUploadToken(deps, secret)
  const origin = originOf(deps, request)
  if (origin === token.origin) allowOrigin(reply, origin)
  return admitFromOrigin(token, origin)
}

/** Of the page. Browsers name none in a HEAD to the page's own origin. */
function originOf({ publicUrl }: TokenRouteDeps, { method, headers }: FastifyRequest): string | undefined {
  return headers.origin ?? (method === 'HEAD' ? new URL(publicUrl()).origin : undefined)
}

function allowOrigin(reply: FastifyReply, origin: string): void {
  reply.headers({ 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED, Vary: 'Origin' })
}

/** What a browser asks before a page sends a token: allowed to the origins of tokens that can be used. */
export async function answerPreflight({ db, nowS }: TokenRouteDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { origin } = request.headers
  reply.header('Vary', 'Origin')
  if (origin === undefined || !(await hasLiveToken(db, origin, nowS()))) return
  allowOrigin(reply, origin)
  reply.headers({
    'Access-Control-Allow-Methods': METHODS,
    'Access-Control-Allow-Headers': SENT,
    'Access-Control-Max-Age': String(PREFLIGHT_S),
  })
}
