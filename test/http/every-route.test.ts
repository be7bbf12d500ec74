import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import type { App } from '../../src/http/wire/app-type.ts'
import { type ReelgateServer, startServer } from '../../src/server.ts'
import { createOwner } from '../client.ts'
import { type Person, signIn } from '../console/person.ts'
import { readText } from '../event-stream.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { sampleOf } from '../sample.ts'

// What holds for every route of the running server. The routes come from the server itself, so a new one is asked here, too.

type Schema = Record<string, unknown>
type Route = { method: string; url: string; body: Schema; query: Schema; params: Schema }
type Asked = { method: string; path: string; body?: unknown }

let location: Location
let server: ReelgateServer
let apiKey: string
let videoId: string
let person: Person | undefined
const routes: Route[] = []

beforeAll(async () => {
  location = await makeLocation()
  const config = readConfig({ ...location.env, PORT: '0', REELGATE_LIMITS: 'off', REELGATE_DEMO: 'off' })
  subscribe('fastify.initialization', collectRoutes)
  server = await startServer(config, pino({ level: 'silent' })).finally(() =>
    unsubscribe('fastify.initialization', collectRoutes),
  )
  apiKey = server.firstStart?.account?.apiKey ?? ''
  videoId = (await createOwner(server.url, apiKey).credentials('A video')).videoId
})
afterAll(async () => {
  await server.stop()
  await location.remove()
})

function collectRoutes(message: unknown): void {
  const { fastify } = message as { fastify: App }
  fastify.addHook('onRoute', ({ method, url, schema = {} }) => {
    const { body = {}, querystring = {}, params = {} } = schema as Record<string, Schema | undefined>
    // The console's operations that are those of /api are not asked again.
    for (const one of [method].flat()) if (!isCopy(one, url)) routes.push({ method: one, url, body, query: querystring, params })
  })
}

function isCopy(method: string, url: string): boolean {
  return routes.some((route) => route.method === method && `/console${route.url}` === url)
}

/** The phrases of Ajv and TypeBox; sentences of ours may say "must have", too. */
const VALIDATORS_WORDS =
  /\bmust (?:NOT|match|equal|have (?:required|property|at)|be (?:string|number|integer|boolean|object|array|null|equal|multiple|valid|[<>]))\b|\bmust be [<>]|The field "\d+"|schema|instancePath/

test('a wrong value is refused on every route in a sentence of ours, never in a validator’s words', async () => {
  const raw: string[] = []
  const drawn = sampleOf(
    'routes',
    routes.filter(({ method }) => method !== 'HEAD'),
    30,
  )
  for (const asked of drawn.flatMap(wrongly)) {
    const { status, text } = await ask(asked)
    expect(status, `${asked.method} ${asked.path} ${JSON.stringify(asked.body)}`).not.toBe(500)
    if (status >= 400 && VALIDATORS_WORDS.test(text)) raw.push(`${asked.method} ${asked.path}: ${text}`)
  }
  expect(raw).toEqual([])
})

test('every JSON answer of every route says the one Content-Type, with a key, without, and when it is repeated', async () => {
  const others: string[] = []
  let jsonCount = 0
  for (const route of routes) {
    const asked = { method: route.method, path: pathOf(route), body: hasBody(route) ? exampleOf(route.body) : undefined }
    const again = { Authorization: `Apisecret ${apiKey}`, 'Idempotency-Key': 'again' }
    for (const headers of [undefined, {}, again, again]) {
      const { type, text } = await ask(asked, headers)
      if (!isJson(text) && !type?.includes('json')) continue
      jsonCount++
      if (type !== 'application/json; charset=utf-8') others.push(`${asked.method} ${asked.path}: ${type}`)
    }
  }
  expect(others).toEqual([])
  expect(jsonCount).toBeGreaterThan(routes.length)
})

test.each([
  {
    what: 'one of a few values',
    path: '/api/videos/VIDEO',
    body: { title: 'x', public: 'maybe' },
    says: 'The field "public" expects 1, 0, "1", "0", true, false, "true" or "false", but got the text "maybe".',
  },
  {
    what: 'an entry of a list',
    path: '/api/videos/tags',
    body: { videos: ['VIDEO'], tags: ['a', 5] },
    says: 'The field "tags[1]" expects a text, but got the number 5.',
  },
  {
    what: 'a missing field',
    path: '/api/videos/tags',
    body: { tags: ['a'] },
    says: 'The field "videos" is missing. Send it as a list, each entry a text.',
  },
  {
    what: 'the body',
    path: '/api/videos/VIDEO',
    body: 'tags',
    says: 'The body expects an object, but got the text "tags".',
  },
])('the sentence about $what says what is expected and what came', async ({ path, body, says }) => {
  const { status, text } = await ask({ method: 'POST', path: path.replace('VIDEO', videoId), body })
  expect([status, JSON.parse(text).message]).toEqual([400, says])
})

const WRONG = [null, 5, -1, true, '', 'wrong', 'x'.repeat(2_000), [], [5], [null], [[]], {}, { a: 1 }]

/** Calls with each field of the body wrong in each way, each parameter, and the body itself. */
function wrongly(route: Route): Asked[] {
  const { method } = route
  const whole = exampleOf(route.body)
  const fields = isObject(whole) ? whole : {}
  const bodies = WRONG.flatMap((value) => [value, ...Object.keys(fields).map((name) => ({ ...fields, [name]: value }))])
  const without = Object.keys(fields).map((name) => ({ ...fields, [name]: undefined }))
  const inQuery = Object.keys(propertiesOf(route.query)).flatMap((name) => [`${name}=wrong`, `${name}=`, `${name}=1&${name}=2`])
  return [
    ...(!hasBody(route) ? [] : [...bodies, ...without].map((body) => ({ method, path: pathOf(route), body }))),
    ...inQuery.map((query) => ({ method, path: `${pathOf(route)}?${query}`, body: hasBody(route) ? whole : undefined })),
    { method, path: route.url.replace(/:\w+|\*/g, 'wrong'), body: hasBody(route) ? whole : undefined },
  ]
}

/** A value that a schema takes. */
function exampleOf(schema: unknown): unknown {
  if (!isObject(schema)) return 'x'
  if (Array.isArray(schema.examples)) return schema.examples[0]
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.anyOf)) return exampleOf(schema.anyOf[0])
  if (schema.type === 'array') return [exampleOf(schema.items)]
  if (schema.type === 'integer' || schema.type === 'number') return 1
  if (schema.type !== 'object') return 'x'
  return Object.fromEntries(Object.entries(propertiesOf(schema)).map(([name, inner]) => [name, exampleOf(inner)]))
}

function propertiesOf(schema: Schema): Schema {
  return isObject(schema.properties) ? schema.properties : {}
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function hasBody({ method }: Route): boolean {
  return method !== 'GET' && method !== 'HEAD'
}

function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text)
}

function pathOf({ url }: Route): string {
  return url.replace(/:(id|videoId)\b/, videoId).replace(/:\w+|\*/g, '1')
}

/** For an operation of the console: what its page sends, with a new cookie when the one before was signed out. */
async function asPerson(headers: Record<string, string>): Promise<Record<string, string>> {
  if (!person || (await person.ask('GET', '/videos')).status === 401) person = await signIn({ ...location, url: server.url })
  return { ...headers, Cookie: person.cookie ?? '', 'Reelgate-Console': '1' }
}

async function ask({ method, path, body }: Asked, given: Record<string, string> = { Authorization: `Apisecret ${apiKey}` }) {
  const sent = path.startsWith('/v2') && isObject(body) ? { clientSecretKey: apiKey, ...body } : body
  const headers = path.startsWith('/console/api/') ? await asPerson(given) : given
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(sent),
  })
  return { status: response.status, type: response.headers.get('Content-Type'), text: await readText(response) }
}
