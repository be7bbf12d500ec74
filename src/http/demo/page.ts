import { PROGRAM_NAME } from '../../program-name.ts'
import { brand, escapeHtml, htmlPage } from '../pages/html.ts'
import { THEME_CSS } from '../pages/theme.css.ts'

/** What the page of the demo shows: the player with a one-time password of its own, or why there is none yet. */
type DemoPage = { state: 'playable'; otp: string; playbackInfo: string } | { state: 'being made' } | { state: 'failed' }

/** The page around the player, as an owner's own site would have it. Send it with `demoPolicy` of the same nonce, and `no-store`. */
export function demoPage(cspNonce: string, page: DemoPage): string {
  const refresh = page.state === 'being made' ? '<meta http-equiv="refresh" content="2">' : ''
  const head = `${refresh}<style nonce="${cspNonce}">${STYLE}</style>`
  const body = `<header>${brand()}</header>
<main>
<h1>Your first video</h1>
<div class="screen">${screen(page)}</div>
<p>This page is an example of a page on your own site. It requested a one-time password, which the player has spent: the video plays in
this browser and nowhere else. Each reload of the page requests another.</p>
<h2>Your own video</h2>
<p>In a terminal on the server. It prints a link that opens once.</p>
<pre><code>${PROGRAM_NAME} try video.mp4</code></pre>
<h2>Remove the demo</h2>
<p>This removes the demo permanently. Only this machine can open this page.</p>
<pre><code>${PROGRAM_NAME} demo remove</code></pre>
</main>`
  return htmlPage({ title: 'Demo video · Reelgate', head, body })
}

function screen(page: DemoPage): string {
  if (page.state === 'being made')
    return '<p role="status">The demo video is being made. It takes a few seconds; this page reloads by itself.</p>'
  if (page.state === 'failed')
    return '<p role="status">The demo video could not be made on this machine. The server’s log says why; your own videos may still play.</p>'
  const query = new URLSearchParams({ otp: page.otp, playbackInfo: page.playbackInfo })
  return `<iframe src="/player/?${escapeHtml(String(query))}" title="Demo video" allow="encrypted-media; fullscreen; autoplay; screen-wake-lock"></iframe>`
}

/** Allows its own style and the player in its frame, nothing else. No site may frame this page. */
export function demoPolicy(cspNonce: string): string {
  return [
    "default-src 'none'",
    `style-src 'nonce-${cspNonce}'`,
    'img-src data:',
    "frame-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
}

const STYLE = `
${THEME_CSS}* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); }
header, main { width: min(100%, 960px); margin: 0 auto; padding: 0 20px; }
header { display: flex; align-items: center; gap: 8px; padding-top: 20px; font-weight: 600; }
h1 { margin: 20px 0 16px; font-size: 28px; line-height: 1.2; font-weight: 600; }
h2 { margin: 28px 0 4px; font-size: 17px; font-weight: 600; }
p { max-width: 66ch; margin: 0 0 12px; color: var(--ink-soft); }
.screen { display: grid; aspect-ratio: 16 / 9; margin-bottom: 16px; border-radius: 8px; overflow: hidden; background: #000; }
.screen p { place-self: center; padding: 24px; color: #a5a29b; text-align: center; }
iframe { width: 100%; height: 100%; border: 0; }
pre { margin: 0; padding: 12px 16px; overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
code { font: 13px/1.5 ui-monospace, monospace; }
main { padding-bottom: 40px; }
@media (max-width: 520px) {
  .screen { margin: 0 -20px 16px; border-radius: 0; }
  h1 { margin: 16px 0 12px; font-size: 22px; }
}
`
