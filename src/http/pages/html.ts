import type { PageLanguage } from './languages.ts'

// What all pages have that this server writes itself.

// The reel whose hub is a keyhole.
export const REEL =
  'M12 1a11 11 0 1 0 0 22 11 11 0 0 0 0-22Zm0 2.4a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6ZM5.7 9.6a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6Zm12.6 0a2.3 2.3 0 1 1 0 4.6 2.3 2.3 0 0 1 0-4.6ZM12 9.4a2.2 2.2 0 0 1 1.1 4.1l.7 3.7h-3.6l.7-3.7A2.2 2.2 0 0 1 12 9.4Z'
/** In an attribute. As a data: URL, so that browsers do not request /favicon.ico. */
const ICON = escapeHtml(
  `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path fill="#f2a93b" d="${REEL}"/></svg>`)}`,
)

type HtmlPage = {
  /** Text. */
  title: string
  /** HTML, as is the body. */
  head: string
  body: string
  bodyAttributes?: string
  /** Of search engines; by default they leave the page out. */
  robots?: 'all' | 'noindex'
  /** English unless given. */
  language?: Pick<PageLanguage, 'lang' | 'dir'>
  /** Whether it extends below the notch of a phone. */
  isFullScreen?: boolean
}

export function htmlPage({ title, head, body, bodyAttributes = '', robots = 'noindex', ...page }: HtmlPage): string {
  const { language: { lang, dir } = { lang: 'en', dir: 'ltr' }, isFullScreen = false } = page
  return `<!doctype html>
<html lang="${lang}" dir="${dir}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1${isFullScreen ? ', viewport-fit=cover' : ''}">
<meta name="robots" content="${robots}">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${ICON}">
${head}
</head>
<body${bodyAttributes}>
${body}
</body>
</html>
`
}

/** The logo and the name at the top of a page. @param name HTML */
export function brand(name = 'Reelgate'): string {
  return `<img src="${ICON}" alt="" width="28" height="28"><span>${name}</span>`
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** JSON that no HTML parser can take for the end of the script element, whatever its strings hold. */
export function scriptJson(value: object): string {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
