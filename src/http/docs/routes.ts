import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimitConfig } from '../../config/rate-limits.ts'
import { isForPerson } from '../pages/error-page.ts'
import { type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import type { ApiRoute } from './api-routes.ts'

type DocsDeps = LimitDeps & {
  routes: readonly ApiRoute[]
  publicUrl(): string
  limitNumbers: RateLimitConfig | undefined
  hasConsole: boolean
}

type Sheet = { type: string; bytes: Buffer; etag: string }

/** The API reference at `/docs/api`, and the redirect from `/` to it, for browsers to the console. Public. Nothing of it is loaded before the first request. */
export async function docsInterface(
  app: App,
  { routes, publicUrl, limitNumbers, hasConsole, ...limiting }: DocsDeps,
): Promise<void> {
  limitByAddress(app, limiting, 'docs')
  let made: Promise<{ page: Sheet; json: Sheet; policy: string }> | undefined
  const docs = () => (made ??= makeDocs())

  async function makeDocs() {
    const [{ apiDocument }, { apiPage, apiPageCsp }] = await Promise.all([import('./document.ts'), import('./page.ts')])
    const document = apiDocument(routes, publicUrl(), limitNumbers)
    return {
      page: sheet('text/html; charset=utf-8', apiPage(document)),
      json: sheet('application/json; charset=utf-8', JSON.stringify(document)),
      policy: apiPageCsp,
    }
  }

  // Relative, so that they lead below whatever prefix a proxy has put the installation.
  app.get('/', async (request, reply) => reply.redirect(hasConsole && isForPerson(request) ? 'console/' : 'docs'))
  app.get('/docs', async ({ url }, reply) => reply.redirect(/^[^?]*\/(\?|$)/.test(url) ? 'api' : 'docs/api'))
  app.get('/docs/api', async (request, reply) => {
    const { page, policy } = await docs()
    return send(request, reply.header('Content-Security-Policy', policy).header('Referrer-Policy', 'no-referrer'), page)
  })
  app.get('/docs/api/openapi.json', async (request, reply) => send(request, reply, (await docs()).json))
}

function sheet(type: string, text: string): Sheet {
  return { type, bytes: Buffer.from(text), etag: `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"` }
}

function send({ headers }: FastifyRequest, reply: FastifyReply, { type, bytes, etag }: Sheet): FastifyReply {
  reply.headers({ 'Cache-Control': 'public, no-cache', ETag: etag })
  return headers['if-none-match'] === etag ? reply.code(304).send() : reply.type(type).send(bytes)
}
