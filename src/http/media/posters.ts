import { Type } from 'typebox'
import { openPoster, type ShownPosterDeps } from '../../files/shown-poster.ts'
import type { App } from '../app.ts'

const PosterParams = Type.Object({ file: Type.String({ pattern: '^[A-Za-z0-9_-]{22}\\.jpg$' }) })

/** The long-lived, unguessable address of a poster, below the installation's root. */
export function posterPath(token: string): string {
  return `poster/${token}.jpg`
}

export async function posterInterface(app: App, deps: ShownPosterDeps): Promise<void> {
  app.get('/:file', { schema: { params: PosterParams } }, async (request, reply) => {
    const jpeg = await openPoster(deps, request.params.file.replace(/\.jpg$/, ''))
    return reply
      .headers({
        'Content-Type': 'image/jpeg',
        'Cache-Control': 'public, max-age=86400',
        'Cross-Origin-Resource-Policy': 'cross-origin',
      })
      .send(jpeg)
  })
}
