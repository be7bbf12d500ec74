import type { PublicCard } from '../../catalogue/meta.ts'
import { escapeHtml } from '../pages/html.ts'
import { posterPath } from '../wire/poster-path.ts'
import { TEXT_HEIGHT_PX } from './page.ts'

// oEmbed 1.0 (https://oembed.com): other sites show a link to the page of a video as a frame of that page.

type Oembed = {
  version: '1.0'
  /** Not `video`, which promises one that plays in the frame. */
  type: 'rich'
  title: string
  provider_name: string
  provider_url: string
  cache_age: number
  html: string
  width: number
  height: number
  thumbnail_url?: string
  thumbnail_width?: number
  thumbnail_height?: number
}

/** Of a frame, in pixels; absent: no limit. */
type MaxSize = { maxwidth?: number | undefined; maxheight?: number | undefined }

const DEFAULT_WIDTH_PX = 640
const MIN_PX = 1

/** How long a site may show it without asking again. */
export const CACHE_S = 300

/** @param publicUrl has no slash at its end */
export function oembedOf(card: PublicCard, publicUrl: string, videoId: string, max: MaxSize): Oembed {
  const { width, height } = frameSize(card.aspectRatio, max)
  const { maxwidth = Number.POSITIVE_INFINITY, maxheight = Number.POSITIVE_INFINITY } = max
  const thumbnail = card.posters.find(({ widthPx, heightPx }) => widthPx <= maxwidth && heightPx <= maxheight)
  const attributes = {
    src: `${publicUrl}/watch/${videoId}`,
    width: String(width),
    height: String(height),
    title: card.title,
    style: 'border:0;max-width:100%',
    loading: 'lazy',
  }
  const html = Object.entries(attributes).map(([name, value]) => `${name}="${escapeHtml(value)}"`)
  return {
    version: '1.0',
    type: 'rich',
    title: card.title,
    provider_name: 'Reelgate',
    provider_url: publicUrl,
    cache_age: CACHE_S,
    html: `<iframe ${html.join(' ')}></iframe>`,
    width,
    height,
    ...(thumbnail && {
      thumbnail_url: `${publicUrl}/${posterPath(thumbnail.token)}`,
      thumbnail_width: thumbnail.widthPx,
      thumbnail_height: thumbnail.heightPx,
    }),
  }
}

/** As wide as allowed, and as high as the picture with the text below it; a portrait video is no higher than wide. */
function frameSize(aspectRatio: number, { maxwidth = DEFAULT_WIDTH_PX, maxheight }: MaxSize) {
  const width = Math.max(MIN_PX, Math.min(maxwidth, DEFAULT_WIDTH_PX))
  const wanted = Math.round(width / Math.max(1, aspectRatio)) + TEXT_HEIGHT_PX
  return { width, height: Math.max(MIN_PX, Math.min(maxheight ?? wanted, wanted)) }
}

/**
 * The video whose page an address is; undefined: it is another address. No request is sent to it.
 * @param publicUrl has no slash at its end
 */
export function videoOfPage(address: string, publicUrl: string): string | undefined {
  if (!URL.canParse(address)) return undefined
  const { origin, pathname } = new URL(address)
  const own = new URL(publicUrl)
  const prefix = `${own.pathname.replace(/\/$/, '')}/watch/`
  if (origin !== own.origin || !pathname.startsWith(prefix)) return undefined
  return /^([0-9a-f]{32})\/?$/.exec(pathname.slice(prefix.length))?.[1]
}
