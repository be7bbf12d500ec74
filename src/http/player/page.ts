import { escapeHtml, htmlPage, REEL, scriptJson } from '../pages/html.ts'
import type { PageLanguage } from '../pages/languages.ts'

/** Values of one page view. `rootPath` leads from the page to the installation's root: `../` or `../../`, so that a proxy's prefix works. */
type PlayerPageValues = {
  cspNonce: string
  proofNonce: string
  /** The server's public key, in base64url, and its id. */
  serverKey: string
  serverKeyId: string
  ticket: string
  rootPath: string
  /** `file` of the manifest's only entry, such as `assets/main-1a2b3c.js`. */
  script: string
  /** Its `css[0]`. */
  style: string
}

/**
 * The player's page, the same bytes for every state of an OTP apart from nonces and ticket.
 * Send it with `playerPolicy` of the same `cspNonce`, `no-store` and `Referrer-Policy: no-referrer`.
 * @see playback protocol, section 1
 */
export function playerPage({ cspNonce, script, style, ...values }: PlayerPageValues): string {
  const { proofNonce, serverKey, serverKeyId, ticket, rootPath } = values
  const nonce = escapeHtml(cspNonce)
  return htmlPage({
    title: 'Video',
    head: `${styleLink({ rootPath, style })}
<script type="application/json" id="reelgate-page" nonce="${nonce}">${scriptJson({ proofNonce, serverKey, serverKeyId, ticket, rootPath })}</script>
<script type="module" nonce="${nonce}" src="${escapeHtml(`${rootPath}player/${script}`)}"></script>`,
    body: `<main id="player"><p class="first" role="status">Loading the video.<noscript> It needs JavaScript to play.</noscript></p></main>`,
    bodyAttributes: ' data-state="loading"',
    isFullScreen: true,
  })
}

/** What a viewer is shown in the player's place, in its form and without any script. Send it with `REFUSAL_POLICY`. */
export function refusalPage(
  { sentence, code, language }: { sentence: string; code: string; language: PageLanguage },
  assets: Pick<PlayerPageValues, 'rootPath' | 'style'>,
): string {
  return htmlPage({
    title: 'Video',
    language,
    head: styleLink(assets),
    body: `<main id="player"><div class="panel">
<svg class="reel" viewBox="0 0 24 24" aria-hidden="true"><path d="${REEL}"/></svg>
<p class="sentence" role="alert">${escapeHtml(sentence)}</p>
</div></main>`,
    bodyAttributes: ` data-state="refused" data-code="${escapeHtml(code)}"`,
    isFullScreen: true,
  })
}

export const REFUSAL_POLICY = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"

function styleLink({ rootPath, style }: Pick<PlayerPageValues, 'rootPath' | 'style'>): string {
  return `<link rel="stylesheet" href="${escapeHtml(`${rootPath}player/${style}`)}">`
}

/**
 * The `Content-Security-Policy` of the player's page: scripts on the nonce only, no eval; media-chrome needs inline styles,
 * the beat's timer a `blob:` worker, MSE `media-src blob:`.
 * @param mediaOrigins from which segments are loaded besides its own
 * @param ancestors sources of the pages that may frame it; undefined: all
 */
export function playerPolicy(cspNonce: string, mediaOrigins: readonly string[] = [], ancestors?: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${cspNonce}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    'media-src blob:',
    `connect-src ${["'self'", ...mediaOrigins].join(' ')}`,
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
    ...(ancestors ? [`frame-ancestors ${ancestors.join(' ')}`] : []),
  ].join('; ')
}
