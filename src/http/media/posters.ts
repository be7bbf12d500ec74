import { Type } from 'typebox'
import { Failure } from '../../errors.ts'
import { openPoster, type ShownPosterDeps } from '../../files/shown-poster.ts'
import type { App } from '../app.ts'
import { countGuess, type LimitDeps, limitVisitors } from '../limits.ts'

const PosterParams = Type.Object({ file: Type.String({ pattern: '^[A-Za-z0-9_-]{22}\\.jpg$' }) })

/** The long-lived, unguessable address of a poster, below the installation's root. */
export function posterPath(token: string): string {
  return `poster/${token}.jpg`
}

export async function posterInterface(app: App, deps: ShownPosterDeps & LimitDeps): Promise<void> {
  limitVisitors(app, deps, 'posters')
  app.get('/:file', { schema: { params: PosterParams } }, async (request, reply) => {
    const jpeg = await openPoster(deps, request.params.file.replace(/\.jpg$/, '')).catch(async (error) => {
      if (error instanceof Failure && error.kind === 'not-found') await countGuess(deps, request)
      throw error
    })
    return reply
      .headers({
        'Content-Type': 'image/jpeg',
        'Cache-Control': 'public, max-age=86400',
        'Cross-Origin-Resource-Policy': 'cross-origin',
      })
      .send(jpeg)
  })
}
