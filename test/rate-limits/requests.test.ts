import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { readAnswer } from '../raw-http.ts'
import { startReelgate as startProcess } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { createViewer } from '../viewer.ts'

// Limits over HTTP, small ones. The server believes a proxy on this machine, so a test is behind whatever addresses it likes;
// each has its own, and its own accounts.

const LIMITS = {
  reads: { ip: 5, key: 8, account: 12 },
  writes: { ip: 3, key: 100, account: 100 },
  otp: { ip: 3, key: 5, account: 100 },
  uploads: { ip: 3, key: 100, account: 100 },
  playback: { ip: 6 },
  redeem: { ip: 60 },
  unauthenticated: { ip: 5 },
  pages: { ip: 4 },
  posters: { ip: 4 },
  docs: { ip: 4 },
  health: { ip: 4 },
}
/** So many times a limit is a flood. */
const FLOOD = 5
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({
    env: { REELGATE_LIMITS: JSON.stringify(LIMITS), REELGATE_TRUSTED_PROXIES: '127.0.0.1, 10.9.0.0/16' },
  })
})
afterAll(() => reelgate.remove())

let addresses = 0
const newAddress = () => `203.0.${113 + Math.floor(addresses / 250)}.${(addresses++ % 250) + 1}`

type Asked = { key?: string; method?: string; headers?: Record<string, string>; body?: string }

function ask(from: string, path: string, { key, method, headers, body }: Asked = {}): Promise<Response> {
  const type: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' }
  const authorization: Record<string, string> = key === undefined ? {} : { Authorization: `Apisecret ${key}` }
  return fetch(`${reelgate.url}${path}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { 'X-Forwarded-For': from, ...type, ...authorization, ...headers },
    body,
  })
}

const list = (from: string, key: string) => ask(from, '/api/videos', { key })
const waitOf = (response: Response) => Number(response.headers.get('retry-after'))

async function statusesOf(calls: Promise<Response>[]): Promise<number[]> {
  return (await Promise.all(calls)).map(({ status }) => status)
}

async function times(count: number, call: (index: number) => Promise<Response>): Promise<Response[]> {
  const answers: Response[] = []
  for (let i = 0; i < count; i++) answers.push(await call(i))
  return answers
}

const count = (answers: Response[]) =>
  Object.fromEntries(
    Map.groupBy(answers, ({ status }) => status)
      .entries()
      .map(([status, of]) => [status, of.length]),
  )

/** As the command line does with a running server, without a process for each. */
const command = (name: CommandName, args: unknown) => sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)

async function newAccount(name: string) {
  return (await command('account create', { name, mayUpload: true, mayImport: true })) as { accountId: string; apiKey: string }
}

async function newKey(accountId: string): Promise<string> {
  return (await newEditor(accountId, ['viewer'])).apiKey
}

async function newKeys(accountId: string, count: number): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => newKey(accountId)))
}

async function newEditor(accountId: string, permissions = ['viewer', 'editor']) {
  return (await command('key create', { account: accountId, name: 'key', permissions })) as { keyId: string; apiKey: string }
}

const bans = async () => (await command('ban list', {})) as { scope: string; subject: string }[]

describe('R01: the limit passes, the next is 429 with Retry-After in the form of its interface', () => {
  test('in the current one', async () => {
    const { apiKey } = await newAccount('Una')
    const from = newAddress()
    expect(count(await times(5, () => list(from, apiKey)))).toEqual({ 200: 5 })
    const refused = await list(from, apiKey)
    expect(refused.status).toBe(429)
    expect(waitOf(refused)).toBeGreaterThan(0)
    expect(waitOf(refused)).toBeLessThanOrEqual(60)
    expect(await refused.json()).toEqual({
      message: expect.stringMatching(
        /^Too many requests from this address: at most 5 reads a minute\. Wait \d+ seconds, then continue\.$/,
      ),
      code: 'limited',
      requestId: expect.any(String),
    })
    expect((await list(newAddress(), apiKey)).status).toBe(200)
  })

  test('in the earlier one, as JSON and XML', async () => {
    const from = newAddress()
    const otp = (type: string) =>
      ask(from, `/v2/otp?video=x&type=${type}`, {
        body: 'clientSecretKey=x',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      })
    expect(count(await times(5, () => otp('json')))).toEqual({ 401: 5 })
    const json = await otp('json')
    expect([json.status, await json.json()]).toEqual([429, { error: expect.stringContaining('Too many requests') }])
    const xml = await otp('xml')
    expect(xml.headers.get('content-type')).toMatch(/^application\/xml/)
    expect(waitOf(xml)).toBeGreaterThan(0)
    expect(await xml.text()).toMatch(/<error>Too many requests[^<]*<\/error>/)
  })

  test('for upload forms, as S3 says it, and to a page of any origin', async () => {
    const from = newAddress()
    const send = () =>
      ask(from, '/upload', { body: '--b\r\n\r\n', headers: { 'Content-Type': 'multipart/form-data; boundary=b' } })
    expect(count(await times(3, send))).toEqual({ 400: 3 })
    const refused = await send()
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([429, '*'])
    expect(waitOf(refused)).toBeGreaterThan(0)
    expect(await refused.text()).toMatch(/<Error><Code>SlowDown<\/Code><Message>Too many requests/)
    expect((await ask(from, '/upload', { method: 'OPTIONS' })).status).toBe(204)
  })

  test('for players, as they understand it', async () => {
    const from = newAddress()
    const beat = () => ask(from, `/play/${'a'.repeat(22)}/beat`, { body: '{}', headers: { 'Content-Type': 'application/json' } })
    expect(count(await times(6, beat))).toEqual({ 403: 6 })
    const refused = await beat()
    expect([refused.status, refused.headers.get('cache-control')]).toEqual([429, 'no-store'])
    expect(waitOf(refused)).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({ code: 'slow-down' })
  })

  test('in the player’s place, on a page that may be framed as the player may', async () => {
    const from = newAddress()
    const open = () => ask(from, '/player/', { headers: { Accept: 'text/html' } })
    expect(count(await times(4, open))).toEqual({ 200: 4 })
    const refused = await open()
    expect([refused.status, refused.headers.get('x-frame-options')]).toEqual([429, null])
    expect(refused.headers.get('content-security-policy')).not.toContain('frame-ancestors')
    expect(refused.headers.get('cross-origin-embedder-policy')).toBe('require-corp')
    expect(waitOf(refused)).toBeGreaterThan(0)
    expect(await refused.text()).toContain('<p class="sentence" role="alert">Too many requests')
  })
})

test('each answer of both interfaces says what is left of the tightest limit', async () => {
  const { apiKey } = await newAccount('Una')
  const from = newAddress()
  const form = { headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'clientSecretKey=x' }
  const answers = [
    await list(from, apiKey),
    await ask(from, '/api/videos'),
    await ask(from, '/api/nothing', { key: apiKey }),
    await ask(from, '/v2/videos', form),
    await ask(from, '/v2/%zz', form),
    await list(from, apiKey),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 404, 401, 400, 200])
  expect(answers.map(({ headers }) => headers.get('ratelimit-policy'))).toEqual(
    ['reads', 'unauthenticated', 'reads', 'unauthenticated', 'unauthenticated', 'reads'].map((budget) => `"${budget}";q=5;w=60`),
  )
  expect(answers.map(({ headers }) => /;r=(\d+);t=\d+$/.exec(headers.get('ratelimit') ?? '')?.[1])).toEqual([
    '4',
    '4',
    '3',
    '3',
    '2',
    '2',
  ])
  // The eighth call of the key is the first of a fresh address: now the key's limit is the tightest.
  await times(4, () => list(newAddress(), apiKey))
  const eighth = await list(newAddress(), apiKey)
  expect(eighth.headers.get('ratelimit-policy')).toBe('"reads";q=8;w=60')
  expect(eighth.headers.get('ratelimit')).toMatch(/^"reads";r=0;t=\d+$/)
})

test('reads, writes, OTPs, uploads and forms are counted apart', async () => {
  const { apiKey } = await newAccount('Una')
  const from = newAddress()
  const { videoId } = (await (await ask(from, '/api/videos?title=x', { key: apiKey, method: 'PUT' })).json()) as {
    videoId: string
  }
  const asked: [number, Asked & { path: string }][] = [
    [5, { path: '/api/videos' }],
    [3, { path: `/api/videos/${videoId}/otp`, body: '{}' }],
    [3, { path: '/api/videos?videos=x', method: 'DELETE' }],
    [2, { path: '/api/videos?title=x', method: 'PUT' }],
  ]
  for (const [limit, { path, ...call }] of asked) {
    expect(count(await times(limit + 1, () => ask(from, path, { key: apiKey, ...call })))).toEqual({ 200: limit, 429: 1 })
  }
})

test('a deletion in the earlier interface, which only its body shows, counts as a write', async () => {
  const { apiKey } = await newAccount('Una')
  const from = newAddress()
  const video = (action: string) =>
    ask(from, '/v2/video?id=x', {
      body: new URLSearchParams({ clientSecretKey: apiKey, ...(action === '' ? {} : { action }) }).toString(),
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    })
  const deletions = await times(4, () => video('delete'))
  expect(count(deletions)).toEqual({ 404: 3, 429: 1 })
  expect(deletions.map(({ headers }) => headers.get('ratelimit'))).toEqual(
    [2, 1, 0, 0].map((left) => expect.stringMatching(`^"writes";r=${left};`)),
  )
  expect(count(await times(6, () => video('')))).toEqual({ 200: 5, 429: 1 })
})

describe('a flood is a strike', () => {
  test('R01, R09: that bans the address for half an hour, whatever key it uses; other addresses are not affected', async () => {
    const [una, ben] = [await newAccount('Una'), await newAccount('Ben')]
    const from = newAddress()
    const answers = await times(FLOOD * 5, () => list(from, una.apiKey))
    expect(count(answers)).toEqual({ 200: 5, 429: 20 })
    expect(answers.map(waitOf).findIndex((waitS) => waitS > 1700)).toBe(24)
    const banned = await list(from, ben.apiKey)
    expect([banned.status, waitOf(banned) > 1700]).toEqual([429, true])
    expect(await banned.json()).toMatchObject({
      code: 'limited',
      message: expect.stringMatching(
        new RegExp(
          `^This address is banned from reads until \\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z: it sent far more than 5 reads a minute\\. Lift the ban with "reelgate ban lift ${from}"; raise the limit with "reelgate account set ${ben.accountId} --limit-factor 2"\\.$`,
        ),
      ),
    })
    expect((await list(newAddress(), ben.apiKey)).status).toBe(200)
  })

  test('R07, R09: a key that floods from many addresses is banned alone; its account’s other key is not affected', async () => {
    const { accountId, apiKey } = await newAccount('Una')
    const other = await newKey(accountId)
    const answers = await times(FLOOD * 8, () => list(newAddress(), apiKey))
    expect(count(answers)).toEqual({ 200: 8, 429: 32 })
    expect(await answers[8]?.json()).toMatchObject({ message: expect.stringContaining('from this API key') })
    expect(await (await list(newAddress(), apiKey)).json()).toMatchObject({
      message: expect.stringMatching(/^This API key is banned/),
    })
    expect((await list(newAddress(), other)).status).toBe(200)
  })

  test('R07, R09: an account of many keys is banned with all of them', async () => {
    const { accountId, apiKey } = await newAccount('Una')
    const keys = [apiKey, ...(await newKeys(accountId, 7))]
    const last = await newKey(accountId)
    const answers = await times(FLOOD * 12, (i) => list(newAddress(), keys[i % 8] ?? ''))
    expect(count(answers)).toEqual({ 200: 12, 429: 48 })
    const banned = await list(newAddress(), last)
    expect([banned.status, await banned.json()]).toEqual([
      429,
      expect.objectContaining({ message: expect.stringMatching(/^This account is banned/) }),
    ])
    expect((await list(newAddress(), (await newAccount('Ben')).apiKey)).status).toBe(200)
  })

  test('R12: a stranger with wrong keys that begin as another’s does is banned; that key and its account are not', async () => {
    const { accountId, apiKey } = await newAccount('Una')
    const from = newAddress()
    const answers = await times(FLOOD * 5, (i) => list(from, apiKey.slice(0, 40) + String(i).padStart(24, '0')))
    expect(count(answers)).toEqual({ 401: 5, 429: 20 })
    expect((await list(newAddress(), apiKey)).status).toBe(200)
    // Behind the same address, too.
    expect((await list(from, apiKey)).status).toBe(200)
    const subjects = (await bans()).map(({ subject }) => subject)
    expect(subjects).toContain(from)
    expect(subjects).not.toContain(accountId)
  })

  test('R16: one who is banned is answered before key and body, which need not have come further than where a key may be', async () => {
    const from = newAddress()
    await times(FLOOD * 5, () => list(from, 'x'))
    await times(FLOOD * 3, () => ask(from, '/upload', { body: '' }))
    const answers: string[] = []
    const send = async (address: string, path: string, start = '') => {
      const head = [
        `POST ${path} HTTP/1.1`,
        'Host: x',
        `X-Forwarded-For: ${address}`,
        'Content-Type: application/json',
        'Content-Length: 200000',
      ]
      const socket = connect(Number(new URL(reelgate.url).port), '127.0.0.1')
      onTestFinished(() => void socket.destroy())
      socket.write(`${head.join('\r\n')}\r\n\r\n${start}`)
      answers.push(`${path} ${readAnswer(await new Promise<Buffer>((resolve) => socket.once('data', resolve))).status}`)
    }
    // In the earlier interface the key is in the body: without its start, that is waited for.
    void send(newAddress(), '/v2/videos')
    const start = ' '.repeat(17 * 1024)
    const paths = ['/api/videos/x/otp', '/v2/otp', '/upload']
    await Promise.all(paths.map((path) => send(from, path, path === '/v2/otp' ? start : '')))
    expect(answers.toSorted()).toEqual(paths.map((path) => `${path} 429`).toSorted())
  })

  test('the owner sees the ban and lifts it, with immediate effect', async () => {
    const { apiKey } = await newAccount('Una')
    const from = newAddress()
    const answers = await times(FLOOD * 5, () => list(from, apiKey))
    const [, endsAt] = /until (\S+):/.exec((await answers.at(-1)?.text()) ?? '') ?? []
    const listed = JSON.parse((await reelgate.cli('ban', 'list', '--json')).stdout)
    expect(listed).toContainEqual({ scope: 'ip', subject: from, budget: 'reads', secondsLeft: expect.any(Number), endsAt })
    expect(await reelgate.cli('ban', 'lift', from, '--json')).toMatchObject({
      code: 0,
      stdout: `${JSON.stringify({ subject: from, lifted: true })}\n`,
    })
    expect((await list(from, apiKey)).status).toBe(200)
    expect((await bans()).map(({ subject }) => subject)).not.toContain(from)
    expect(await reelgate.cli('ban', 'lift', from)).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no ban') })
  })
})

test('F-140: a ban that another process makes counts here soon, and no longer once that process has lifted it', async () => {
  const { apiKey } = await newAccount('Vera')
  const from = newAddress()
  const statuses = () => list(from, apiKey).then(({ status }) => status)
  expect(await statuses()).toBe(200)
  const endsAtS = Math.floor(Date.now() / 1000) + 1800
  const sql = 'insert into ban (scope, subject, budget, began_at_s, ends_at_s) values (?, ?, ?, ?, ?)'
  changeRows(reelgate, sql, 'ip', from, 'reads', endsAtS - 1800, endsAtS)
  await expect.poll(async () => (await (await list(from, apiKey)).text()).includes('banned')).toBe(true)
  changeRows(reelgate, 'delete from ban where subject = ?', from)
  await expect.poll(async () => (await (await list(from, apiKey)).text()).includes('banned')).toBe(false)
})

describe('an owner sees and lifts bans through the API', () => {
  const bansOf = async (key: string) =>
    ((await (await ask(newAddress(), '/api/bans', { key })).json()) as { rows?: { scope: string; subject: string }[] }).rows
  const lift = (key: string, subject: string) => ask(newAddress(), `/api/bans?subject=${subject}`, { key, method: 'DELETE' })

  test('of a key, with another key of the account; the strike stays', async () => {
    const { accountId } = await newAccount('Una')
    const [banned, other] = [await newEditor(accountId), await newEditor(accountId)]
    await times(FLOOD * 8, () => list(newAddress(), banned.apiKey))
    expect(await bansOf(other.apiKey)).toEqual([
      { scope: 'key', subject: banned.keyId, budget: 'reads', secondsLeft: expect.any(Number), endsAt: expect.any(String) },
    ])
    expect((await list(newAddress(), banned.apiKey)).status).toBe(429)
    const lifted = await ask(newAddress(), '/api/bans', {
      key: other.apiKey,
      method: 'DELETE',
      body: JSON.stringify({ subject: banned.keyId }),
    })
    expect([lifted.status, await lifted.json()]).toEqual([200, { message: 'Lifted' }])
    const next = await list(newAddress(), banned.apiKey)
    expect([next.status, waitOf(next) <= 60]).toEqual([429, true]) // it had its calls of this minute
    expect(await bansOf(other.apiKey)).toEqual([])
    expect((await lift(other.apiKey, banned.keyId)).status).toBe(404)
    // The second ban is half an hour longer.
    const again = await times(FLOOD * 8, () => list(newAddress(), banned.apiKey))
    expect(Math.max(...again.map(waitOf))).toBeGreaterThan(1800 + 1700)
  })

  test('of the account, with any key that is not banned itself', async () => {
    const { accountId, apiKey } = await newAccount('Una')
    const keys = [apiKey, ...(await newKeys(accountId, 7))]
    await times(FLOOD * 12, (i) => list(newAddress(), keys[i % 8] ?? ''))
    const editor = await newEditor(accountId)
    expect((await list(newAddress(), editor.apiKey)).status).toBe(429)
    expect(await bansOf(editor.apiKey)).toEqual([
      { scope: 'account', subject: accountId, budget: 'reads', secondsLeft: expect.any(Number), endsAt: expect.any(String) },
    ])
    expect((await lift(editor.apiKey, accountId)).status).toBe(200)
    expect(await bansOf(editor.apiKey)).toEqual([])
    const next = await list(newAddress(), editor.apiKey)
    expect([next.status, waitOf(next) <= 60]).toEqual([429, true])
  })

  test('of itself alone: neither of another account, nor of an address', async () => {
    const [una, ben] = [await newAccount('Una'), await newAccount('Ben')]
    const ofBen = await newEditor(ben.accountId)
    await times(FLOOD * 8, () => list(newAddress(), ofBen.apiKey))
    const from = newAddress()
    await times(FLOOD * 5, () => list(from, una.apiKey))
    const editor = await newEditor(una.accountId)
    expect(await bansOf(editor.apiKey)).toEqual([])
    for (const subject of [ofBen.keyId, from, ben.accountId]) expect((await lift(editor.apiKey, subject)).status).toBe(404)
    expect((await list(newAddress(), ofBen.apiKey)).status).toBe(429)
    expect((await list(from, editor.apiKey)).status).toBe(429)
    expect((await ask(newAddress(), '/api/bans', { key: editor.apiKey, method: 'DELETE' })).status).toBe(400)
  })
})

test('a raised account may ask so many times as often, from one address too, and pages grow', async () => {
  const { accountId, apiKey } = await newAccount('A raised account')
  const set = (...args: string[]) => reelgate.cli('account', 'set', ...args)
  expect((await set('A raised account', '--limit-factor', '4', '--page-max', '100')).code).toBe(0)
  const from = newAddress()
  const answers = await times(21, () => list(from, apiKey))
  expect(count(answers)).toEqual({ 200: 20, 429: 1 })
  expect(answers[0]?.headers.get('ratelimit-policy')).toBe('"reads";q=20;w=60')
  expect(readRows(reelgate, `select page_max, limit_factor from account where id = '${accountId}'`)).toEqual([
    { page_max: 100, limit_factor: 4 },
  ])

  await newAccount('A raised account')
  expect(await set('A raised account', '--page-max', '40')).toMatchObject({ code: 1, stderr: expect.stringContaining(accountId) })
  expect((await set(accountId, '--page-max', '40')).code).toBe(0)
  expect(await set('nobody', '--page-max', '40')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no account'),
  })
  for (const wrong of [[], ['--page-max', '101'], ['--limit-factor', '0'], ['--limit-factor', 'many']])
    expect((await set(accountId, ...wrong)).code).toBe(2)
})

describe('R15: viewers spend their own budgets', () => {
  test('players’ requests without a true proof, and refused segments, never close the API to the address', async () => {
    const { apiKey } = await newAccount('Una')
    const from = newAddress()
    const media = `/media/9999999999/${'a'.repeat(22)}/${'0'.repeat(32)}/1/1/0.m4s`
    const answers = await times(FLOOD * 6, () => ask(from, media))
    expect(count(answers)).toEqual({ 403: 6, 429: 24 })
    expect(waitOf(await ask(from, `/play/${'a'.repeat(22)}/key/0`))).toBeGreaterThan(1700)
    expect((await list(from, apiKey)).status).toBe(200)
  })

  test('what pages ask of a video without a key, from viewers’ browsers, never closes the API to the address', async () => {
    const { apiKey } = await newAccount('Una')
    const from = newAddress()
    const answers = await times(12, () => ask(from, `/api/meta/${'0'.repeat(32)}`))
    expect(count(answers)).toEqual({ 404: 6, 429: 6 })
    expect((await list(from, apiKey)).status).toBe(200)
  })

  test('O14: three hundred guessed OTPs are sixty tries and a ban of the guesser alone', async () => {
    const { accountId, apiKey } = await newAccount('Una')
    const { videoId } = (await (await ask(newAddress(), '/api/videos?title=x', { key: apiKey, method: 'PUT' })).json()) as {
      videoId: string
    }
    const guesser = createViewer(reelgate.url)
    const from = newAddress()
    guesser.state.headers['X-Forwarded-For'] = from
    await guesser.openPage()
    const codes: string[] = []
    for (let round = 0; round < 6; round++) {
      const guesses = Array.from({ length: 50 }, (_, i) => guesser.redeem(`guess${round}x${i}`.padEnd(64, 'A')))
      codes.push(...(await Promise.all(guesses)).map(({ body }) => String(body.code)))
    }
    expect(codes.filter((code) => code === 'slow-down')).toHaveLength(240)
    expect(codes.filter((code) => code === 'otp-unknown')).toHaveLength(60)
    const banned = await guesser.redeem('A'.repeat(64))
    expect([banned.status, Number(banned.headers.get('retry-after')) > 1700]).toEqual([429, true])

    expect((await bans()).filter(({ subject }) => subject === from)).toEqual([
      expect.objectContaining({ scope: 'viewer', budget: 'redeem' }),
    ])
    expect((await bans()).map(({ subject }) => subject)).not.toContain(accountId)
    const issued = await ask(from, `/api/videos/${videoId}/otp`, { key: apiKey, body: '{}' })
    expect(issued.status).toBe(200)
    const { otp } = (await issued.json()) as { otp: string }
    const viewer = createViewer(reelgate.url)
    viewer.state.headers['X-Forwarded-For'] = newAddress()
    expect((await viewer.redeem(otp)).body.code).toBe('video-not-ready') // the video has no bytes; the viewer gets an answer
  })
})

test('O12: who issues OTPs without end meets the limit of the key, from however many addresses', async () => {
  const { apiKey } = await newAccount('Una')
  const { videoId } = (await (await ask(newAddress(), '/api/videos?title=x', { key: apiKey, method: 'PUT' })).json()) as {
    videoId: string
  }
  const answers = await times(FLOOD * 5, () => ask(newAddress(), `/api/videos/${videoId}/otp`, { key: apiKey, body: '{}' }))
  expect(count(answers)).toEqual({ 200: 5, 429: 20 })
  expect(waitOf(answers.at(-1) ?? expect.fail())).toBeGreaterThan(1700)
})

test('F6: pages, posters, docs and health have a limit each, and an unknown OTP or token counts as a guess', async () => {
  const { apiKey } = await newAccount('Una')
  const from = newAddress()
  for (const [path, status] of [
    ['/player/', 200],
    ['/docs/api/openapi.json', 200],
    ['/healthz', 200],
    [`/poster/${'A'.repeat(22)}.jpg`, 404],
  ] as const) {
    expect([path, count(await times(5, () => ask(from, path)))]).toEqual([path, { [status]: 4, 429: 1 }])
  }
  expect((await list(from, apiKey)).status).toBe(200)
  const { url } = await startReelgate({ env: { REELGATE_LIMITS: '{"redeem":{"ip":3}}' } })
  const statuses = []
  for (let i = 0; i < 4; i++) statuses.push((await fetch(`${url}/player/?otp=${String(i).padStart(64, 'A')}`)).status)
  expect(statuses).toEqual([200, 200, 200, 429])
  expect((await fetch(`${url}/player/`)).status).toBe(200)
})

describe('behind trusted proxies', () => {
  test('R03: the right-most address that is not a proxy’s counts, whatever the client wrote before it', async () => {
    const from = newAddress()
    const answers = await times(6, (i) => list(`198.51.100.${i}, ${from}, 10.9.0.${i}`, 'x'))
    expect(count(answers)).toEqual({ 401: 5, 429: 1 })
    expect((await list(`${from}, ${newAddress()}`, 'x')).status).toBe(401)
  })

  test('R04: a proxy that names no address, or a trusted one alone, is counted itself', async () => {
    const answers = await times(6, (i) =>
      list(['unknown', '127.0.0.1', '127.0.0.1, 127.0.0.1', 'x'.repeat(10_000), ',,,', '_gazonk'][i] ?? '', 'x'),
    )
    expect(count(answers)).toEqual({ 401: 5, 429: 1 })
  })

  test('R05, R06: all of a /64 are one address, and both spellings of an IPv4 one', async () => {
    const spellings = [
      '2001:db8:7:7::1',
      '[2001:db8:7:7::2]:443',
      '2001:db8:7:7:ffff:ffff:ffff:ffff',
      '2001:DB8:7:7::4',
      '2001:db8:7:7:0:0:0:5',
    ]
    expect(await statusesOf(spellings.map((from) => list(from, 'x')))).toEqual([401, 401, 401, 401, 401])
    expect(await statusesOf([list('2001:db8:7:7::6', 'x'), list('2001:db8:7:8::6', 'x')])).toEqual([429, 401])
    const mapped = ['192.0.2.77', '::ffff:192.0.2.77', '::ffff:c000:24d', '192.0.2.77:8080', '[::ffff:192.0.2.77]:1']
    expect(await statusesOf(mapped.map((from) => list(from, 'x')))).toEqual([401, 401, 401, 401, 401])
    expect((await list('192.0.2.77', 'x')).status).toBe(429)
  })
})

test('R02, R04: on a direct connection no header says where it comes from', async () => {
  const direct = await startReelgate({ env: { REELGATE_LIMITS: '{"unauthenticated":{"ip":10}}' } })
  const headers = [
    'X-Forwarded-For',
    'Forwarded',
    'X-Real-IP',
    'CF-Connecting-IP',
    'True-Client-IP',
    'X-Client-IP',
    'Client-IP',
    'X-Forwarded-For',
    'X-Forwarded-For',
    'X-Forwarded-For',
  ]
  const values = [
    '198.51.100.1',
    'for=198.51.100.2',
    '198.51.100.3',
    '198.51.100.4',
    '198.51.100.5',
    '198.51.100.6',
    '198.51.100.7',
    '127.0.0.1',
    'x'.repeat(10_000),
    '[::1]:99999, ]',
  ]
  const statuses = []
  for (const [i, name] of headers.entries())
    statuses.push((await fetch(`${direct.url}/api/videos`, { headers: { [name]: values[i] ?? '' } })).status)
  expect(statuses).toEqual(Array(10).fill(401))
  expect((await fetch(`${direct.url}/api/videos`, { headers: { 'X-Forwarded-For': '198.51.100.99' } })).status).toBe(429)
})

test('R11: a ban holds after kill -9', async () => {
  const server = await startProcess({ env: { REELGATE_LIMITS: '{"unauthenticated":{"ip":2}}' } })
  const read = () => fetch(`${server.url}/api/videos`)
  const answers = await times(FLOOD * 2, read)
  expect(count(answers)).toEqual({ 401: 2, 429: 8 })
  await server.kill()
  await server.restart()
  const banned = await read()
  expect([banned.status, waitOf(banned) > 1700]).toEqual([429, true])
  expect(server.output()).not.toContain('rate limits: off')
})

test('limits that are off are warned about at each start', async () => {
  const server = await startProcess({ env: { REELGATE_LIMITS: 'off' } })
  expect(server.output()).toContain('rate limits: off')
  await server.stop()
  await server.restart()
  expect(server.output()).toContain('rate limits: off')
  const answers = await times(20, () => fetch(`${server.url}/api/videos`))
  expect(answers.every(({ headers }) => headers.get('ratelimit') === null)).toBe(true)
})
