import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PERMISSIONS, type Permission } from '../../src/accounts/permission.ts'
import { readConfig } from '../../src/config/config.ts'
import { dataPaths } from '../../src/config/data-paths.ts'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { App } from '../../src/http/wire/app-type.ts'
import { type ReelgateServer, startServer } from '../../src/server.ts'
import { createOwner } from '../client.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { changeRows, listTablesWithoutClock, readRows } from '../rows.ts'
import { pathOf, RULES, type Rule, ruleOf } from './route-rules.ts'

// Every route of the running server × every kind of credential. The routes come from the server itself, so a new one fails here until
// it has its rule below.

/** What is sent with a request. `secret` is put into the body, where v2 looks for it. */
type Credential = { headers?: Record<string, string | string[]>; secret?: unknown; query?: string }
/** What a credential is worth: the status of its refusal, or what it may do, in its own account or in another. */
type Worth = { refused: number; ofBannedAccount?: true } | { may: readonly Permission[]; account: 'own' | 'another' }

const refused = (status: number): Worth => ({ refused: status })
const may = (...permissions: Permission[]): Worth => ({ may: permissions, account: 'own' })

type Listed = {
  name: string
  credential: Credential
  api: Worth
  v2: Worth /** Where a key is accepted as Bearer. */
  bearer?: Worth
  /** Opens the routes of workers. */
  worker?: true
}
let credentials: Listed[]
/** The keys by what became of them. */
let keys: Record<string, string>

function listCredentials(otp: string): Listed[] {
  const key = keys.all ?? ''
  const header = (text: string) => ({ headers: { Authorization: `Apisecret ${text}` } })
  const inBody = (name: string, secret: unknown, worth: Worth) => ({
    name: `${name}, in the body`,
    credential: { secret },
    api: refused(401),
    v2: worth,
  })
  const inHeader = (name: string, text: string, worth: Worth) => ({
    name: `${name}, in the header`,
    credential: header(text),
    api: worth,
    v2: refused(401),
  })
  const elsewhere = (name: string, credential: Credential, api = refused(401)) => ({ name, credential, api, v2: refused(401) })
  const known: [string, string, Worth][] = [
    ['a key of all permissions', key, may(...PERMISSIONS)],
    ...PERMISSIONS.map((permission): [string, string, Worth] => [
      `a key for ${permission}`,
      keys[permission] ?? '',
      may(permission),
    ]),
    ['a key of another account', keys.another ?? '', { may: PERMISSIONS, account: 'another' }],
    ['an unknown key', 'x'.repeat(64), refused(401)],
    ['a revoked key', keys.revoked ?? '', refused(401)],
    ['an expired key', keys.expired ?? '', refused(401)],
    ['a rotated key after its overlap', keys.rotated ?? '', refused(401)],
    ['a key of a disabled account', keys.disabled ?? '', refused(403)],
    ['a banned key', keys.banned ?? '', refused(429)],
    ['a key of a banned account', keys.ofBanned ?? '', { refused: 429, ofBannedAccount: true }],
    ['an OTP', otp, refused(401)],
    ['an id like a playback session’s', 'A'.repeat(22), refused(401)],
  ]
  return [
    elsewhere('nothing', {}),
    ...known.flatMap(([name, text, worth]) => [inHeader(name, text, worth), inBody(name, text, worth)]),
    inBody('a list of the right key', [key, key], refused(401)),
    {
      ...elsewhere('the right key as Bearer', { headers: { Authorization: `Bearer ${key}` } }, refused(400)),
      bearer: may(...PERMISSIONS),
    },
    ...(
      [
        ['an upload token from its page', 'token', PAGE, may('uploader')],
        ['an upload token from another page', 'token', 'https://evil.example', refused(403)],
        ['an upload token from no page', 'token', undefined, refused(403)],
        ['a revoked upload token', 'revokedToken', PAGE, refused(401)],
        ['an upload token of a revoked key', 'tokenOfRevoked', PAGE, refused(401)],
        ['an upload token of a disabled account', 'tokenOfDisabled', PAGE, refused(403)],
        ['an unknown upload token', undefined, PAGE, refused(401)],
      ] as const
    ).map(([name, token, origin, bearer]) => {
      const from: Record<string, string> = origin === undefined ? {} : { Origin: origin }
      const text = (token && keys[token]) ?? `upload_${'x'.repeat(64)}`
      return { ...elsewhere(name, { headers: { Authorization: `Bearer ${text}`, ...from } }, refused(400)), bearer }
    }),
    { ...elsewhere('the token of a worker', WORKER_TOKEN(keys.worker ?? ''), refused(400)), bearer: refused(401), worker: true },
    { ...elsewhere('the token of a removed worker', WORKER_TOKEN(keys.removedWorker ?? ''), refused(400)), bearer: refused(401) },
    inHeader('the token of a worker as a key', keys.worker ?? '', refused(401)),
    inHeader('an upload token as a key', keys.token ?? '', refused(401)),
    inBody('an upload token', keys.token ?? '', refused(401)),
    elsewhere('two headers', { headers: { Authorization: [`Apisecret ${key}`, `Apisecret ${key}`] } }, refused(400)),
    elsewhere('the right key in the query', { query: `clientSecretKey=${key}&Apisecret=${key}&key=${key}` }),
    elsewhere('the right key in a cookie', { headers: { Cookie: `Apisecret=${key}; clientSecretKey=${key}; session=${key}` } }),
    elsewhere('the right key in other headers', {
      headers: { Apisecret: key, 'X-Api-Key': key, 'Proxy-Authorization': `Apisecret ${key}` },
    }),
  ]
}

const PAGE = 'https://school.example'
const WORKER_TOKEN = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

let location: Location
let server: ReelgateServer
let routes: string[]
let videoId: string
const NO_VIDEO = '0'.repeat(32)

/** Limits that this suite does not reach, but that every answer reports. */
const OF_OWNERS = { ip: 50_000, key: 60_000, account: 70_000 }
const LIMITS = { reads: OF_OWNERS, writes: OF_OWNERS, otp: OF_OWNERS, uploads: OF_OWNERS, unauthenticated: { ip: 50_000 } }

beforeAll(async () => {
  location = await makeLocation()
  await start('off')
  await makeKeys()
  videoId = (await createOwner(server.url, keys.all ?? '').credentials('Theirs')).videoId
  await server.stop()
  ban('key', keys.bannedId ?? '')
  ban('account', keys.bannedAccountId ?? '')
  routes = await routesOf(() => start('on'))
  const otp = await createOwner(server.url, keys.all ?? '').issueOtp(videoId)
  credentials = listCredentials(otp)
})
afterAll(async () => {
  await server.stop()
  await location.remove()
})

async function start(demo: 'on' | 'off'): Promise<void> {
  const config = readConfig({
    ...location.env,
    PORT: '0',
    REELGATE_LIMITS: JSON.stringify({ ...LIMITS, redeem: { ip: 50_000 }, playback: { ip: 50_000 } }),
    REELGATE_DEMO: demo,
  })
  server = await startServer(config, pino({ level: 'silent' }))
}

/** Fastify tells of each app on a channel of Node's: what it routes is what is asked for here. */
async function routesOf(begin: () => Promise<void>): Promise<string[]> {
  const found = new Set<string>()
  function collect(message: unknown): void {
    const { fastify } = message as { fastify: App }
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) found.add(`${one} ${url.replace(/(?<=.)\/$/, '')}`)
    })
  }
  subscribe('fastify.initialization', collect)
  await begin().finally(() => unsubscribe('fastify.initialization', collect))
  return [...found]
}

async function makeKeys(): Promise<void> {
  type Made = { accountId: string; keyId: string; apiKey: string }
  const command = async (name: CommandName, args: unknown) =>
    (await sendCommand(dataPaths(location.dataDir).controlSocket, name, args)) as Made
  const newAccount = (name: string) => command('account create', { name, mayUpload: true, mayImport: true })
  const account = server.firstStart?.account
  const newKey = (permissions: readonly Permission[], more = {}) =>
    command('key create', { account: account?.accountId, name: 'key', permissions, ...more })

  keys = { all: account?.apiKey ?? '', another: (await newAccount('Another')).apiKey }
  for (const permission of PERMISSIONS) keys[permission] = (await newKey([permission])).apiKey
  const makeToken = async (key: string) => {
    const body = { origin: PAGE }
    const made = await createOwner(server.url, key).call('POST', '/api/upload-tokens', { body })
    return (await made.json()) as { id: string; token: string }
  }
  const newWorker = async (name: string) =>
    ((await command('worker add', { name, trusted: false })) as unknown as { token: string }).token
  keys.worker = await newWorker('office')
  keys.removedWorker = await newWorker('rented')
  await command('worker remove', { name: 'rented' })
  keys.token = (await makeToken(keys.all ?? '')).token
  const revokedToken = await makeToken(keys.all ?? '')
  await createOwner(server.url, keys.all ?? '').call('DELETE', `/api/upload-tokens/${revokedToken.id}`)
  keys.revokedToken = revokedToken.token
  const revoked = await newKey(PERMISSIONS)
  keys.tokenOfRevoked = (await makeToken(revoked.apiKey)).token
  await command('key revoke', { keyId: revoked.keyId })
  keys.revoked = revoked.apiKey
  const rotated = await newKey(PERMISSIONS)
  await command('key rotate', { keyId: rotated.keyId, overlapS: 0 })
  keys.rotated = rotated.apiKey
  keys.expired = (await newKey(PERMISSIONS, { lifeS: 1 })).apiKey
  while ((await statusOf(keys.expired ?? '')) !== 401) await pause(100)
  keys.disabled = (await newAccount('Disabled')).apiKey
  keys.tokenOfDisabled = (await makeToken(keys.disabled)).token
  await command('account disable', { account: 'Disabled' })
  const banned = await newKey(PERMISSIONS)
  Object.assign(keys, { banned: banned.apiKey, bannedId: banned.keyId })
  const bannedAccount = await newAccount('Banned')
  Object.assign(keys, { ofBanned: bannedAccount.apiKey, bannedAccountId: bannedAccount.accountId })
}

const statusOf = async (key: string) => (await createOwner(server.url, key).call('GET', '/api/videos')).status

/** As it lies there after a flood of yesterday. */
function ban(scope: 'key' | 'account', subject: string): void {
  const nowS = Math.floor(Date.now() / 1000)
  const sql = 'insert into ban (scope, subject, budget, began_at_s, ends_at_s) values (?, ?, ?, ?, ?)'
  for (const budget of ['reads', 'writes', 'otp', 'uploads']) changeRows(location, sql, scope, subject, budget, nowS, nowS + 3600)
}

/** Whether it is about a video, which is its account's. */
const isOfVideo = (route: string) => (pathOf(route) + JSON.stringify(ruleOf(route)?.body)).includes('VIDEO')

type Answer = { status: number; text: string; headers: IncomingMessage['headers'] }

/** Asks a route with a credential, about this video. */
async function ask(route: string, { headers, secret, query }: Credential, video: string): Promise<Answer> {
  const [method = ''] = route.split(' ')
  const body = ruleOf(route)?.body
  const location = pathOf(route).replace('VIDEO', video)
  const address = `${server.url}${location}${query === undefined ? '' : `${location.includes('?') ? '&' : '?'}${query}`}`
  const fields = { ...body, ...(secret === undefined ? {} : { clientSecretKey: secret }) }
  const sentText = ['OPTIONS', 'HEAD'].includes(method) ? '' : JSON.stringify(fields).replaceAll('VIDEO', video)
  const sent = request(address, {
    method,
    headers: {
      ...(sentText === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(sentText) }),
      ...headers,
    },
  }).end(sentText)
  const [answer]: IncomingMessage[] = await once(sent, 'response')
  if (!answer) throw new Error('no answer')
  const isEndless = answer.headers['content-type']?.startsWith('text/event-stream')
  if (isEndless) answer.destroy()
  const text = isEndless ? '' : (await answer.toArray()).join('')
  return { status: answer.statusCode ?? 0, headers: answer.headers, text }
}

/** By the rules alone: what the credential is answered at the route, or that it is answered as if the video did not exist. */
function expected(route: string, listed: Listed): number | 'as for no video' {
  const { opens, alsoOpens, acceptsBearer, status, toBannedAccount }: Rule = ruleOf(route) ?? { opens: 'anybody', status: 0 }
  // The player's own routes take no query at all (playback-protocol.md).
  if (listed.credential.query !== undefined && route.includes(' /play/')) return 400
  // The console's own are refused to pages of other sites, whatever these send.
  if (listed.credential.headers?.Origin !== undefined && route.includes(' /console/api/')) return 403
  if (opens === 'proof' || opens === 'anybody') return status
  if (opens === 'worker') return listed.worker ? status : 401
  // Who changes something without the console's header is refused before anything is asked of a cookie.
  if (opens === 'cookie') return /^(GET|HEAD) /.test(route) ? 401 : 403
  const worth = (acceptsBearer && listed.bearer) || listed[route.includes(' /v2/') ? 'v2' : 'api']
  if ('refused' in worth) return (worth.ofBannedAccount && toBannedAccount) || worth.refused
  if (!worth.may.includes(opens) && !(alsoOpens && worth.may.includes(alsoOpens))) return 403
  return worth.account === 'another' && isOfVideo(route) ? 'as for no video' : status
}

test('D12: every route has its rule, and every rule its route', () => {
  const named = routes.filter((route) => route in RULES || !ruleOf(route))
  expect(named.toSorted()).toEqual(Object.keys(RULES).toSorted())
})

test('D12, K05, K11, K15: every route answers every credential by its rule, and what is refused changes nothing', async () => {
  const before = digest()
  const wrong: string[] = []
  let asked = 0
  /** The refused ones first, then the ones that may change something. */
  for (const isRefused of [true, false]) {
    for (const route of routes.filter((known) => ruleOf(known))) {
      const cases = credentials.map((one) => ({ ...one, expects: expected(route, one) }))
      await Promise.all(
        cases
          .filter(({ expects }) => (typeof expects === 'number' && expects >= 400) === isRefused)
          .map(async ({ name, credential, expects }) => {
            asked++
            const answer = await ask(route, credential, videoId)
            const received = expects === 'as for no video' ? withoutId(answer) : answer.status
            const wanted = expects === 'as for no video' ? withoutId(await ask(route, credential, NO_VIDEO)) : expects
            if (received !== wanted) wrong.push(`${route}, ${name}: ${received}, not ${wanted}`)
            if (
              /^(\S+ (\/console)?\/api|POST \/v2)\//.test(route) &&
              !/^".+";q=\d+;w=60$/.test(String(answer.headers['ratelimit-policy']))
            )
              wrong.push(`${route}, ${name}: does not tell its limit`)
          }),
      )
    }
    if (isRefused) expect(digest()).toBe(before)
  }
  expect(wrong).toEqual([])
  expect(asked).toBe(credentials.length * routes.length)
})

/** An answer without what differs each time, and without the id that was asked for. */
function withoutId({ status, text }: Answer): string {
  const body = text.replaceAll(videoId, 'ID').replaceAll(NO_VIDEO, 'ID')
  return `${status} ${body.replace(/"requestId":"[^"]*"/, '')}`
}

/** All rows but those that time alone changes. */
function digest(): string {
  const tables = listTablesWithoutClock(location)
  const rowsOf = (name: string) => readRows(location, `select * from ${name}`).map((row) => ({ ...row, last_used_at_s: 0 }))
  return JSON.stringify(tables.map((name) => [name, rowsOf(name)]))
}
