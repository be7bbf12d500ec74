import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Nonces } from '../../playback/proof.ts'
import type { Tickets } from '../../playback/ticket.ts'
import type { App } from '../app.ts'
import type { PlayerAssets } from './assets.ts'
import { playerPage, playerPolicy } from './page.ts'

export type PlayerDeps = { nonces: Nonces; tickets: Tickets; player: PlayerAssets }

const FileParams = Type.Object({ file: Type.String() })

/** The player's page and its files. Loading the page spends nothing and reads nothing of the OTP. */
export async function playerInterface(app: App, deps: PlayerDeps): Promise<void> {
  for (const path of ['/', '/v2']) app.get(path, async (request, reply) => sendPage(deps, request, reply))

  app.get('/assets/:file', { schema: { params: FileParams } }, async (request, reply) => {
    const asset = deps.player.files.get(`assets/${request.params.file}`)
    if (!asset) return reply.callNotFound()
    reply.headers({
      // A frame sandboxed without its origin must get the script that says so; without cookies there is nothing to protect.
      'Access-Control-Allow-Origin': '*',
      'Cache-Control': 'public, max-age=31536000, immutable',
      'Content-Type': asset.type,
      ETag: asset.etag,
      Vary: 'Accept-Encoding',
    })
    if (!/\bgzip\b/.test(request.headers['accept-encoding']?.toString() ?? '')) return reply.send(asset.bytes)
    return reply.header('Content-Encoding', 'gzip').send(asset.gzip)
  })
}

function sendPage(deps: PlayerDeps, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const cspNonce = randomBytes(16).toString('base64url')
  return reply
    .headers({
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
      'Content-Security-Policy': playerPolicy(cspNonce),
      'Permissions-Policy': 'picture-in-picture=()',
    })
    .send(
      playerPage({
        cspNonce,
        proofNonce: deps.nonces.current(),
        ticket: deps.tickets.issue(request.headers.referer),
        rootPath: rootPathOf(request.url),
        script: deps.player.script,
        style: deps.player.style,
      }),
    )
}

/** The way from the page to the installation's root, below whatever prefix a proxy has put it. */
function rootPathOf(url: string): string {
  const depth = (url.split('?')[0]?.match(/\//g)?.length ?? 1) - 1
  return depth === 0 ? './' : '../'.repeat(depth)
}
