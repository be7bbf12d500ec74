import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { ApiKeyHolder } from '../../accounts/permission.ts'
import { openPoster, type PublicPosterDeps } from '../../assets/public-poster.ts'
import { Failure } from '../../errors.ts'
import { DAY_S } from '../../time.ts'
import { readApiKey } from '../server/caller.ts'
import { identify } from '../server/identify.ts'
import { countGuess, type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'

const PosterParams = Type.Object({ file: Type.String({ pattern: '^[A-Za-z0-9_-]{22}\\.jpg$' }) })

/** How long caches may keep the first poster of a video that is still encoded. */
const FIRST_POSTER_S = 60

type PosterDeps = PublicPosterDeps & LimitDeps & { authenticate(secret: string): Promise<ApiKeyHolder> }

export async function posterInterface(app: App, deps: PosterDeps): Promise<void> {
  limitByAddress(app, deps, 'posters')
  app.get('/:file', { schema: { params: PosterParams } }, async (request, reply) => {
    const token = request.params.file.replace(/\.jpg$/, '')
    const { jpeg, isPublic, isFinal } = await openPoster(deps, token)
      .catch(async (error) => {
        if (!isNotFound(error) || request.headers.authorization === undefined) throw error
        // With any invalid key the poster does not exist.
        const accountId = await identifyAccount(request, reply).catch((refusal) => {
          throw refusal instanceof Failure && refusal.kind !== 'unavailable' ? error : refusal
        })
        return openPoster(deps, token, accountId)
      })
      .catch(async (error) => {
        if (isNotFound(error)) await countGuess(deps, request)
        throw error
      })
    return reply
      .headers({
        'Content-Type': 'image/jpeg',
        'Cache-Control': isPublic ? `public, max-age=${isFinal ? DAY_S : FIRST_POSTER_S}` : 'private, no-store',
        'Cross-Origin-Resource-Policy': 'cross-origin',
      })
      .send(jpeg)
  })

  /** @returns the account of a key that may read videos */
  async function identifyAccount(request: FastifyRequest, reply: FastifyReply): Promise<string> {
    const authenticate = async () => deps.authenticate(readApiKey(request))
    return (await identify(deps, { request, reply }, 'viewer', authenticate)).accountId
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Failure && error.kind === 'not-found'
}
