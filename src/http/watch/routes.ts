import { Type } from 'typebox'
import { getPublicCard, type MetaDeps } from '../../catalogue/meta.ts'
import { videoNotFound } from '../../errors.ts'
import { pageLanguage } from '../pages/languages.ts'
import { type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { pathToRoot } from '../wire/path-to-root.ts'
import { xmlDocument } from '../wire/xml.ts'
import { CACHE_S, oembedOf, videoOfPage } from './oembed.ts'
import { WATCH_PAGE_POLICY, watchPage } from './page.ts'

const PageParams = Type.Object({ id: Type.String() })
const Pixels = Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,4}$', description: '1 to 99999' }))
const OembedQuery = Type.Object({
  url: Type.String({ maxLength: 2000 }),
  maxwidth: Pixels,
  maxheight: Pixels,
  format: Type.Optional(Type.String()),
})

const CACHE_CONTROL = `public, max-age=${CACHE_S}`

/**
 * What anyone may see of a video whose `public` is 1: a page with its title and poster, and oEmbed for sites that show a link as a frame.
 * Nothing here plays: that takes an OTP (wire-contract.md, section 8).
 */
export async function watchInterface(app: App, deps: MetaDeps & LimitDeps & { publicUrl(): string }): Promise<void> {
  limitByAddress(app, deps, 'pages')

  app.get('/watch/:id', { schema: { params: PageParams } }, async (request, reply) => {
    const videoId = request.params.id
    const card = await getPublicCard(deps, videoId)
    return reply
      .headers({
        'Content-Type': 'text/html; charset=utf-8',
        'Cache-Control': CACHE_CONTROL,
        Vary: 'Accept-Language',
        'Content-Security-Policy': WATCH_PAGE_POLICY,
        'Referrer-Policy': 'strict-origin-when-cross-origin',
        // Also for frames in pages with an embedder policy (COEP).
        'Cross-Origin-Resource-Policy': 'cross-origin',
        'Cross-Origin-Embedder-Policy': 'require-corp',
      })
      .send(
        watchPage(card, {
          videoId,
          publicUrl: deps.publicUrl(),
          rootPath: pathToRoot(request.url),
          language: pageLanguage(request),
        }),
      )
  })

  app.get('/oembed', { schema: { querystring: OembedQuery } }, async (request, reply) => {
    const { url, format = 'json', maxwidth, maxheight } = request.query
    // The standard's own status for a format that a provider does not have.
    if (format !== 'json' && format !== 'xml') return reply.code(501).send({ message: 'The format is json or xml.' })
    const videoId = videoOfPage(url, deps.publicUrl())
    if (videoId === undefined) throw videoNotFound()
    const max = { maxwidth: toNumber(maxwidth), maxheight: toNumber(maxheight) }
    const oembed = oembedOf(await getPublicCard(deps, videoId), deps.publicUrl(), videoId, max)
    reply.headers({ 'Cache-Control': CACHE_CONTROL, 'Access-Control-Allow-Origin': '*' })
    return format === 'xml' ? reply.type('text/xml; charset=utf-8').send(xmlDocument({ oembed })) : oembed
  })
}

function toNumber(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}
