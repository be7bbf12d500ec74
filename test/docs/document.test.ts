import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiDocument, Content, Operation } from '../../src/http/docs/document.ts'
import { EXAMPLE } from '../../src/http/wire/examples.ts'
import { readTree } from '../architecture/imports.ts'
import { uploadForm } from '../client.ts'
import { makeLink, signIn } from '../console/person.ts'
import { readText } from '../event-stream.ts'
import { findFreePort } from '../free-port.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { createTusClient } from '../ingest/tus-client.ts'

// The API reference is what its readers can rely on: it is well-formed, and each of its examples does what it says.

const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

let reelgate: Reelgate & { remove(): Promise<void> }
let outside: string
let document: ApiDocument
let validator: Ajv2020
beforeAll(async () => {
  outside = `127.0.0.1:${await findFreePort()}` // without a listener, but it may be named
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: outside } })
  document = await readDocument()
  validator = new Ajv2020({ strict: false, validateFormats: false }).addSchema(document, 'document')
})
afterAll(() => reelgate.remove())

async function readDocument(): Promise<ApiDocument> {
  return (await fetch(`${reelgate.url}/docs/api/openapi.json`)).json() as Promise<ApiDocument>
}

type Location = { path: string; method: string; operation: Operation }

function locations(): Location[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
}

test('the document is OpenAPI 3.1, to a validator that knows nothing of us', async () => {
  const { valid, errors } = await new Validator().validate(await readDocument())
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined })
  expect(document.openapi).toBe('3.1.0')
})

test('every operation says what it does, which permission and which budget it takes, and how it refuses', () => {
  for (const { path, operation } of locations()) {
    expect(operation.summary, path).toMatch(/^[A-Z].{4,60}$/)
    const statuses = Object.keys(operation.responses)
    expect(statuses, path).toEqual(expect.arrayContaining(['400', '429', '503']))
    if (operation.security.length === 0) continue
    expect(statuses, path).toEqual(expect.arrayContaining(['401', '403']))
    expect(operation.description, path).toMatch(/permission `(viewer|otpCreator|uploader|editor)`.*`(reads|writes|otp|uploads)`/s)
  }
})

test('no operation is left out: every file of routes says of each what it does', () => {
  const sources = Object.entries(readTree('src')).filter(([path]) => /^src\/http\/(api|v2)\//.test(path))
  expect(sources.length).toBeGreaterThan(20)
  const silent = sources.filter(
    ([, text]) => count(text, /\b(app|forms)\.(get|post|put|delete|route)\(/g) > count(text, /\bsummary\b/g),
  )
  expect(silent.map(([path]) => path)).toEqual([])
})

function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length
}

test('no two operations have one id', () => {
  const ids = locations().map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('every example does what it says: it is answered as documented', async () => {
  expect(locations().length).toBeGreaterThan(20)
  for (const location of locations()) await tryExample(location)
})

/** What an example cannot be given here: no client is banned, no video has failed, no course has launched one, there is one server, the file is no captions, and there is no worker and no authenticator. */
const NOT_TO_BE_HAD: Record<string, number> = {
  'DELETE /api/bans': 404,
  'POST /api/videos/{id}/retry': 409,
  'POST /api/videos/{id}/encode': 409,
  'PUT /api/lti/platforms/{platformId}/courses': 404,
  'PUT /api/videos/{id}': 409,
  'PUT /api/videos/{id}/audio/{trackId}': 404,
  'POST /api/videos/{id}/audio': 409,
  'DELETE /api/videos/{id}/audio/{trackId}': 404,
  'PUT /api/videos/{id}/trim': 409,
  'PUT /api/videos/{id}/files/{fileId}': 409,
  'DELETE /api/videos/{id}/replacement': 409,
  'POST /api/videos/{id}/undo': 409,
  'POST /console/api/sign-in/passkey': 400,
  'POST /console/api/passkeys': 400,
  'DELETE /console/api/passkeys/{id}': 404,
  'PUT /console/api/system/servers/{id}': 404,
  'PUT /console/api/system/workers/{name}': 404,
  'DELETE /console/api/system/workers/{name}': 404,
}

async function tryExample(location: Location): Promise<void> {
  const name = `${location.method.toUpperCase()} ${location.path}`
  const response = await sendExample(location)
  const text = await readText(response)
  const isAsWanted = NOT_TO_BE_HAD[name] === undefined ? response.ok : response.status === NOT_TO_BE_HAD[name]
  expect({ name, isAsWanted, text: isAsWanted ? '' : text }).toEqual({ name, isAsWanted: true, text: '' })
  const reply = location.operation.responses[response.status]
  expect({ name, status: response.status, documented: reply !== undefined }).toMatchObject({ documented: true })
  expectDocumented(location, response, reply?.content ?? {}, text)
}

function expectDocumented({ path, method }: Location, { status, headers }: Response, content: Content, text: string): void {
  const [wanted = ''] = (headers.get('content-type') ?? '').split(';')
  expect(text === '', `${method} ${path}`).toBe(Object.keys(content).length === 0)
  if (text === '') return
  expect(Object.keys(content), `${method} ${path}`).toContain(wanted)
  if (wanted !== 'application/json') return
  const pointer = ['paths', path, method, 'responses', status, 'content', wanted, 'schema'].map(escaped).join('/')
  const isValid = validator.validate({ $ref: `document#/${pointer}` }, JSON.parse(text))
  expect({ path, method, isValid, errors: validator.errors, text }).toMatchObject({ isValid: true })
}

/** RFC 6901, in a fragment. */
function escaped(part: string | number): string {
  return encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1'))
}

/** As a reader would send it, who puts values of their own in the places of the examples'. */
async function sendExample({ path, method, operation }: Location): Promise<Response> {
  if (path === '/upload') return sendForm()
  const { parameters, requestBody } = operation
  const exampleFor = (name: string) => String(parameters.find((one) => one.in === 'path' && one.name === name)?.example ?? name)
  const examples = JSON.stringify([parameters.map(({ example }) => example), requestBody])
  const own = path.startsWith('/console/') ? await ownValuesOfPerson(examples) : await ownValues(examples)
  const query = parameters.filter((one) => one.in === 'query' && one.example !== undefined)
  const ofTus = parameters.filter((one) => /^(tus|upload|content)-/.test(one.name) && one.example !== undefined)
  const address = own(path.replace(/\{(\w+)\}/g, (_, name: string) => exampleFor(name)))
  const search = new URLSearchParams(query.map(({ name, example }): [string, string] => [name, own(String(example))]))
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const isFile = type === 'multipart/form-data'
  const url = path.startsWith('/console/') ? consoleUrl() : reelgate.url
  return fetch(`${url}${address}?${search}`, {
    method: method.toUpperCase(),
    headers: {
      ...Object.fromEntries(ofTus.map(({ name, example }): [string, string] => [name, String(example)])),
      ...(await consoleHeaders(path, operation)),
      ...(operation.security.some((one) => 'apisecret' in one) ? { Authorization: `Apisecret ${reelgate.owner.apiKey}` } : {}),
      ...(type === undefined || isFile ? {} : { 'Content-Type': type }),
    },
    body: isFile ? imageForm() : media === undefined ? undefined : own(written(type, media.example)),
  })
}

const consoleUrl = () => reelgate.url.replace('127.0.0.1', 'localhost')

/** What a page of the console sends, with the cookie of a person. */
async function consoleHeaders(path: string, { security }: Operation): Promise<Record<string, string>> {
  if (!path.startsWith('/console/')) return {}
  const cookie = security.length > 0 ? (await signIn(reelgate)).cookie : undefined
  return { Origin: consoleUrl(), 'Reelgate-Console': '1', ...(cookie && { Cookie: cookie }) }
}

function imageForm(): FormData {
  const form = new FormData()
  form.append('file', new Blob([PICTURE]), 'poster.png')
  return form
}

function written(type: string | undefined, example: unknown): string {
  if (type === 'application/json') return JSON.stringify(example)
  const fields = Object.entries(example ?? {}).flatMap(([name, value]: [string, unknown]) =>
    [value].flat().map((one): [string, string] => [name, typeof one === 'object' ? JSON.stringify(one) : String(one)]),
  )
  return new URLSearchParams(fields).toString()
}

async function sendForm(): Promise<Response> {
  const issued = await reelgate.owner.credentials('For a form')
  return fetch(`${reelgate.url}/upload`, { method: 'POST', body: uploadForm(issued, new Blob(['no video']), 'video.mp4') })
}

/** @returns the id of a resumable upload */
async function beginUpload(): Promise<string> {
  const { address } = await createTusClient(reelgate.owner).create(1_000_000)
  return address.slice(address.lastIndexOf('/') + 1)
}

let invitedCount = 1

/** The same for what only a person can use. */
async function ownValuesOfPerson(examples: string): Promise<(text: string) => string> {
  const person = await signIn(reelgate)
  if (examples.includes(EXAMPLE.password)) await person.get('PUT', '/sign-in/password', { password: EXAMPLE.password })
  const invited = await person.get<{ id: string }>('POST', '/users', { name: `Invited ${invitedCount++}`, role: 'viewer' })
  const { rows } = await person.get<{ rows: { id: string }[] }>('GET', '/sign-ins')
  const own = Object.entries({
    [EXAMPLE.userName]: 'owner',
    [EXAMPLE.linkToken]: await makeLink(reelgate),
    [EXAMPLE.userId]: invited.id,
    [EXAMPLE.signInId]: rows[0]?.id ?? '',
    [EXAMPLE.accountId]: (await ask<{ id: string }>('GET', '/api/account')).id,
    [EXAMPLE.videoId]: (await reelgate.owner.credentials('A video')).videoId,
  })
  return (text) => own.reduce((said, [example, value]) => said.replaceAll(example, value), text)
}

/** Makes what these examples name, of this account's own. @returns what puts it into their text */
async function ownValues(examples: string): Promise<(text: string) => string> {
  const { owner } = reelgate
  const { rows } = await ask<{ rows: { uuid: string }[] }>('GET', '/api/hooks')
  for (const { uuid } of rows) await ask('DELETE', '/api/hooks', { uuid })
  const webhookUrl = `http://${outside}/`
  const webhook = await ask<{ uuid: string }>('POST', '/api/hooks', { type: 'http', value: webhookUrl, event: 'video:deleted' })
  const { videoId: gone } = await owner.credentials('To be gone')
  await owner.delete([gone]) // so that the webhook has a delivery
  const { videoId } = await owner.credentials('A video')
  const folder = await ask<{ id: string }>('POST', '/api/videos/folders', { name: `Folder ${videoId}` })
  const poster = examples.includes(EXAMPLE.fileId) ? await addPoster(videoId) : undefined
  const key = await ask<{ id: string }>('POST', '/api/keys', { name: 'For an example', permissions: ['viewer'] })
  const own = Object.entries({
    [EXAMPLE.keyId]: key.id,
    [EXAMPLE.videoId]: videoId,
    [EXAMPLE.folderId]: folder.id,
    [EXAMPLE.fileId]: String(poster?.id),
    [EXAMPLE.uploadId]: await beginUpload(),
    [EXAMPLE.uploadTokenId]: (await ask<{ id: string }>('POST', '/api/upload-tokens', { origin: 'https://school.example' })).id,
    [EXAMPLE.videoUrl]: `http://${outside}/video.mp4`,
    [EXAMPLE.webhookId]: webhook.uuid,
    [EXAMPLE.platformId]: examples.includes(EXAMPLE.platformId) ? await addPlatform() : '',
    [EXAMPLE.webhookUrl]: webhookUrl,
    SECRET: owner.apiKey,
  })
  return (text) => own.reduce((said, [example, value]) => said.replaceAll(example, value), text)
}

async function addPlatform(): Promise<string> {
  return (await ask<{ id: string }>('POST', '/api/lti/platforms', { name: 'Moodle', issuer: 'https://moodle.example' })).id
}

async function addPoster(videoId: string): Promise<{ id: number } | undefined> {
  const headers = { Authorization: `Apisecret ${reelgate.owner.apiKey}` }
  const added = await fetch(`${reelgate.url}/api/videos/${videoId}/files`, { method: 'POST', headers, body: imageForm() })
  const [poster] = (await added.json()) as { id: number }[]
  return poster
}

async function ask<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await reelgate.owner.call(method, path, { body })
  expect(response.status, path).toBe(200)
  return response.json() as Promise<Answer>
}
