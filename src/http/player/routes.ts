import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { REFUSALS } from '../../error-catalogue.ts'
import type { MediaDelivery } from '../../playback/media/delivery.ts'
import { findPageOptionsOf, type PlayerPageDeps } from '../../playback/player-page.ts'
import type { Nonces } from '../../playback/sessions/proof.ts'
import type { ServerKeys } from '../../playback/sessions/server-key.ts'
import type { Tickets } from '../../playback/ticket.ts'
import { type Asset, sendAsset } from '../pages/asset.ts'
import { sentenceOf } from '../pages/error-page.ts'
import { pageLanguage } from '../pages/languages.ts'
import { countGuess, type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { errorResponse } from '../wire/errors.ts'
import { pathToRoot } from '../wire/path-to-root.ts'
import type { EmbedFile, PlayerAssets } from './assets.ts'
import { playerPage, playerPolicy, REFUSAL_POLICY, refusalPage } from './page.ts'

type PlayerDeps = LimitDeps &
  PlayerPageDeps & {
    nonces: Nonces
    serverKeys: Pick<ServerKeys, 'current'>
    tickets: Tickets
    player: PlayerAssets
    delivery: Pick<MediaDelivery, 'origins'>
  }

const FileParams = Type.Object({ file: Type.String() })
const EmbedParams = Type.Object({ '*': Type.String() })

// Pages of the hosted service name these addresses: after a change of host name they play (wire-contract.md, section 8).
const PAGES = ['/player', '/player/v2', '/v2']
const EMBEDS: Readonly<Record<string, EmbedFile>> = {
  '/v2/api.js': 'api.js',
  '/player/v2/api.js': 'api.js',
  '/v2/player.js': 'player.js',
  '/player/v2/player.js': 'player.js',
  '/v2/uploader.js': 'uploader.js',
  '/v2/reelgate.d.ts': 'reelgate.d.ts',
  '/player/v2/reelgate.d.ts': 'reelgate.d.ts',
  '/vdo.js': 'vdo.js',
}

/** The player's page and its files, and the scripts of embedding pages. Loading the page spends nothing and reads nothing of the OTP but its whitelist and whether it has watermarks; a viewer whom the whitelist refuses is recorded. */
export async function playerInterface(app: App, deps: PlayerDeps): Promise<void> {
  const { files, embeds } = deps.player
  limitByAddress(app, deps, 'pages')
  for (const path of PAGES) app.get(path, async (request, reply) => sendPage(deps, request, reply))
  // Other error pages may not be framed, and lead to the console.
  app.setErrorHandler(async (error, request, reply) => {
    if (!PAGES.includes(request.routeOptions.url ?? '')) throw error
    const { status, code, message } = errorResponse(error, request, reply)
    const inEnglish = status === 500 ? `${message} The log has request ${request.id}.` : message
    const language = pageLanguage(request)
    return sendRefusal(deps, request, reply.code(status), { code, language, sentence: sentenceOf(status, inEnglish, language) })
  })

  app.get('/player/assets/:file', { schema: { params: FileParams } }, async (request, reply) => {
    const asset = files.get(`assets/${request.params.file}`)
    return asset ? sendPublicAsset(request, reply, asset, 'public, max-age=31536000, immutable') : reply.callNotFound()
  })

  // Permanent addresses: caches revalidate after five minutes.
  const sendEmbed = (request: FastifyRequest, reply: FastifyReply, file: EmbedFile) =>
    sendPublicAsset(request, reply, embeds[file], 'public, max-age=300')
  for (const [path, file] of Object.entries(EMBEDS)) app.get(path, async (request, reply) => sendEmbed(request, reply, file))
  // Older embeds name a version, any of which is ours: `/playerAssets/1.6.10/vdo.js`.
  app.get('/playerAssets/*', { schema: { params: EmbedParams } }, async (request, reply) =>
    /(^|\/)vdo\.js$/.test(request.params['*']) ? sendEmbed(request, reply, 'vdo.js') : reply.callNotFound(),
  )
}

/** For pages with an embedder policy (COEP), which load nothing from elsewhere that does not allow it. Without cookies there is nothing to protect. */
const FOR_EVERY_SITE = { 'Cross-Origin-Resource-Policy': 'cross-origin' }
/** Such pages contain no frame that has no such policy itself. All that the player loads is its own. */
const FOR_EVERY_FRAME = { ...FOR_EVERY_SITE, 'Cross-Origin-Embedder-Policy': 'require-corp' }

/** A frame sandboxed without its origin must get the script that says so. */
function sendPublicAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset, cacheControl: string): FastifyReply {
  return sendAsset(request, reply.headers({ ...FOR_EVERY_SITE, 'Access-Control-Allow-Origin': '*' }), asset, cacheControl)
}

async function sendPage(deps: PlayerDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { referer } = request.headers
  // Read as the player reads it: all after the first question mark; of two values of a name the first.
  const query = new URL(request.url, 'http://player.invalid').searchParams
  const named = { otp: query.get('otp'), session: query.get('session') }
  const { framing, mayFloat, isKnown } = await findPageOptionsOf(
    deps,
    named,
    { referer, isTop: request.headers['sec-fetch-dest'] === 'document' },
    { address: deps.addressOf(request), userAgent: request.headers['user-agent'] ?? '' },
  )
  if (!isKnown) await countGuess(deps, request)
  if (framing === 'refused' || framing === 'insecure') {
    const { status } = REFUSALS['site-not-allowed']
    const code = framing === 'refused' ? 'site-not-allowed' : 'insecure-page'
    const language = pageLanguage(request)
    const sentence = language.sentence(code, new URL(referer ?? 'http://page.invalid').host)
    return sendRefusal(deps, request, reply.code(status), { code, language, sentence })
  }
  const { script, style } = deps.player
  const rootPath = pathToRoot(request.url)
  const cspNonce = randomBytes(16).toString('base64url')
  const proofNonce = deps.nonces.current()
  const ticket = deps.tickets.issue(referer)
  return reply
    .headers(pageHeaders(mayFloat))
    .header(
      'Content-Security-Policy',
      playerPolicy(cspNonce, deps.delivery.origins, framing === 'everyone' ? undefined : framing),
    )
    .send(playerPage({ cspNonce, proofNonce, ...deps.serverKeys.current, ticket, rootPath, script, style }))
}

function sendRefusal(
  { player }: PlayerDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  refusal: Parameters<typeof refusalPage>[0],
): FastifyReply {
  return reply
    .headers(pageHeaders(false))
    .header('Content-Security-Policy', REFUSAL_POLICY)
    .send(refusalPage(refusal, { rootPath: pathToRoot(request.url), style: player.style }))
}

function pageHeaders(mayFloat: boolean) {
  return {
    ...FOR_EVERY_FRAME,
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'Permissions-Policy': `picture-in-picture=${mayFloat ? '(self)' : '()'}`,
  }
}
