import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { Failure } from '../../errors.ts'
import { type Asset, sendAsset } from '../pages/asset.ts'
import { MESSAGE_POLICY, messagePage } from '../pages/message-page.ts'
import { type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { pathToRoot } from '../wire/path-to-root.ts'
import { type ConsoleFiles, openConsoleFiles } from './files.ts'

const FileParams = Type.Object({ file: Type.String() })

type ConsolePagesDeps = LimitDeps & { consoleFolder: string }

/**
 * The console's page at `/console/`, and its files. Every address below is the same page, which finds its own way: those addresses are
 * not routes, because a route for all of them would also answer for `/console/api`.
 */
export async function consolePages(app: App, { consoleFolder, ...limiting }: ConsolePagesDeps): Promise<void> {
  limitByAddress(app, limiting, 'pages')
  let opened: ConsoleFiles | undefined
  const files = () => (opened ??= openConsoleFiles(consoleFolder)) // not at the start, which it would delay

  app.get('/', async (request, reply) => {
    if (!/^[^?]*\/(\?|$)/.test(request.url)) return reply.redirect('console/') // relative: a proxy may have put it below a prefix
    return sendPage(files(), request, reply)
  })
  app.get('/assets/:file', { schema: { params: FileParams } }, async (request, reply) => {
    const asset = files()?.find(`assets/${request.params.file}`)
    if (!asset) throw noPage()
    return sendFile(request, reply, asset, 'public, max-age=31536000, immutable') // its name contains a hash of its content
  })
  app.setNotFoundHandler(async (request, reply) => {
    const path = pathBelow(request.url, app.prefix)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const asset = isRead ? files()?.find(path) : undefined
    if (asset) return sendFile(request, reply, asset, 'public, max-age=300')
    if (!isRead || NOT_A_PAGE.test(path)) throw noPage()
    return sendPage(files(), request, reply)
  })
}

/** A file of the build, a hidden one, or one directly below the root: pages have names without a dot. */
const NOT_A_PAGE = /^assets\/|(^|\/)\.|^[^/]*\./

function noPage(): Failure {
  return new Failure('not-found', 'There is no page at this address.')
}

function sendFile(request: FastifyRequest, reply: FastifyReply, asset: Asset, cacheControl: string): FastifyReply {
  return sendAsset(request, reply.header('Cross-Origin-Resource-Policy', 'same-origin'), asset, cacheControl)
}

function pathBelow(url: string, prefix: string): string {
  const { pathname } = new URL(url, 'http://console.invalid')
  return pathname.slice(prefix.length + 1)
}

function sendPage(files: ConsoleFiles | undefined, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.headers({
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    // The player in a frame of the console must be able to check from which site it is embedded.
    'Referrer-Policy': 'same-origin',
    'X-Frame-Options': 'DENY',
  })
  if (!files) return sendNotBuilt(request, reply)
  const nonce = randomBytes(16).toString('base64url')
  // `/console/videos/ID` is one folder deeper than `/console/videos`.
  const depth = pathBelow(request.url, '/console').split('/').length - 1
  const root = depth === 0 ? './' : '../'.repeat(depth)
  const page = files.page.replaceAll('CSP_NONCE', nonce).replaceAll(/(src|href)="\.\//g, `$1="${root}`)
  return reply.header('Content-Security-Policy', consolePolicy(nonce)).send(page)
}

/** Scripts and styles from files of the console alone; libraries that insert a style element need the nonce. No site may frame it. */
export function consolePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "style-src-attr 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "font-src 'self'",
    "frame-src 'self'",
    "manifest-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function sendNotBuilt(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const page = messagePage(
    'The console is not built',
    'This server runs without the console. Start it with npm start, or build it with npm run build and restart the server.',
    [{ href: `${pathToRoot(request.url)}docs/api`, text: 'API reference' }],
  )
  return reply.code(503).header('Content-Security-Policy', MESSAGE_POLICY).send(page)
}
