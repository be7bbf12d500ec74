import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { consolePages } from '../../src/http/console/pages.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'

// What the server sends of the console: one page for all its addresses, and the files that it loads.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate?.remove())

const open = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${reelgate.url}${path}`, { redirect: 'manual', headers })

test.each([
  '/console/',
  '/console/videos',
  '/console/videos/0123',
  '/console/viewers/ann%40example.org',
  '/console/?next=//evil',
])('%s is the console’s page, and all that it names is there', async (path) => {
  const response = await open(path)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const page = await response.text()
  const [, nonce = ''] = /style-src 'self' 'nonce-([\w-]{22})'/.exec(response.headers.get('content-security-policy') ?? '') ?? []
  expect(nonce).not.toBe('')
  expect(page).toContain(nonce)
  expect(page).not.toContain('CSP_NONCE')
  expect(await (await open(path)).text()).not.toContain(nonce)
  const addresses = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
  expect(addresses.length).toBeGreaterThan(1)
  for (const address of addresses) {
    const file = await open(new URL(address, `${reelgate.url}${path}`).pathname)
    expect([address, file.status]).toEqual([address, 200])
    expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(file.headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('its scripts come as the browser takes them: compressed or not', async () => {
  const [, script = ''] = /src="\.\/(assets\/[^"]+\.js)"/.exec(await (await open('/console/')).text()) ?? []
  const codings = await Promise.all(
    ['br, gzip', 'gzip', 'identity'].map(async (accepted) => {
      const response = await open(`/console/${script}`, { 'Accept-Encoding': accepted })
      expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
      return response.headers.get('content-encoding')
    }),
  )
  expect(codings).toEqual(['br', 'gzip', null])
})

test('/console leads to /console/, below whatever prefix a proxy has put it', async () => {
  const response = await open('/console')
  expect([response.status, response.headers.get('location')]).toEqual([302, 'console/'])
})

test('D11: no parameter makes the server lead to another site', async () => {
  for (const target of ['//evil.example', '/\\evil.example', 'javascript:alert(1)', 'https://evil.example'])
    for (const path of ['/', '/console', '/console/', '/console/sign-in', '/console/api/sign-in', '/docs']) {
      const response = await open(`${path}?next=${encodeURIComponent(target)}&redirect=${encodeURIComponent(target)}`)
      expect(response.headers.get('location') ?? '').not.toMatch(/evil|javascript/)
    }
  expect((await open('//evil.example/console')).headers.get('location') ?? '').not.toMatch(/evil/)
})

describe('L05: nothing of the console is there but what browsers load', () => {
  test.each([
    ...[
      '/console/manifest.json',
      '/console/assets/',
      '/console/assets/none.js',
      '/console/assets/../index.html.map',
      '/console/.env',
    ],
    ...[
      '/console/.git/HEAD',
      '/console/.vite/manifest.json',
      '/console/assets/..%2f..%2fserver%2fmain.js',
      '/console/assets/%2e%2e',
    ],
    ...['/console/..%2fserver/main.js', '/console/api', '/console/api/', '/console/api/unknown', '/console/api/metrics'],
  ])('%s', async (path) => {
    const { status, text } = await sendRaw(reelgate.url, `GET ${path}`)
    const isPage = status === 200 && text.includes('<div id="root">')
    expect(isPage || [400, 401, 404].includes(status)).toBe(true)
    expect(text).not.toMatch(/sourcesContent|"isEntry"|import\.meta|REELGATE_/)
    if (/manifest|assets|\/\.|api/.test(path)) expect(isPage).toBe(false)
  })

  test('no source map, and no mention of one', async () => {
    const page = await (await open('/console/')).text()
    for (const [, address = ''] of page.matchAll(/(?:src|href)="\.\/([^"]+\.(?:js|css))"/g)) {
      expect(await (await open(`/console/${address}`)).text()).not.toContain('sourceMappingURL')
      expect((await open(`/console/${address}.map`)).status).toBe(404)
    }
  })
})

test('D13: no other method opens a page or an operation, whatever a header says', async () => {
  const lines = ['X-HTTP-Method-Override: DELETE', 'X-Method-Override: DELETE', 'Reelgate-Console: 1']
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'get'])
    for (const path of ['/console/', '/console/videos', '/console/api/videos/none/none'])
      expect([400, 401, 404, 405, 501]).toContain((await sendRaw(reelgate.url, `${method} ${path}`, lines)).status)
  expect((await sendRaw(reelgate.url, 'GET /console/api/sign-in', lines)).status).toBe(200)
})

test('D14: no cache keeps a page or an answer', async () => {
  for (const path of ['/console/', '/console/videos', '/console/api/sign-in', '/console/api/videos'])
    expect((await open(path)).headers.get('cache-control')).toBe('no-store')
})

test('where the console was not built, its addresses say so in words', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-console-'))
  const app = Fastify()
  await app.register(consolePages, { consoleFolder: folder, limits: undefined, addressOf: () => '', prefix: '/console' })
  for (const url of ['/console/', '/console/videos/1']) {
    const { statusCode, headers, body } = await app.inject({ url })
    expect([statusCode, headers['content-type']]).toEqual([503, 'text/html; charset=utf-8'])
    expect(body).toContain('The console is not built')
    expect(headers['content-security-policy']).toContain("default-src 'none'")
  }
  await app.close()
  await rm(folder, { recursive: true })
})

describe('what a person opens by hand is a page', () => {
  const asPerson = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }

  test('/ leads to the console, programs to the API reference', async () => {
    expect((await open('/', asPerson)).headers.get('location')).toBe('console/')
    expect((await open('/')).headers.get('location')).toBe('docs')
  })

  test.each([
    '/unknown',
    '/a/b/c?d=%3Cscript%3E',
    '/poster/none.jpg',
    '/player/assets/none.js',
    '/console/api/videos',
    '/download/1/2/3/4',
  ])('%s, which leads nowhere', async (path) => {
    const response = await open(path, asPerson)
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/)
    const page = await response.text()
    expect(page).not.toContain('<script')
    const [, console = ''] = /href="([^"]+)">Console/.exec(page) ?? []
    expect(new URL(console, `${reelgate.url}${path}`).pathname).toBe('/console/')
    const forProgram = await open(path)
    expect([forProgram.status, forProgram.headers.get('content-type')]).toEqual([
      response.status,
      'application/json; charset=utf-8',
    ])
  })

  test('what only programs call stays JSON', async () => {
    for (const path of ['/api/videos', '/api/unknown', '/v2/videos'])
      expect((await open(path, asPerson)).headers.get('content-type')).toBe('application/json; charset=utf-8')
  })
})
