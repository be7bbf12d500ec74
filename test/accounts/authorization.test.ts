import { Agent, request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOwner } from '../client.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
let key: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  key = reelgate.owner.apiKey
})
afterAll(() => reelgate.remove())

const list = (...headers: string[]) => sendRaw(reelgate.url, 'GET /api/videos', headers)
const wrongKey = 'x'.repeat(64)
const BAD_FORM = { message: 'Bad formatting of Authorization header', code: 'invalid', requestId: expect.any(String) }
const UNKNOWN = { message: expect.any(String), code: 'unauthenticated', requestId: expect.any(String) }

test('the documented header opens the list, with the word Apisecret in any letter case', async () => {
  for (const word of ['Apisecret', 'apisecret', 'APISECRET']) {
    const { status, text } = await list(`Authorization: ${word} ${key}`)
    expect({ status, body: JSON.parse(text) }).toEqual({ status: 200, body: { count: 0, rows: [] } })
  }
})

test('K01: without a key there are no rows', async () => {
  const { status, headers, text } = await list()
  expect(status).toBe(401)
  expect(headers.get('content-type')).toMatch(/^application\/json/)
  expect(JSON.parse(text)).toEqual(UNKNOWN)
})

type Account = { accountId: string; apiKey: string }

/** An account of its own, with what its owner sees of its key. */
async function newAccount(name: string): Promise<Account & { keyId: string }> {
  const account: Account = JSON.parse((await reelgate.cli('account', 'create', name, '--json')).stdout)
  const [key]: [{ id: string }] = JSON.parse((await reelgate.cli('key', 'list', account.accountId, '--json')).stdout)
  return { ...account, keyId: key.id }
}

test('K01: every wrong key gets the same response of the same length, however close to a valid one it is', async () => {
  const { keyId, apiKey: revoked } = await newAccount('for a day')
  expect((await reelgate.cli('key', 'revoke', keyId)).code).toBe(0)

  const firstWrong = (key.startsWith('a') ? 'b' : 'a') + key.slice(1)
  const lastWrong = key.slice(0, -1) + (key.endsWith('a') ? 'b' : 'a')
  const wrong = [wrongKey, firstWrong, lastWrong, key.slice(1), `${key}a`, 'short', "' or 1=1 --", `${key},${key}`, revoked]
  const answers = await Promise.all(wrong.map((text) => list(`Authorization: Apisecret ${text.replaceAll(' ', '')}`)))
  for (const { status, text } of answers) {
    expect(status).toBe(401)
    expect(JSON.parse(text)).toEqual(UNKNOWN)
  }
  expect(new Set(answers.map(({ text }) => text.replace(/"requestId":"[^"]*"/, ''))).size).toBe(1)
  expect(new Set(answers.map(({ text }) => text.length)).size).toBe(1)
})

describe('K02: a header of another form is 400 and says so', () => {
  test.each([
    ['no key after the word', () => 'Apisecret '],
    ['the word alone', () => 'Apisecret'],
    ['two spaces', () => `Apisecret  ${key}`],
    ['a tab instead of the space', () => `Apisecret\t${key}`],
    ['Bearer', () => `Bearer ${key}`],
    ['Basic', () => `Basic ${Buffer.from(`${key}:`).toString('base64')}`],
    ['the key alone', () => key],
    ['empty', () => ''],
    ['words after the key', () => `Apisecret ${key} x`],
  ])('%s', async (_, value) => {
    const { status, text } = await list(`Authorization: ${value()}`)
    expect({ status, body: JSON.parse(text) }).toEqual({ status: 400, body: BAD_FORM })
  })
})

describe('K03: two Authorization headers are refused, whichever is right', () => {
  test.each([
    ['right, wrong', () => [`Authorization: Apisecret ${key}`, `Authorization: Apisecret ${wrongKey}`]],
    ['wrong, right', () => [`Authorization: Apisecret ${wrongKey}`, `Authorization: Apisecret ${key}`]],
    ['the right one twice', () => [`Authorization: Apisecret ${key}`, `authorization: Apisecret ${key}`]],
    ['joined by a comma', () => [`Authorization: Apisecret ${key}, Apisecret ${key}`]],
  ])('%s', async (_, headers) => {
    const { status, text } = await list(...headers())
    expect({ status, body: JSON.parse(text) }).toEqual({ status: 400, body: BAD_FORM })
  })
})

// Blanks and tabs around a field's value are no part of it (RFC 9110, section 5.5): Node takes them away before anyone sees them.
test.each([
  ['a NUL', '\0'],
  ['a line feed', '\n'],
  ['a carriage return', '\r'],
  ['a tab and more', '\tx'],
  ['a letter of Latin-1', 'é'],
])('K04: a right key followed by %s does not open', async (_, tail) => {
  const { status, text } = await list(`Authorization: Apisecret ${key}${tail}`)
  expect([400, 401]).toContain(status)
  expect(text).not.toContain('rows')
})

test('K09: a key revoked a moment ago is refused at the next request of the same connection', async () => {
  const account = await newAccount('short-lived')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = () =>
    new Promise<{ status: number | undefined; reused: boolean }>((resolve, reject) => {
      const headers = { Authorization: `Apisecret ${account.apiKey}` }
      const sent = httpRequest(`${reelgate.url}/api/videos`, { agent, headers }, (answer) => {
        answer.resume().once('end', () => resolve({ status: answer.statusCode, reused: sent.reusedSocket }))
      })
      sent.once('error', reject).end()
    })
  expect(await ask()).toEqual({ status: 200, reused: false })
  await reelgate.cli('key', 'revoke', account.keyId)
  expect(await ask()).toEqual({ status: 401, reused: true })
  agent.destroy()
})

test('K11: a key that may only read cannot delete, ask for an upload or issue an OTP, and nothing happens', async () => {
  const account = await newAccount('with a reader')
  const owner = createOwner(reelgate.url, account.apiKey)
  const { videoId } = await owner.credentials('Not to be touched')
  const made = await reelgate.cli('key', 'create', account.accountId, '--permission', 'viewer', '--json')
  const { apiKey: reader }: { apiKey: string } = JSON.parse(made.stdout)
  const refused = [`DELETE /api/videos?videos=${videoId}`, 'PUT /api/videos?title=x', `POST /api/videos/${videoId}/otp`].map(
    (line) => sendRaw(reelgate.url, line, [`Authorization: Apisecret ${reader}`]),
  )
  for (const { status, text } of await Promise.all(refused)) {
    expect(status).toBe(403)
    expect(JSON.parse(text)).toEqual({ message: expect.any(String), code: 'forbidden', requestId: expect.any(String) })
  }
  const { count, rows } = await owner.list()
  expect({ count, ids: rows.map((row) => row.id) }).toEqual({ count: 1, ids: [videoId] })
})

test('K14: a key in the address, where logs keep it, does not open', async () => {
  const { host } = new URL(reelgate.url)
  const { status } = await sendRaw(reelgate.url, `GET http://${key}@${host}/api/videos`)
  expect(status).not.toBe(200)
})

test('K01: the two routes that ask for no key, those of the demo video, answer no stranger, whatever key they show', async () => {
  const withDemo = await startReelgate({ env: { REELGATE_DEMO: 'on' } })
  const video = () => sendRaw(withDemo.url, 'GET /api/site/homepage_video')
  await expect.poll(async () => (await video()).status).toBe(200)
  const right = `Authorization: Apisecret ${withDemo.owner.apiKey}`
  for (const credential of [[], [right], [`Authorization: Apisecret ${wrongKey}`], ['Authorization: Bearer x'], [right, right]]) {
    for (const path of ['/demo', '/api/site/homepage_video']) {
      const here = await sendRaw(withDemo.url, `GET ${path}`, credential)
      const stranger = await sendRaw(withDemo.url, `GET ${path}`, [...credential, 'X-Forwarded-For: 192.0.2.1'])
      expect({ path, credential, here: here.status, stranger: stranger.status }).toMatchObject({ here: 200, stranger: 404 })
    }
  }
  for (const path of ['/api/site', '/api/site/videos', '/api/site/homepage_video/x', '/demo/x'])
    expect((await sendRaw(withDemo.url, `GET ${path}`)).status).not.toBe(200)
  for (const method of ['POST', 'PUT', 'DELETE'])
    expect((await sendRaw(withDemo.url, `${method} /api/site/homepage_video`)).status).toBeGreaterThanOrEqual(400)
})
