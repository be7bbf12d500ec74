import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FAILURES, REFUSALS } from '../../src/error-catalogue.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'

// What both interfaces answer where they cannot do what is asked: wire-contract.md, section 2.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  videoId = (await reelgate.owner.credentials('A video')).videoId
})
afterAll(() => reelgate.remove())

async function ask(line: string, lines: string[] = [], body = '') {
  const { status, headers, text } = await sendRaw(
    reelgate.url,
    line,
    [`Authorization: Apisecret ${reelgate.owner.apiKey}`, ...lines],
    body,
  )
  return { status, headers, text, body: /^[{[]/.test(text) ? JSON.parse(text) : undefined }
}

describe('a route that does not exist is 404 and names the nearest that does', () => {
  test.each([
    ['GET /api/video', 'GET /api/videos'],
    ['GET /api/videoss', 'GET /api/videos'],
    ['GET /api', 'GET /api/videos'],
    ['GET /api/Videos', 'GET /api/videos'],
    ['POST /api/videos/ID/otpp', 'POST /api/videos/:id/otp'],
    ['POST /api/videos/ID/otp/more', 'POST /api/videos/:id/otp'],
    ['POST /api/vids/ID/otp', 'POST /api/videos/:id/otp'],
  ])('%s → %s', async (line, nearest) => {
    const { status, headers, body } = await ask(line.replace('ID', videoId))
    expect(status).toBe(404)
    expect(headers.get('content-type')).toMatch(/^application\/json/)
    expect(body).toEqual({
      message: `There is no such route. The nearest is ${nearest}.`,
      code: 'not-found',
      requestId: expect.any(String),
    })
  })

  test('the earlier interface says it in its own words', async () => {
    const { status, body } = await ask('POST /v2/otps')
    expect(status).toBe(404)
    expect(body).toEqual({ error: expect.stringContaining('/v2/otp') })
  })
})

describe('a word of the paths is never taken for the id of a video', () => {
  test.each([
    '/api/videos/TAGS',
    '/api/videos/Folders',
    '/api/videos/importurl',
    '/api/videos/ImportUrl/otp',
    '/api/videos/folders/x/files',
  ])('%s is 404 and names the nearest route', async (path) => {
    const { status, body } = await ask(`${path.endsWith('otp') ? 'POST' : 'GET'} ${path}`)
    expect([status, body]).toEqual([404, expect.objectContaining({ message: expect.stringContaining('The nearest is') })])
  })
})

test('HEAD is answered wherever GET is, without the body', async () => {
  const { poster } = await reelgate.owner.video(videoId)
  for (const path of [
    '/api/videos',
    `/api/videos/${videoId}`,
    '/api/videos/tags',
    '/healthz',
    '/docs/api',
    '/player',
    poster ?? '',
  ]) {
    if (path === '') continue
    const headers = { Authorization: `Apisecret ${reelgate.owner.apiKey}` }
    const [get, head] = await Promise.all(
      ['GET', 'HEAD'].map((method) => fetch(new URL(path, reelgate.url), { method, headers })),
    )
    expect([path, head?.status, await head?.text()]).toEqual([path, get?.status, ''])
    expect(head?.headers.get('content-type')).toBe(get?.headers.get('content-type'))
  }
})

describe('a method that does not exist on a route is 405 and Allow names those that do', () => {
  test.each([
    ['PATCH /api/videos', ['DELETE', 'GET', 'HEAD', 'PUT']],
    ['POST /api/videos', ['DELETE', 'GET', 'HEAD', 'PUT']],
    ['POST /api/videos/', ['DELETE', 'GET', 'HEAD', 'PUT']],
    ['HEAD /v2/videos', ['POST']],
    ['DELETE /api/videos/ID', ['GET', 'HEAD', 'POST', 'PUT']],
    ['PATCH /api/videos/tags', ['DELETE', 'GET', 'HEAD', 'POST', 'PUT']],
    ['GET /api/videos/ID/otp', ['POST']],
    ['DELETE /api/videos/ID/otp', ['POST']],
    ['PATCH /api/videos/importUrl', ['PUT']],
    ['GET /api/videos/importUrl', ['PUT']],
    ['POST /api/videos/importUrl/', ['PUT']],
    ['GET /api/videos/folders', ['POST']],
    ['PATCH /api/videos/folders/search', ['POST']],
  ])('%s', async (line, methods) => {
    const { status, headers, body } = await ask(line.replace('ID', videoId))
    expect(status).toBe(405)
    expect(headers.get('allow')?.split(', ').sort()).toEqual(methods)
    if (!line.startsWith('HEAD'))
      expect(body).toEqual({ message: expect.any(String), code: 'method-not-allowed', requestId: expect.any(String) })
  })

  test('D13: on each route of every interface, each method that it does not have', async () => {
    const token = 'x'.repeat(22)
    const paths = {
      [`/api/meta/${videoId}`]: ['GET', 'HEAD'],
      [`/api/videos/${videoId}/files/5`]: ['DELETE', 'GET', 'HEAD', 'PUT'],
      '/api/hooks': ['DELETE', 'GET', 'HEAD', 'POST'],
      '/v2/otp': ['POST'],
      '/v2/tags/add': ['POST'],
      '/V2/TAGS/SEARCH/': ['POST'],
      '/upload': ['OPTIONS', 'POST'],
      '/player': ['GET', 'HEAD'],
      '/player/v2/': ['GET', 'HEAD'],
      '/player/assets/a.js': ['GET', 'HEAD'],
      '/playerAssets/1.6.10/vdo.js': ['GET', 'HEAD'],
      '/play/redeem': ['POST'],
      [`/play/${token}/key/0`]: ['GET'],
      [`/media/1/${token}/${videoId}/1/1/0.m4s`]: ['GET'],
      [`/download/1/${token}/${'0'.repeat(32)}/1`]: ['GET', 'HEAD'],
      [`/poster/${token}.jpg`]: ['GET', 'HEAD'],
      '/docs/api': ['GET', 'HEAD'],
      '/healthz': ['GET', 'HEAD'],
      '/%61pi/account/video-usage': ['POST'],
    }
    for (const [path, methods] of Object.entries(paths)) {
      const wrong = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'].filter(
        (method) => !methods.includes(method),
      )
      for (const method of wrong) {
        const { status, headers } = await sendRaw(reelgate.url, `${method} ${path}`, ['Content-Type: text/odd'], 'body')
        expect([method, path, status, headers.get('allow')?.split(', ').sort()]).toEqual([method, path, 405, methods])
      }
    }
  })

  test('the earlier interface, uploads and players hear it in their own forms', async () => {
    expect((await ask('GET /v2/otp')).body).toEqual({ error: expect.stringContaining('POST') })
    expect((await sendRaw(reelgate.url, 'POST /v2/nothing?type=xml')).text).toContain('<error>')
    expect((await sendRaw(reelgate.url, 'PUT /upload')).text).toContain('<Code>MethodNotAllowed</Code>')
    expect((await ask('PUT /play/redeem')).body).toMatchObject({ code: 'bad-request' })
  })

  test.each([
    'POST /api/nothing',
    'PROPFIND /api/nothing',
    'TRACE /nothing',
    'PATCH /v2/nothing',
    'GET /player/assets/nothing.js',
    'GET /playerAssets/nothing',
    'GET /upload/nothing',
    'POST /api/meta',
    'POST /poster/',
  ])('%s is 404 all the same: nothing is there for any method', async (line) => {
    const { status, headers } = await sendRaw(reelgate.url, line)
    expect([status, headers.get('allow')]).toEqual([404, null])
  })
})

describe('a body that cannot be read', () => {
  const otp = (lines: string[], body: string) => ask(`POST /api/videos/${videoId}/otp`, lines, body)

  test.each(['text/xml', 'text/csv', 'application/octet-stream', 'application/json-patch+json', 'image/png', 'no type'])(
    'of the type %s is 415',
    async (type) => {
      const { status, body } = await otp([`Content-Type: ${type}`], '<otp/>')
      expect({ status, body }).toEqual({
        status: 415,
        body: { message: expect.any(String), code: 'unsupported', requestId: expect.any(String) },
      })
    },
  )

  test.each([
    ['broken JSON', 'application/json', '{"ttl":'],
    ['a JSON text', 'application/json', '"ttl"'],
    ['a JSON number', 'application/json', '5'],
    ['a filled array', 'application/json', '[{"ttl":5}]'],
    ['two values', 'application/json', '{}{}'],
    ['a name that would change every object', 'application/json', '{"__proto__":{"ttl":5}}'],
    ['a multipart form without a boundary', 'multipart/form-data', 'x'],
  ])('%s is 400', async (_, type, text) => {
    const { status, body } = await otp([`Content-Type: ${type}`], text)
    expect({ status, body }).toEqual({
      status: 400,
      body: { message: expect.any(String), code: 'invalid', requestId: expect.any(String) },
    })
  })

  test('of 300 kB is 413', async () => {
    const { status, body } = await otp(['Content-Type: application/json'], JSON.stringify({ other: 'x'.repeat(300_000) }))
    expect({ status, body }).toEqual({
      status: 413,
      body: { message: expect.any(String), code: 'too-large', requestId: expect.any(String) },
    })
  })
})

describe('an address that cannot be decoded is 400 in the words of its interface', () => {
  test.each([['GET /api/videos/%ZZ'], ['POST /api/videos/%E0%A4%A/otp'], ['GET /api/%']])('%s', async (line) => {
    const { status, body } = await ask(line)
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { message: expect.any(String), code: 'invalid', requestId: expect.any(String) },
    })
  })

  test('POST /v2/%ZZ', async () => {
    expect(await ask('POST /v2/%ZZ')).toMatchObject({ status: 400, body: { error: expect.any(String) } })
  })

  test.each(['GET /media/%ZZ', 'GET /play/%ZZ'])('%s, and no cache keeps it', async (line) => {
    const { status, headers, text } = await ask(line)
    expect(status).toBe(400)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).not.toContain('ZZ')
  })
})

test('every answer forbids to guess its type, and none names the software or its version', async () => {
  for (const line of [
    'GET /api/videos',
    'GET /api/none',
    'POST /v2/otp',
    'GET /play/x',
    'GET /media/x',
    'GET /player/',
    'GET /healthz',
    'GET /none',
  ]) {
    const { headers } = await sendRaw(reelgate.url, line, [])
    expect([line, headers.get('x-content-type-options')]).toEqual([line, 'nosniff'])
    for (const name of ['server', 'x-powered-by', 'set-cookie']) expect([line, headers.get(name)]).toEqual([line, null])
  }
})

test('two refusals have two request ids, and a caller cannot choose them', async () => {
  const ids = await Promise.all(
    [1, 2].map(async () => (await ask('GET /api/videos/x', ['Request-Id: mine', 'X-Request-Id: mine'])).body.requestId),
  )
  expect(new Set(ids).size).toBe(2)
  expect(ids).not.toContain('mine')
})

describe('F-94: what is refused leads to the row of the API reference that explains it', () => {
  const token = 'x'.repeat(22)
  test.each([
    ['POST /api/videos/ID/otp', '{"ttl":', 'error-invalid', 400],
    ['GET /api/videos?status=nonsense', '', 'error-invalid', 400],
    ['GET /api/videos/%ZZ', '', 'error-invalid', 400],
    ['POST /v2/otp', '', 'error-unauthenticated', 401],
    ['POST /V2/OTP/', '', 'error-unauthenticated', 401],
    ['GET /api/videos/none', '', 'error-not-found', 404],
    ['GET /nothing/here', '', 'error-not-found', 404],
    ['PATCH /api/videos', '', 'error-method-not-allowed', 405],
    ['PUT /upload', '', 'error-method-not-allowed', 405],
    ['POST /upload/', '', 'error-invalid', 400],
    [`GET /play/${token}/key/0`, '', 'refusal-not-allowed', 403],
    [`GET /play/${token}/key/0?page=1`, '', 'refusal-bad-request', 400],
    [`GET /media/1/${token}/${'0'.repeat(32)}/1/1/0.m4s`, '', 'refusal-not-allowed', 403],
  ])('%s', async (line, sent, row, status) => {
    const answer = await ask(line.replace('ID', videoId), sent === '' ? [] : ['Content-Type: application/json'], sent)
    const [, link] = /^<([^>]+)>; rel="help"$/.exec(answer.headers.get('link') ?? '') ?? []
    const help = new URL(link ?? '', new URL(line.split(' ')[1] ?? '', reelgate.url))
    expect([answer.status, help.pathname, help.hash]).toEqual([status, '/docs/api', `#${row}`])
    expect(await (await fetch(help)).text()).toContain(`<div id="${row}"><dt><b>${status}</b>`)
  })

  test('which has one for every error and every refusal', async () => {
    const page = await (await fetch(`${reelgate.url}/docs/api`)).text()
    const rows = [
      ...Object.entries(FAILURES).map(([code, { status }]) => ({ row: `error-${code}`, status })),
      ...Object.entries(REFUSALS).map(([code, { status }]) => ({ row: `refusal-${code}`, status })),
    ]
    expect(rows.filter(({ row, status }) => !page.includes(`<div id="${row}"><dt><b>${status}</b>`))).toEqual([])
  })

  test('unless the address is deeper than any that is served: the link would be as long', async () => {
    const { status, headers } = await ask(`GET ${'/'.repeat(10_000)}`)
    expect([status, headers.get('link')]).toEqual([404, null])
  })

  test('headers that are too large are refused with a code of the table', async () => {
    const { status, body } = await ask('GET /api/videos', [`Cookie: ${'x'.repeat(20_000)}`])
    expect([status, body.code]).toEqual([431, 'too-large'])
  })
})
