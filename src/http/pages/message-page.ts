import { brand, escapeHtml, htmlPage } from './html.ts'
import type { PageLanguage } from './languages.ts'
import { scriptlessPagePolicy } from './scriptless-page-policy.ts'
import { THEME_CSS } from './theme.css.ts'

/** A small page with one sentence, for people. Send it with `MESSAGE_POLICY`. `links`: where they lead, and their text. */
export function messagePage(
  title: string,
  sentence: string,
  links: readonly { href: string; text: string }[],
  language?: PageLanguage,
): string {
  const list = links.map(({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>`).join(' · ')
  const body = `<main>
<p class="brand">${brand()}</p>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(sentence)}</p>
${list && `<p>${list}</p>`}
</main>`
  return htmlPage({ title: `${title} · Reelgate`, head: `<style>${STYLE}</style>`, body, ...(language && { language }) })
}

const STYLE = `
${THEME_CSS}* { box-sizing: border-box; }
body { display: grid; min-height: 100vh; margin: 0; place-items: center; background: var(--paper); color: var(--ink); }
main { width: min(100%, 560px); padding: 20px; }
.brand { display: flex; align-items: center; gap: 8px; font-weight: 600; color: var(--ink); }
h1 { margin: 20px 0 8px; font-size: 28px; line-height: 1.2; font-weight: 600; }
p { margin: 0 0 12px; color: var(--ink-soft); }
a { color: var(--lamp); text-underline-offset: 3px; }
:focus-visible { outline: 2px solid var(--lamp); outline-offset: 2px; border-radius: 3px; }
`

export const MESSAGE_POLICY = scriptlessPagePolicy(STYLE)
