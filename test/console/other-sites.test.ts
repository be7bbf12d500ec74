import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { consolePolicy } from '../../src/http/console/pages.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { listTablesWithoutClock, readRows } from '../rows.ts'
import { type Person, signIn } from './person.ts'
import { collectRoutes } from './routes.ts'

// What a page of another site can do with the cookie of a person who is signed in: nothing. The routes come from the server itself.

let reelgate: Reelgate & { remove(): Promise<void> }
let routes: string[]
let person: Person
beforeAll(async () => {
  const collected = await collectRoutes(() => startSharedReelgate())
  reelgate = collected.started
  routes = collected.routes
  person = await signIn(reelgate)
})
afterAll(() => reelgate?.remove())

const pathOf = (url: string) => url.replace(/:\w+/g, '0'.repeat(32))
const send = (line: string, lines: string[], body = '') =>
  sendRaw(reelgate.url, line, [`Cookie: ${person.cookie}`, ...lines], body, { host: new URL(reelgate.url).host })

/** All rows but when a sign-in was used. */
const digest = () => JSON.stringify(listTablesWithoutClock(reelgate).map((name) => readRows(reelgate, `select * from ${name}`)))

const JSON_TYPE = 'Content-Type: application/json'
const FORM_TYPE = 'Content-Type: application/x-www-form-urlencoded'

test.each<[string, () => string[]]>([
  ['a form of another site', () => ['Origin: https://evil.example', 'Sec-Fetch-Site: cross-site', FORM_TYPE]],
  ['fetch with no-cors', () => ['Origin: https://evil.example', 'Sec-Fetch-Site: cross-site', 'Content-Type: text/plain']],
  ['an old browser’s form, which names no site', () => [FORM_TYPE]],
  ['a sandboxed frame', () => ['Origin: null', 'Reelgate-Console: 1', JSON_TYPE]],
  ['another program on this machine', () => ['Origin: http://localhost:3000', 'Reelgate-Console: 1', JSON_TYPE]],
  ['another host of the same site', () => ['Sec-Fetch-Site: same-site', 'Reelgate-Console: 1', JSON_TYPE]],
  ['a name that ends like ours', () => [`Origin: ${reelgate.url}.evil.example`, 'Reelgate-Console: 1', JSON_TYPE]],
  ['our own page, but without its header', () => [`Origin: ${reelgate.url}`, 'Sec-Fetch-Site: same-origin', JSON_TYPE]],
])('D02: %s changes nothing: each operation that changes something refuses it', async (_, lines) => {
  expect((await person.ask('GET', '/videos')).status).toBe(200)
  const before = digest()
  const wrong: string[] = []
  const changing = routes.filter((route) => /^(POST|PUT|DELETE|PATCH) \/console\/api\//.test(route))
  expect(changing.length).toBeGreaterThan(25)
  for (const route of changing) {
    const { status } = await send(pathOf(route), lines(), '{"videos":["x"],"title":"theirs"}')
    if (status !== 403) wrong.push(`${route}: ${status}`)
  }
  expect(wrong).toEqual([])
  expect(digest()).toBe(before)
  expect((await person.ask('GET', '/videos')).status).toBe(200)
})

test('D02: no page of another site reads anything either', async () => {
  for (const site of ['cross-site', 'same-site'])
    expect((await send('GET /console/api/videos', [`Sec-Fetch-Site: ${site}`])).status).toBe(403)
  expect((await send('GET /console/api/videos', ['Origin: https://evil.example'])).status).toBe(403)
  expect((await send('GET /console/api/videos', ['Sec-Fetch-Site: same-origin'])).status).toBe(200)
})

test('D03: the cookie opens no route of either API', async () => {
  for (const route of routes.filter((known) => / \/(api|v2)\//.test(known) && !/ \/api\/(meta|site)\//.test(known))) {
    const [method = '', url = ''] = route.split(' ')
    const path = pathOf(url)
    const { status } = await send(`${method} ${path}`, ['Reelgate-Console: 1', JSON_TYPE], method === 'GET' ? '' : '{}')
    const isOpen = method === 'OPTIONS' || /\/v2(\/(api\.js|player\.js|uploader\.js|reelgate\.d\.ts))?$/.test(url)
    if (!isOpen) expect([route, status]).toEqual([route, 401])
  }
})

test('D10: a preflight of another origin gets no permission, on any route of the console', async () => {
  for (const route of routes.filter((known) => known.includes(' /console'))) {
    const [method = '', url = ''] = route.split(' ')
    const lines = ['Origin: https://evil.example', `Access-Control-Request-Method: ${method}`]
    const { headers } = await send(`OPTIONS ${pathOf(url)}`, [...lines, 'Access-Control-Request-Headers: reelgate-console'])
    for (const name of ['access-control-allow-origin', 'access-control-allow-headers', 'access-control-allow-credentials'])
      expect([route, headers.get(name)]).toEqual([route, null])
  }
})

describe('D08, D09: the page of the console', () => {
  test('runs no inline script, loads nothing of other sites, and no site can frame it', async () => {
    const { headers } = await send('GET /console/', ['Accept: text/html'])
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("base-uri 'none'")
    expect(policy).not.toMatch(/script-src[^;]*'unsafe/)
    expect(headers.get('content-security-policy-report-only')).toBeNull()
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('has a policy that allows scripts of its own files alone', () => {
    const rules = new Map(
      consolePolicy('N')
        .split('; ')
        .map((rule) => [rule.split(' ')[0], rule]),
    )
    expect(rules.get('script-src')).toBe("script-src 'self'")
    expect(rules.get('style-src')).toBe("style-src 'self' 'nonce-N'")
    for (const rule of [
      "object-src 'none'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
      "form-action 'self'",
      "connect-src 'self'",
    ])
      expect([...rules.values()]).toContain(rule)
  })
})
