import { createHash } from 'node:crypto'
import type { OpenVideos } from '../../lti/choose.ts'
import { DEFAULT_COMPLETED_AT_TENTHS } from '../../lti/message.ts'
import { brand, escapeHtml, htmlPage, scriptJson } from '../pages/html.ts'
import { THEME_CSS } from '../pages/theme.css.ts'
import { ASK_STORAGE, CLOSE, KEEP_SECRET, SUBMIT, UPLOADED } from './scripts.ts'

// The pages that people see inside a learning platform. Any site may frame them: which one it will be no platform says beforehand, and none
// of them does anything by a click that its sealed ticket does not allow.

/** A page with what its response has to say about it. */
export type FramedPage = { html: string; policy: string }

type Content = { title: string; body: string; script?: string; data?: object; uploadsTo?: string }

function framedPage({ title, body, script, data, uploadsTo }: Content): FramedPage {
  const json = data && `<script type="application/json" id="page">${scriptJson(data)}</script>`
  const scripts = script ? `${json ?? ''}<script>${script}</script>` : ''
  const html = htmlPage({ title, head: `<style>${STYLE}</style>`, body: `${body}${scripts}` })
  const sources = [...(script ? [hashOf(script)] : []), ...(uploadsTo ? [uploadsTo] : [])]
  const policy = [
    "default-src 'none'",
    `style-src ${hashOf(STYLE)}`,
    'img-src data:',
    ...(sources.length > 0 ? [`script-src ${sources.join(' ')}`] : []),
    ...(uploadsTo ? [`connect-src ${uploadsTo}`] : []),
    "base-uri 'none'",
  ].join('; ')
  return { html, policy }
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

/** One sentence, such as why a launch was refused. */
export function sentencePage(title: string, sentence: string): FramedPage {
  return framedPage({ title, body: panel(title, `<p role="alert">${escapeHtml(sentence)}</p>`) })
}

/** After a registration: the platform closes the page. */
export function registeredPage(name: string): FramedPage {
  const title = 'Registered'
  const sentence = `${name} is registered. It can be used as soon as the owner of the videos has confirmed it in the console.`
  return framedPage({ title, body: panel(title, `<p role="status">${escapeHtml(sentence)}</p>`), script: CLOSE })
}

/** Has the platform keep the secret of a login, then goes on to it. */
export function keepSecretPage(data: { frame: string; origin: string; key: string; value: string; url: string }): FramedPage {
  const title = 'Opening the video'
  const link = `<p role="status">Opening the video.</p><p><a id="go" href="${escapeHtml(data.url)}">Continue</a></p>`
  return framedPage({ title, body: panel(title, link), script: KEEP_SECRET, data })
}

/** Asks the platform for the secret of a login, and sends the launch once more with it. */
export function askStoragePage(
  storage: { frame: string; origin: string; key: string },
  fields: { state: string; id_token: string },
): FramedPage {
  const title = 'Opening the video'
  const form = `<form id="form" method="post">${hidden({ ...fields, stored: '' })}<button>Continue</button></form>`
  return framedPage({
    title,
    body: panel(title, `<p role="status">Opening the video.</p>${form}`),
    script: ASK_STORAGE,
    data: storage,
  })
}

/** Sends a choice back to the platform. */
export function returnPage(returnUrl: string, token: string): FramedPage {
  const title = 'Adding the video'
  const form = `<form id="form" method="post" action="${escapeHtml(returnUrl)}">${hidden({ JWT: token })}<button>Continue</button></form>`
  return framedPage({ title, body: panel(title, form), script: SUBMIT })
}

type ChooseValues = OpenVideos & { ticket: string; text: string; mayGrade: boolean; mayUpload: boolean }

/** The videos that are open to a course, for its teacher. */
export function choosePage(values: ChooseValues): FramedPage {
  const { folder, parent, folders, videos, page, hasMore, ticket, text, mayGrade, mayUpload } = values
  const go = (name: string, value: string, label: string, kept: Record<string, string> = {}) =>
    `<form method="post" action="choose">${hidden({ ticket, ...kept })}<button name="${name}" value="${escapeHtml(value)}">${escapeHtml(label)}</button></form>`
  const here = { folder: folder.id, q: text }
  const search = `<form method="post" action="choose" role="search">${hidden({ ticket, folder: folder.id })}
<label for="q">Search by title</label><input id="q" name="q" type="search" maxlength="200" value="${escapeHtml(text)}"><button>Search</button></form>`
  const places = [
    ...(parent ? [go('folder', parent.id, '← Back')] : []),
    ...folders.map(({ id, name }) => go('folder', id, name)),
  ].join('')
  const upload = mayUpload
    ? `<form method="post" action="upload">${hidden({ ticket })}<button>Upload a video</button></form>`
    : ''
  const rows = videos.map(
    ({ id, title, status, durationS }) =>
      `<li><span><b>${escapeHtml(title)}</b><small>${escapeHtml(status === 'ready' ? formatLength(durationS) : 'being prepared')}</small></span>
<button name="video" value="${escapeHtml(id)}" aria-label="Choose ${escapeHtml(title)}">Choose</button></li>`,
  )
  const list =
    rows.length > 0
      ? `<form method="post" action="answer">${hidden({ ticket })}${mayGrade ? gradeFields() : ''}<ul class="videos">${rows.join('')}</ul></form>`
      : `<p role="status">${text ? 'No video here has such a title.' : 'There is no video in this folder.'}</p>`
  const pages = [
    ...(page > 1 ? [go('page', String(page - 1), 'Previous page', here)] : []),
    ...(hasMore ? [go('page', String(page + 1), 'Next page', here)] : []),
  ].join('')
  const title = 'Choose a video'
  return framedPage({
    title,
    body: `<main class="wide"><p class="brand">${brand()}</p><h1>${title}</h1>
<div class="row">${search}${upload}</div><nav class="row" aria-label="Folders">${places}</nav>${list}<nav class="row" aria-label="Pages">${pages}</nav></main>`,
  })
}

function gradeFields(): string {
  const options = Array.from({ length: 10 }, (_, index) => (index + 1) * 10).map(
    (percent) =>
      `<option value="${percent}"${percent === DEFAULT_COMPLETED_AT_TENTHS * 10 ? ' selected' : ''}>${percent} %</option>`,
  )
  return `<fieldset><legend>Grade</legend><label><input type="checkbox" name="graded" value="1" checked> The share that is watched is the grade</label>
<label>Completed at <select name="completed_at">${options.join('')}</select></label></fieldset>`
}

/** Uploads one file, then chooses it. */
export function uploadPage(values: {
  ticket: string
  token: string
  scriptUrl: string
  origin: string
  mayGrade: boolean
}): FramedPage {
  const { ticket, token, scriptUrl, origin, mayGrade } = values
  const title = 'Upload a video'
  return framedPage({
    title,
    body: `<main class="wide"><p class="brand">${brand()}</p><h1>${title}</h1>
<reelgate-uploader token="${escapeHtml(token)}"></reelgate-uploader>
<form method="post" action="answer">${hidden({ ticket })}<input type="hidden" id="video" name="video">${mayGrade ? gradeFields() : ''}
<button id="choose" disabled>Choose this video</button></form>
<form method="post" action="choose">${hidden({ ticket })}<button>Back to the list</button></form></main><script src="${escapeHtml(scriptUrl)}"></script>`,
    script: UPLOADED,
    uploadsTo: origin,
  })
}

function hidden(fields: Record<string, string>): string {
  return Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`)
    .join('')
}

function panel(title: string, html: string): string {
  return `<main><p class="brand">${brand()}</p><h1>${escapeHtml(title)}</h1>${html}</main>`
}

function formatLength(durationS: number): string {
  const [minutes, seconds] = [Math.floor(durationS / 60), Math.floor(durationS % 60)]
  return `${minutes}:${String(seconds).padStart(2, '0')}`
}

const STYLE = `
${THEME_CSS}* { box-sizing: border-box; }
body { display: grid; min-height: 100vh; margin: 0; justify-items: center; background: var(--paper); color: var(--ink); }
main { width: min(100%, 560px); padding: 20px; align-self: center; }
main.wide { width: min(100%, 800px); align-self: start; }
.brand { display: flex; align-items: center; gap: 8px; margin: 0; font-weight: 600; }
h1 { margin: 16px 0 8px; font-size: 24px; line-height: 1.2; font-weight: 600; }
p { margin: 0 0 12px; color: var(--ink-soft); }
a { color: var(--lamp); text-underline-offset: 3px; }
form, fieldset, label, .row { display: flex; flex-wrap: wrap; align-items: center; gap: 8px; margin: 0; }
.row { margin-bottom: 12px; }
form { flex: 0 1 auto; }
form[action='answer'] { display: block; margin-bottom: 8px; }
fieldset { margin: 0 0 12px; padding: 8px 12px; gap: 4px 16px; border: 1px solid var(--line); border-radius: 8px; }
button, input, select { min-height: 36px; padding: 4px 12px; border: 1px solid var(--line); border-radius: 8px; background: var(--card); color: var(--ink); font: inherit; }
input[type='checkbox'] { min-height: 0; margin: 0; accent-color: var(--lamp); }
input[type='search'] { flex: 1 1 160px; min-width: 0; }
button { cursor: pointer; }
button:disabled { color: var(--ink-soft); cursor: default; }
.videos { margin: 0; padding: 0; list-style: none; border-top: 1px solid var(--line); }
.videos li { display: flex; align-items: center; justify-content: space-between; gap: 12px; padding: 8px 0; border-bottom: 1px solid var(--line); }
.videos span { min-width: 0; overflow-wrap: anywhere; }
.videos b { display: block; font-weight: 600; }
.videos small { color: var(--ink-soft); font-size: 13px; font-variant-numeric: tabular-nums; }
reelgate-uploader { display: block; margin-bottom: 12px; }
:focus-visible { outline: 2px solid var(--lamp); outline-offset: 2px; border-radius: 3px; }
`
