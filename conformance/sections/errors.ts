import { type Check, check, type Section } from '../check.ts'
import { type Expected, expectAnswer } from '../expect.ts'
import type { Installation } from '../installation.ts'
import { anyText, exactly, is, type Shape, sentence, without } from '../shape.ts'

/** Of the right form, without an owner. */
const UNKNOWN_ID = '0123456789abcdef0123456789abcdef'
const UNKNOWN_KEY = 'A'.repeat(64)

type Permission = 'viewer' | 'downloader' | 'otpCreator' | 'uploader' | 'editor'
type Operation = { method: string; path: string; permission: Permission; also?: Permission; json?: unknown }

/** Operations of the current interface that take one video's id, and those that take none. */
const VIDEO_OPERATIONS: readonly Operation[] = [
  { method: 'GET', path: '/videos/ID', permission: 'viewer' },
  { method: 'POST', path: '/videos/ID', permission: 'editor', json: { title: 'x' } },
  { method: 'POST', path: '/videos/ID/otp', permission: 'otpCreator' },
  { method: 'GET', path: '/videos/ID/files', permission: 'viewer' },
  { method: 'POST', path: '/videos/ID/files', permission: 'editor', json: { type: 'mp4' } },
]
const OTHER_OPERATIONS: readonly Operation[] = [
  { method: 'GET', path: '/videos', permission: 'viewer' },
  { method: 'GET', path: `/videos/${UNKNOWN_ID}/files/1`, permission: 'viewer', also: 'downloader' },
  { method: 'DELETE', path: `/videos/${UNKNOWN_ID}/files/1`, permission: 'editor' },
  { method: 'PUT', path: '/videos?title=x', permission: 'uploader' },
  { method: 'DELETE', path: '/videos?videos=', permission: 'editor' },
  { method: 'GET', path: '/videos/tags', permission: 'viewer' },
  { method: 'PUT', path: '/videos/importUrl', permission: 'uploader', json: { url: 'https://example.org/video.mp4' } },
  { method: 'GET', path: '/videos/folders/root', permission: 'viewer' },
  { method: 'POST', path: '/videos/folders/search', permission: 'viewer', json: { name: 'x' } },
  { method: 'POST', path: '/videos/folders', permission: 'editor', json: { name: 'x' } },
  { method: 'PUT', path: `/videos/folders/${UNKNOWN_ID}`, permission: 'editor', json: { name: 'x' } },
  { method: 'DELETE', path: `/videos/folders/${UNKNOWN_ID}`, permission: 'editor' },
  { method: 'GET', path: '/hooks', permission: 'viewer' },
  {
    method: 'POST',
    path: '/hooks',
    permission: 'editor',
    json: { type: 'http', value: 'https://example.org/', event: 'video:ready' },
  },
  { method: 'DELETE', path: '/hooks', permission: 'editor', json: { uuid: UNKNOWN_ID } },
  { method: 'POST', path: '/account/video-usage', permission: 'viewer', json: { date: '2026-01-01' } },
  { method: 'POST', path: '/videos/tags', permission: 'editor', json: { videos: [UNKNOWN_ID], tags: ['a'] } },
  { method: 'PUT', path: '/videos/tags', permission: 'editor', json: { videos: [UNKNOWN_ID], tags: ['a'] } },
  { method: 'DELETE', path: '/videos/tags', permission: 'editor', json: { videos: [UNKNOWN_ID], tags: ['a'] } },
]
const OPERATIONS = [...VIDEO_OPERATIONS, ...OTHER_OPERATIONS]

const formatOperation = ({ method, path }: Operation) =>
  `${method} ${path.replace('ID', '{id}').replace(UNKNOWN_ID, '{id}').replace(/\?.*/, '')}`

/** For each permission an operation that a key with it alone may do, and what comes of it; nothing is changed. */
const ALLOWED: Record<Permission, Operation & { status: number }> = {
  viewer: { method: 'GET', path: '/videos', permission: 'viewer', status: 200 },
  downloader: { method: 'GET', path: `/videos/${UNKNOWN_ID}/files/1`, permission: 'downloader', status: 404 },
  otpCreator: { method: 'POST', path: `/videos/${UNKNOWN_ID}/otp`, permission: 'otpCreator', status: 404 },
  uploader: { method: 'PUT', path: '/videos', permission: 'uploader', status: 400 },
  editor: { method: 'POST', path: `/videos/${UNKNOWN_ID}`, permission: 'editor', json: { title: 'x' }, status: 404 },
}

/** Words of a path that are never taken for a video's id, with a method that exists there. */
const RESERVED_WORDS = { folders: 'POST', tags: 'GET', importUrl: 'PUT' }

/** Bodies of which one value has the wrong type, or is out of range. */
const WRONG_VALUES: readonly Omit<Operation, 'permission'>[] = [
  { method: 'POST', path: '/videos/ID', json: { title: 5 } },
  { method: 'POST', path: '/videos/ID', json: { title: '' } },
  { method: 'POST', path: '/videos/ID', json: { public: 'perhaps' } },
  { method: 'POST', path: '/videos/ID', json: [1] },
  { method: 'POST', path: '/videos/tags', json: { videos: 'ID', tags: ['a'] } },
  { method: 'POST', path: '/videos/tags', json: { videos: [5], tags: ['a'] } },
  { method: 'POST', path: '/videos/tags', json: { videos: ['ID'] } },
  { method: 'DELETE', path: '/videos', json: { videos: [5] } },
  { method: 'POST', path: '/videos/folders', json: { name: ['x'] } },
  { method: 'POST', path: '/videos/folders/search', json: {} },
  { method: 'PUT', path: '/videos/importUrl', json: { url: 5 } },
  { method: 'POST', path: '/hooks', json: { type: 'mail', value: 'https://example.org/', event: 'video:ready' } },
  { method: 'POST', path: '/hooks', json: { type: 'http', value: 'https://example.org/', event: 5 } },
  { method: 'POST', path: '/account/video-usage', json: { date: 5 } },
  { method: 'POST', path: '/videos/ID/otp', json: { ttl: 'soon' } },
  { method: 'POST', path: '/videos/ID/files', json: { type: 'mkv' } },
]
const RAW_PHRASE =
  /must (be (string|object|array|integer|number|equal|one of)|NOT|match)|The field "\d|instancePath|schema|undefined/

/** Every refusal says where its code is explained. */
const HELP = { link: /^<[^>]*docs\/api#error-[a-z-]+>; rel="help"$/ }

/** Every refusal of the current interface. */
export function refused(status: number, message: Shape = sentence): Expected {
  return {
    status,
    headers: { 'content-type': /^application\/json/, ...HELP },
    body: exactly({ message, code: /^[a-z][a-z-]+$/, requestId: anyText }),
  }
}

/** Every refusal of the earlier interface. */
export function refusedV2(status: number, error: string | RegExp = /^\S.{7,}/): Expected {
  return { status, headers: { 'content-type': /^application\/json/, ...HELP }, body: exactly({ error }) }
}

export function refusedXml(status: number, error = '[^<]+'): Expected {
  const text = new RegExp(`^<\\?xml version="1\\.0" encoding="UTF-8"\\?>\\s*<(\\w+)><error>${error}</error></\\1>$`)
  return { status, headers: { 'content-type': /^application\/xml/, ...HELP }, text }
}

export const NO_VIDEO = refusedV2(200, 'No video found')

async function call(at: Installation, { method, path, json }: Operation, id: string, key?: string | null) {
  return at.api(method, path.replace('ID', id), { key, json })
}

const BAD_HEADERS: Record<string, (key: string) => string> = {
  'the secret alone': (key) => key,
  'another scheme': (key) => `Bearer ${key}`,
  'no secret': () => 'Apisecret',
  'two spaces': (key) => `Apisecret  ${key}`,
  'a word behind the secret': (key) => `Apisecret ${key} x`,
}

const NO_BODY_NEEDED: Record<string, { headers?: [string, string][]; body?: string }> = {
  'none at all': {},
  'none, under application/json': { headers: [['Content-Type', 'application/json']] },
  'an empty one, under application/json': { headers: [['Content-Type', 'application/json']], body: '' },
  '{}': { headers: [['Content-Type', 'application/json']], body: '{}' },
  '[]': { headers: [['Content-Type', 'application/json']], body: '[]' },
  '{} without a Content-Type': { body: '{}' },
  'a form': { headers: [['Content-Type', 'application/x-www-form-urlencoded']], body: 'a=b' },
}

export const errors: Section = {
  section: 2,
  title: 'Errors',
  checks: [
    ...OPERATIONS.flatMap((operation): Check[] => [
      check(`${formatOperation(operation)} without a header is 401`, async (at) => {
        expectAnswer(await call(at, operation, await at.sharedEmptyVideo(), null), refused(401))
      }),
      check(`${formatOperation(operation)} with an unknown key is 401`, async (at) => {
        expectAnswer(await call(at, operation, await at.sharedEmptyVideo(), UNKNOWN_KEY), refused(401))
      }),
      check(
        `${formatOperation(operation)} with a key that lacks ${operation.permission} is 403`,
        async (at) => {
          for (const [permission, key] of at.permissionKeys)
            if (permission !== operation.permission && permission !== operation.also)
              expectAnswer(await call(at, operation, await at.sharedEmptyVideo(), key), refused(403))
        },
        'permission-keys',
      ),
    ]),
    ...Object.values(ALLOWED).map((operation) =>
      check(
        `a key with the permission ${operation.permission} alone may ${formatOperation(operation)}`,
        async (at) => {
          const answer = await call(at, operation, UNKNOWN_ID, at.permissionKeys.get(operation.permission))
          expectAnswer(answer, { status: operation.status })
        },
        'permission-keys',
      ),
    ),
    ...VIDEO_OPERATIONS.flatMap((operation): Check[] => [
      check(`${formatOperation(operation)} of an unknown video is 404 "Video not found"`, async (at) => {
        expectAnswer(await call(at, operation, UNKNOWN_ID), refused(404, 'Video not found'))
      }),
      check(
        `${formatOperation(operation)} of another account’s video is the same 404`,
        async (at) =>
          expectAnswer(await call(at, operation, await at.sharedEmptyVideo(), at.otherKey), refused(404, 'Video not found')),
        'other-key',
      ),
    ]),
    ...Object.entries(BAD_HEADERS).map(([name, header]) =>
      check(`an Authorization header with ${name} is 400 "Bad formatting of Authorization header"`, async (at) => {
        const answer = await at.api('GET', '/videos', { key: null, headers: [['Authorization', header(at.key)]] })
        expectAnswer(answer, refused(400, 'Bad formatting of Authorization header'))
      }),
    ),
    check('a second Authorization header is 400', async (at) => {
      const answer = await at.api('GET', '/videos', { headers: [['Authorization', `Apisecret ${at.key}`]] })
      expectAnswer(answer, refused(400)) // a proxy refuses it before it knows what the header is for
    }),
    check('a body that is no JSON is 400', async (at) => {
      const path = `/videos/${await at.sharedEmptyVideo()}`
      const answer = await at.api('POST', path, { headers: [['Content-Type', 'application/json']], body: '{"title":' })
      expectAnswer(answer, refused(400))
    }),
    check('a wrong type in a field that is used is 400', async (at) => {
      const id = await at.sharedEmptyVideo()
      expectAnswer(await at.api('POST', `/videos/${id}`, { json: { title: 5 } }), refused(400))
      expectAnswer(await at.api('POST', '/videos/tags', { json: { videos: id, tags: ['a'] } }), refused(400))
    }),
    check('an unknown route is 404 as JSON that names the nearest real route', async (at) => {
      expectAnswer(await at.api('GET', '/videos/x/y/z'), refused(404, /\/api\/videos/))
    }),
    check('a method that is not possible is 405 with Allow', async (at) => {
      const answer = await at.api('PATCH', '/videos')
      expectAnswer(answer, { ...refused(405), headers: { allow: /^(?=.*\bGET\b)(?=.*\bPUT\b)(?=.*\bDELETE\b)/ } })
      expectAnswer(await at.api('POST', `/meta/${'0'.repeat(32)}`), {
        ...refused(405),
        headers: { allow: /^(GET, HEAD|HEAD, GET)$/ },
      })
    }),
    ...Object.entries(RESERVED_WORDS).flatMap(([word, method]) => [
      check(`${word} is never taken for a video’s id: a wrong method is 405, an unknown word below it 404`, async (at) => {
        const answer = await at.api('PATCH', `/videos/${word}`)
        expectAnswer(answer, { ...refused(405), headers: { allow: new RegExp(`\\b${method}\\b`) } })
        for (const below of ['otp', 'files'])
          expectAnswer(await at.api('POST', `/videos/${word}/${below}`), refused(404, /\/api\/videos/))
      }),
      check(`${word.toUpperCase()} is never taken for a video’s id: it is 404 and names the nearest route`, async (at) => {
        for (const requestMethod of ['GET', 'POST', 'PUT', 'PATCH'])
          expectAnswer(await at.api(requestMethod, `/videos/${word.toUpperCase()}`), refused(404, new RegExp(word)))
      }),
    ]),
    check('HEAD answers wherever GET does, without a body', async (at) => {
      const id = await at.sharedEmptyVideo()
      for (const path of [
        '/videos',
        `/videos/${id}`,
        `/videos/${id}/files`,
        '/videos/tags',
        '/videos/folders/root',
        `/meta/${id}`,
      ])
        expectAnswer(await at.api('HEAD', path), { status: 200, text: '' })
      expectAnswer(await at.api('HEAD', `/videos/${UNKNOWN_ID}`), { status: 404, text: '' })
    }),
    ...WRONG_VALUES.map((operation) =>
      check(
        `${operation.method} ${operation.path} of ${JSON.stringify(operation.json)} is 400 in a sentence of our own`,
        async (at) => {
          const id = await at.sharedEmptyVideo()
          const json: unknown = JSON.parse(JSON.stringify(operation.json).replaceAll('ID', id))
          const answer = await call(at, { ...operation, permission: 'editor', json }, id)
          const ownWords = is('no validator’s phrase', (message) => typeof message === 'string' && !RAW_PHRASE.test(message))
          expectAnswer(answer, refused(400, ownWords))
        },
      ),
    ),
    check('a body that is too large is 413', async (at) => {
      const path = `/videos/${await at.sharedEmptyVideo()}`
      expectAnswer(await at.api('POST', path, { json: { description: 'x'.repeat(2 ** 20) } }), refused(413))
    }),
    check('a Content-Type that is not read is 415', async (at) => {
      const path = `/videos/${await at.sharedEmptyVideo()}`
      expectAnswer(await at.api('POST', path, { headers: [['Content-Type', 'text/csv']], body: 'title\nx' }), refused(415))
    }),
    check('no success of OTP, credentials, list or one video has a message', async (at) => {
      const id = await at.sharedEmptyVideo()
      const silent = { status: 200, body: without('message') }
      expectAnswer(await at.api('POST', `/videos/${id}/otp`), silent)
      expectAnswer(await at.api('GET', '/videos'), silent)
      expectAnswer(await at.api('GET', `/videos/${id}`), silent)
      const issued = await at.api('PUT', `/videos?title=${encodeURIComponent(at.newTitle())}`)
      expectAnswer(issued, silent)
      at.removeVideo((issued.body as { videoId: string }).videoId)
    }),
    ...['/videos/', '/videos/ID/', '/videos/tags/'].map((path) =>
      check(`${path.replace('ID', '{id}')} means the same as without its last slash`, async (at) => {
        expectAnswer(await at.api('GET', path.replace('ID', await at.sharedEmptyVideo())), { status: 200 })
      }),
    ),
    ...Object.entries(NO_BODY_NEEDED).map(([name, sending]) =>
      check(`a body that nothing needs may be: ${name}`, async (at) => {
        const path = `/videos/${await at.sharedEmptyVideo()}/otp`
        expectAnswer(await at.api('POST', path, sending), { status: 200 })
      }),
    ),
    check('Content-Type: application/json on a GET or DELETE without a body is read past', async (at) => {
      const headers: [string, string][] = [['Content-Type', 'application/json']]
      expectAnswer(await at.api('GET', '/videos', { headers }), { status: 200 })
      expectAnswer(await at.api('DELETE', `/videos?videos=${UNKNOWN_ID}`, { headers }), { status: 200 })
    }),
    check('unknown keys of an OTP request are ignored', async (at) => {
      const path = `/videos/${await at.sharedEmptyVideo()}/otp`
      expectAnswer(await at.api('POST', path, { json: { anything: { at: ['all'] }, ttl: 300 } }), { status: 200 })
    }),
    check('earlier interface: an unknown video is 200 {"error":"No video found"}', async (at) => {
      expectAnswer(await at.v2(`/video?id=${UNKNOWN_ID}`), { ...NO_VIDEO, text: '{"error":"No video found"}' })
      expectAnswer(await at.v2(`/otp?video=${UNKNOWN_ID}`), { ...NO_VIDEO, text: '{"error":"No video found"}' })
    }),
    check('earlier interface: an unknown video in XML is 200 with an error element', async (at) => {
      expectAnswer(await at.v2(`/video?id=${UNKNOWN_ID}&type=xml`), refusedXml(200, 'No video found'))
    }),
    check('earlier interface: deleting an unknown video is 404 with the same body', async (at) => {
      expectAnswer(await at.v2(`/video?id=${UNKNOWN_ID}`, { action: 'delete' }), refusedV2(404, 'No video found'))
      expectAnswer(await at.v2(`/video?id=${UNKNOWN_ID}&type=xml`, { action: 'delete' }), refusedXml(404, 'No video found'))
    }),
    check('earlier interface: a wrong key is 401, in the representation that was asked for', async (at) => {
      expectAnswer(await at.v2('/videos', {}, UNKNOWN_KEY), refusedV2(401))
      expectAnswer(await at.v2('/videos', {}, null), refusedV2(401))
      expectAnswer(await at.v2('/videos?type=xml', {}, UNKNOWN_KEY), refusedXml(401))
    }),
    check(
      'earlier interface: a missing permission is 403, in the representation that was asked for',
      async (at) => {
        const id = await at.sharedEmptyVideo()
        expectAnswer(await at.v2(`/otp?video=${id}`, {}, at.viewerKey), refusedV2(403))
        expectAnswer(await at.v2(`/otp?video=${id}&type=xml`, {}, at.viewerKey), refusedXml(403))
        expectAnswer(await at.v2(`/video?id=${id}`, { action: 'delete' }, at.viewerKey), refusedV2(403))
      },
      'permission-keys',
    ),
    check(
      'earlier interface: another account’s video is an unknown one',
      async (at) => {
        const id = await at.sharedEmptyVideo()
        expectAnswer(await at.v2(`/video?id=${id}`, {}, at.otherKey), NO_VIDEO)
        expectAnswer(await at.v2(`/video?id=${id}`, { action: 'delete' }, at.otherKey), refusedV2(404, 'No video found'))
      },
      'other-key',
    ),
    check('earlier interface: what is not well formed is 400', async (at) => {
      expectAnswer(await at.v2('/otp'), refusedV2(400))
      expectAnswer(await at.v2('/videos?page=x'), refusedV2(400))
    }),
    check('earlier interface: an unknown operation is 404 with an error', async (at) => {
      expectAnswer(await at.v2('/nothing'), { status: 404, body: { error: sentence } })
    }),
    check(
      'uploads that are off for the account are 403',
      async (at) => expectAnswer(await at.api('PUT', '/videos?title=x', { key: at.offKey }), refused(403)),
      'off-key',
    ),
  ],
}
