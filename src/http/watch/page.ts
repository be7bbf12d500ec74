import type { PublicCard } from '../../catalogue/meta.ts'
import { escapeHtml, htmlPage, scriptJson } from '../pages/html.ts'
import type { PageLanguage } from '../pages/languages.ts'
import { scriptlessPagePolicy } from '../pages/scriptless-page-policy.ts'
import { THEME_CSS } from '../pages/theme.css.ts'
import { isoTime } from '../wire/iso-time.ts'
import { posterPath } from '../wire/poster-path.ts'

/** `publicUrl` has no slash at its end; `rootPath` leads from the page to the installation's root. */
type WatchPageValues = { videoId: string; publicUrl: string; rootPath: string; language: PageLanguage }

/** Title, poster and where to watch, of a video whose owner made them public. It has no script and plays nothing. Send it with `WATCH_PAGE_POLICY`. */
export function watchPage(card: PublicCard, { videoId, publicUrl, rootPath, language }: WatchPageValues): string {
  const { title, durationS, posters, watchUrl } = card
  const [poster] = posters
  const own = `${publicUrl}/watch/${videoId}`
  const oembed = (format: string) => escapeHtml(`${publicUrl}/oembed?url=${encodeURIComponent(own)}&format=${format}`)
  const image = poster && { url: `${publicUrl}/${posterPath(poster.token)}`, width: poster.widthPx, height: poster.heightPx }
  const tags = {
    'og:type': 'website', // "video" promises one that plays
    'og:title': title,
    'og:url': own,
    ...(image && { 'og:image': image.url, 'og:image:width': String(image.width), 'og:image:height': String(image.height) }),
  }
  return htmlPage({
    title,
    language,
    robots: 'all',
    head: `<style>${STYLE}</style>
<link rel="canonical" href="${escapeHtml(own)}">
<link rel="alternate" type="application/json+oembed" href="${oembed('json')}" title="${escapeHtml(title)}">
<link rel="alternate" type="text/xml+oembed" href="${oembed('xml')}" title="${escapeHtml(title)}">
${Object.entries(tags)
  .map(([name, value]) => `<meta property="${name}" content="${escapeHtml(value)}">`)
  .join('\n')}
<script type="application/ld+json">${scriptJson(videoObject(card, own, image?.url))}</script>`,
    body: `<main>
${poster ? `<img src="${escapeHtml(`${rootPath}${posterPath(poster.token)}`)}" alt="" width="${poster.widthPx}" height="${poster.heightPx}">` : '<div class="dark"></div>'}
<div class="text">
<h1 dir="auto">${escapeHtml(title)}</h1>
<p>${durationS > 0 ? `<time datetime="${isoDuration(durationS)}">${clock(durationS)}</time> · ` : ''}${whereToWatch(watchUrl, language)}</p>
</div>
</main>`,
  })
}

/** In a new tab: in a frame of another site the page would open inside it. */
function whereToWatch(watchUrl: string | undefined, { sentence }: PageLanguage): string {
  if (watchUrl === undefined) return sentence('watched-elsewhere')
  return `<a href="${escapeHtml(watchUrl)}" target="_blank" rel="noopener">${escapeHtml(sentence('watch-at', new URL(watchUrl).host))}</a>`
}

/** What search engines read (schema.org). Without `contentUrl` and `embedUrl`: nothing public plays it. */
function videoObject({ title, durationS, uploadTimeS, watchUrl }: PublicCard, own: string, thumbnailUrl: string | undefined) {
  return {
    '@context': 'https://schema.org',
    '@type': 'VideoObject',
    name: title,
    ...(thumbnailUrl && { thumbnailUrl }),
    uploadDate: isoTime(uploadTimeS),
    ...(durationS > 0 && { duration: isoDuration(durationS) }),
    url: watchUrl ?? own,
    isAccessibleForFree: false,
  }
}

/** As schema.org and HTML write it: PT1H2M3S. */
function isoDuration(durationS: number): string {
  const { hours, minutes, seconds } = parts(durationS)
  return `PT${hours > 0 ? `${hours}H` : ''}${minutes > 0 ? `${minutes}M` : ''}${seconds}S`
}

/** As players show it: 12:04, 1:02:03. */
function clock(durationS: number): string {
  const { hours, minutes, seconds } = parts(durationS)
  const pad = (part: number) => String(part).padStart(2, '0')
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(seconds)}` : `${minutes}:${pad(seconds)}`
}

function parts(durationS: number) {
  const whole = Math.round(durationS)
  return { hours: Math.floor(whole / 3600), minutes: Math.floor(whole / 60) % 60, seconds: whole % 60 }
}

// One layout for the page and for a frame of it: the poster takes what the text leaves.
const STYLE = `
${THEME_CSS}* { box-sizing: border-box; }
body { display: grid; height: 100vh; height: 100dvh; margin: 0; place-items: center; background: var(--paper); color: var(--ink); }
main { display: grid; grid-template-rows: minmax(0, 1fr) auto; width: min(100%, 1080px); height: min(100%, 720px); }
img, .dark { width: 100%; height: 100%; min-height: 0; object-fit: contain; background: #000; }
.text { min-width: 0; padding: 12px 16px 14px; }
h1 { margin: 0; overflow: hidden; font-size: 17px; line-height: 1.35; font-weight: 600; text-overflow: ellipsis; white-space: nowrap; }
p { margin: 2px 0 0; color: var(--ink-soft); font-variant-numeric: tabular-nums; }
a { color: var(--lamp); text-underline-offset: 3px; }
:focus-visible { outline: 2px solid var(--lamp); outline-offset: 2px; border-radius: 3px; }
`

/** How high the text below the poster is: the oEmbed frame leaves it room. */
export const TEXT_HEIGHT_PX = 76

export const WATCH_PAGE_POLICY = scriptlessPagePolicy(STYLE, { isForFrames: true })
