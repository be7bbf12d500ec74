import { Type } from 'typebox'
import { getPublicMeta, type MetaDeps } from '../../catalogue/meta.ts'
import { type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { posterPath } from '../wire/poster-path.ts'
import { VideoParams } from './videos.ts'

const MetaReply = Type.Object({
  title: Type.String(),
  duration: Type.Number({ description: 'seconds; 0 before the probe' }),
  aspectRatio: Type.Number({ description: 'width ÷ height' }),
  posters: Type.Array(Type.Object({ url: Type.String(), height: Type.Integer(), width: Type.Integer() })),
})

/** `GET /api/meta/{id}`, the one operation without a key: what a page may show of a video before it is played (wire-contract.md, section 3). */
export async function metaInterface(app: App, deps: MetaDeps & LimitDeps & { publicUrl(): string }): Promise<void> {
  limitByAddress(app, deps, 'playback')
  app.get(
    '/:id',
    {
      schema: {
        summary: 'Public details of a video',
        description: 'Needs no key. Public videos only.',
        params: VideoParams,
        response: { 200: MetaReply },
      },
    },
    async (request, reply) => {
      const { title, durationS, aspectRatio, posters } = await getPublicMeta(deps, request.params.id)
      reply.header('Access-Control-Allow-Origin', '*') // pages that list videos send this from their viewers' browsers
      return {
        title,
        duration: durationS,
        aspectRatio,
        posters: posters.map(({ token, heightPx, widthPx }) => ({
          url: `${deps.publicUrl()}/${posterPath(token)}`,
          height: heightPx,
          width: widthPx,
        })),
      }
    },
  )
}
