import { type ErrorRow, FAILURES, REFUSALS } from '../../error-catalogue.ts'
import { usualCookieName } from '../console/cookie.ts'
import { brand, escapeHtml, htmlPage } from '../pages/html.ts'
import { scriptlessPagePolicy } from '../pages/scriptless-page-policy.ts'
import { THEME_CSS } from '../pages/theme.css.ts'
import { describeType, type JsonSchema, listProperties } from '../wire/json-schema.ts'
import type { ApiDocument, Operation, Parameter, ResponseObject } from './document.ts'

type Endpoint = { path: string; method: string; operation: Operation }

/** The API reference: one page, without a script, usable with a keyboard and on a phone. Send it with `apiPageCsp`. */
export function apiPage(document: ApiDocument): string {
  const endpoints = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Endpoint => ({ path, method: method.toUpperCase(), operation })),
  )
  const groups = document.tags
    .map((tag) => ({ ...tag, endpoints: endpoints.filter(({ operation }) => operation.tags.includes(tag.name)) }))
    .filter((group) => group.endpoints.length > 0)
  const url = document.servers[0]?.url ?? ''
  const body = `<a class="skip" href="#operations">Skip to the operations</a>
<header>${brand(`Reelgate ${escapeHtml(document.info.version)}`)}</header>
<nav aria-label="Operations">${groups.map(({ name, endpoints }) => `<p>${escapeHtml(name)}</p><ul>${endpoints.map(link).join('')}</ul>`).join('')}<p><a href="#errors">Errors</a></p></nav>
<main id="operations">
<h1>API</h1>
<p>Replace SECRET with an API secret. Every response has the rate limits in the headers <code>RateLimit-Policy</code> and
<code>RateLimit</code>. Machine-readable: <a href="api/openapi.json">OpenAPI 3.1</a>.</p>
${groups.map(({ name, description, endpoints }) => `<h2>${escapeHtml(name)}</h2>\n${prose(description)}\n${endpoints.map((endpoint) => section(endpoint, url)).join('\n')}`).join('\n')}
<h2 id="errors">Errors</h2>
<p>By their <code>code</code>, with what helps. The message of an answer is mostly more specific.</p>
<dl>${Object.entries(FAILURES)
    .map((error) => errorRow('error', error))
    .join('')}</dl>
<h2>Why playback is refused</h2>
<dl>${Object.entries(REFUSALS)
    .map((error) => errorRow('refusal', error))
    .join('')}</dl>
</main>`
  return htmlPage({ title: 'API · Reelgate', head: `<style>${STYLE}</style>`, body, robots: 'all' })
}

function link({ method, operation }: Endpoint): string {
  return `<li><a href="#${operation.operationId}"><b>${method}</b> ${escapeHtml(operation.summary)}</a></li>`
}

function section({ path, method, operation }: Endpoint, url: string): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const [type, body] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const replies = Object.entries(responses)
  return `<section id="${operationId}">
<h3>${escapeHtml(summary)}</h3>
<p class="call"><b>${method}</b> <code>${breakable(path)}</code></p>
${prose(description)}
${parameters.length === 0 ? '' : `<h4>Parameters</h4><dl>${parameters.map(parameterRow).join('')}</dl>`}
${
  body
    ? `<h4>Body</h4><p>${Object.keys(requestBody?.content ?? {})
        .map((one) => `<code>${escapeHtml(one)}</code>`)
        .join(', ')}</p><dl>${fieldRows(body.schema)}</dl>`
    : ''
}
<h4>Example</h4><pre><code>${escapeHtml(curl({ path, method, operation }, url, type, body?.example))}</code></pre>
<h4>Responses</h4><dl>${replies.map(replyRow).join('')}</dl>
</section>`
}

function parameterRow({ name, in: location, required, description, schema }: Parameter): string {
  return row(name, `${location} · ${describeType(schema)}${required ? '' : ' · optional'}`, description)
}

function fieldRows(schema: JsonSchema, prefix = ''): string {
  return listProperties(schema)
    .map(({ name, schema: field, isRequired }) => {
      const inner = field.items ?? field
      const path = `${prefix}${name}`
      return (
        row(path, `${describeType(field)}${isRequired ? '' : ' · optional'}`, field.description) +
        fieldRows(inner, `${path}${field.items ? '[]' : ''}.`)
      )
    })
    .join('')
}

function row(name: string, kind: string, description = ''): string {
  return `<div><dt><code>${breakable(name)}</code> <span>${escapeHtml(kind)}</span></dt><dd>${inline(description)}</dd></div>`
}

function replyRow([status, { description, content = {} }]: [string, ResponseObject]): string {
  const [type, body] = Object.entries(content)[0] ?? []
  const inner = body?.schema.items ?? body?.schema
  const fields = inner ? fieldRows(inner, body?.schema.items ? '[].' : '') : ''
  const shape = fields && `<details><summary>${escapeHtml(type ?? '')}</summary><dl>${fields}</dl></details>`
  return `<div><dt><b>${status}</b></dt><dd>${inline(description)}${shape}</dd></div>`
}

/** Where the `Link` of an answer leads: `linkToHelp` writes the same id. */
function errorRow(
  kind: 'error' | 'refusal',
  [code, { status, sentence, remedy = 'The player continues by itself.' }]: [string, ErrorRow],
): string {
  return `<div id="${kind}-${code}"><dt><b>${status}</b> <code>${code}</code></dt><dd>${inline(`${sentence} ${remedy}`)}</dd></div>`
}

/** The example as a command that can be pasted. */
function curl({ path, method, operation: { parameters, security } }: Endpoint, url: string, type = '', body: unknown): string {
  const exampleFor = (name: string) => String(parameters.find((one) => one.in === 'path' && one.name === name)?.example ?? name)
  const shown = parameters.filter((one) => one.in === 'query' && one.example !== undefined)
  const query = shown.map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`).join('&')
  const address = `${url}${path.replace(/\{(\w+)\}/g, (_, name: string) => exampleFor(name))}${query && `?${query}`}`
  const parts = [
    `curl -X ${method} ${shellQuote(address)}`,
    ...(security.some((one) => 'apisecret' in one) ? ["-H 'Authorization: Apisecret SECRET'"] : []),
    ...(security.some((one) => 'consoleCookie' in one) ? [`-H 'Cookie: ${usualCookieName(url)}=TOKEN'`] : []),
    ...(path.startsWith('/console/') && method !== 'GET' ? ["-H 'Reelgate-Console: 1'"] : []),
    ...bodyParts(type, body),
  ]
  return parts.join(' \\\n  ')
}

function bodyParts(type: string, body: unknown): string[] {
  if (body === undefined) return []
  if (type === 'application/json') return [`-H 'Content-Type: ${type}'`, `-d ${shellQuote(JSON.stringify(body))}`]
  const option = type === 'multipart/form-data' ? '-F' : '--data-urlencode'
  return Object.entries(typeof body === 'object' && body !== null ? body : {}).flatMap(([name, value]) =>
    [value].flat().map((one) => `${option} ${shellQuote(`${name}=${typeof one === 'object' ? JSON.stringify(one) : one}`)}`),
  )
}

/** For a shell. */
function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function prose(text: string): string {
  return text === ''
    ? ''
    : text
        .split('\n\n')
        .map((part) => `<p>${inline(part)}</p>`)
        .join('\n')
}

/** Escaped, with `code` as code. */
function inline(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>')
}

/** Long addresses may break after a slash. */
function breakable(path: string): string {
  return escapeHtml(path).replaceAll('/', '/<wbr>')
}

const STYLE = `
${THEME_CSS}
* { box-sizing: border-box; }
html { scroll-padding-top: 16px; }
body { margin: 0 auto; max-width: 1180px; padding: 0 20px 60px; background: var(--paper); color: var(--ink); }
a { color: var(--lamp); text-underline-offset: 3px; }
:focus-visible { outline: 2px solid var(--lamp); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 20px; top: 4px; }
header { display: flex; align-items: center; gap: 8px; padding: 20px 0 12px; font-weight: 600; }
h1 { margin: 20px 0 12px; font-size: 28px; line-height: 1.2; font-weight: 600; }
h2 { margin: 48px 0 8px; font-size: 20px; font-weight: 600; }
h3 { margin: 0 0 4px; font-size: 17px; font-weight: 600; }
h4 { margin: 20px 0 4px; font-size: 13px; font-weight: 600; color: var(--ink-soft); }
p { max-width: 72ch; margin: 0 0 8px; }
code { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
nav { max-height: 40vh; overflow: auto; padding: 4px 12px 12px; border: 1px solid var(--line); border-radius: 8px; font-size: 13px; }
nav p { margin: 10px 0 2px; font-weight: 600; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav a { display: grid; grid-template-columns: 58px 1fr; padding: 4px 0; color: var(--ink-soft); text-decoration: none; }
nav a:hover, nav a:focus-visible { color: var(--ink); }
nav b, .call b { font: 600 12px/1.5 ui-monospace, monospace; color: var(--ink); }
section { margin: 20px 0 0; padding: 20px; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
section:target, div:target { border-color: var(--lamp); }
.call b { color: var(--lamp); }
dl { margin: 0; border-top: 1px solid var(--line); }
dl > div { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); gap: 4px 16px; padding: 6px 0; border-bottom: 1px solid var(--line); }
dt span { font-size: 13px; color: var(--ink-soft); }
dd { margin: 0; font-size: 14px; }
summary { width: fit-content; color: var(--ink-soft); font-size: 13px; cursor: pointer; }
pre { margin: 0; padding: 12px 16px; border: 1px solid var(--line); border-radius: 8px; background: var(--paper); white-space: pre-wrap; }
@media (max-width: 620px) {
  section { margin: 16px -20px 0; border-radius: 0; border-width: 1px 0; }
  dl > div { grid-template-columns: minmax(0, 1fr); }
}
@media (min-width: 1000px) {
  body { display: grid; grid-template: auto 1fr / 300px minmax(0, 1fr); gap: 0 40px; }
  header { grid-column: 1 / -1; }
  nav { position: sticky; top: 16px; align-self: start; max-height: calc(100vh - 32px); padding: 0; border: 0; }
  h1 { margin-top: 0; }
}
`

export const apiPageCsp = scriptlessPagePolicy(STYLE)
