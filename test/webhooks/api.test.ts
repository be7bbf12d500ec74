import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { type Receivers, startReceivers, type WebhookBody, webhooksOf } from './receiver.ts'

// What an owner does with webhooks over the current interface.

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host, REELGATE_LOG_LEVEL: 'trace' } })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

const NO_SUCH = '0123456789abcdef'.repeat(2)

test('a webhook is made, listed, switched off and on, and deleted, in the form of the contract', async () => {
  const owner = await reelgate.newOwner('has webhooks')
  const webhooks = webhooksOf(owner)
  const { url } = receivers.newReceiver()
  expect(await webhooks.list()).toEqual([])
  const { secret: _, ...made } = await webhooks.create(url)
  expect(made).toEqual({
    uuid: expect.stringMatching(/^[0-9a-f]{32}$/),
    type: 'http',
    value: url,
    event: '*',
    status: 1,
    failingSince: null,
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/),
  })
  const { secret: __, ...second } = await webhooks.create(`${url}?a=1&b=2`, 'video:ready')
  expect(second).toMatchObject({ event: 'video:ready', value: `${url}?a=1&b=2` })
  const byId = (a: WebhookBody, b: WebhookBody) => a.uuid.localeCompare(b.uuid)
  expect((await webhooks.list()).sort(byId)).toEqual([made, second].sort(byId))
  expect(await webhooks.set(made.uuid, 0)).toEqual({ ...made, status: 0, statusReason: 'It was switched off.' })
  expect(await webhooks.set(made.uuid, 1)).toEqual(made)
  expect(await webhooks.remove(made.uuid)).toEqual({ message: 'Deleted' })
  expect(await webhooks.list()).toEqual([second])
})

test('W18: a webhook that names its address as url is made; events and fields that nearly name one are refused with what to send', async () => {
  const owner = await reelgate.newOwner('guesses names')
  const { url } = receivers.newReceiver()
  const post = async (body: Record<string, unknown>) => {
    const response = await owner.call('POST', '/api/hooks', { body })
    const { message, value, event } = (await response.json()) as { message?: string; value?: string; event?: string }
    return { status: response.status, message, value, event }
  }
  const made = { status: 200, value: url, event: 'video:ready' }
  expect(await post({ url, event: 'video:ready', description: 'for the shop', enabled_events: [], name: 'shop' })).toMatchObject(
    made,
  )
  expect(await post({ url, value: url, event: 'video:ready' })).toMatchObject(made)
  const refused: [Record<string, unknown>, RegExp][] = [
    [{ url, events: ['video:ready'] }, /no "events": a webhook has one event, or all\. Send "event": one of video:ready/],
    [{ value: url, events: 'video:ready' }, /Send "event"/],
    [{ url, Event: 'video:ready' }, /no "Event"\. Write "event"/],
    [{ url, evnets: 'video:ready' }, /Write "event"/],
    [{ URL: url }, /no "URL"\. Write "url"/],
    [{ valeu: url }, /no "valeu"\. Write "value"/],
    [{ url, Status: 0 }, /Write "status"/],
    [{ event: 'video:ready' }, /Send "value" or "url"/],
    [{ url, value: `${url}/other` }, /differ/],
  ]
  for (const [body, message] of refused)
    expect(await post(body), JSON.stringify(body)).toMatchObject({ status: 400, message: expect.stringMatching(message) })
  expect(await webhooksOf(owner).list()).toHaveLength(2)
})

test('forms say the same as JSON, and what a form leaves out is what the contract says', async () => {
  const owner = await reelgate.newOwner('sends forms')
  const { url } = receivers.newReceiver()
  const headers = { Authorization: `Apisecret ${owner.apiKey}` }
  const send = (method: string, path: string, fields: Record<string, string>) =>
    fetch(`${reelgate.url}/api/hooks${path}`, { method, headers, body: new URLSearchParams(fields) })
  const made = await send('POST', '/', { type: 'http', value: url, event: 'video:failed', status: '1' })
  expect(made.status).toBe(200)
  const { uuid } = (await made.json()) as WebhookBody
  const bare = (await (await send('POST', '', { value: url, event: '' })).json()) as WebhookBody
  expect(bare).toMatchObject({ type: 'http', event: '*', status: 1 })
  const off = (await (await send('POST', '', { value: url, status: '0' })).json()) as WebhookBody
  expect(off).toMatchObject({ status: 0, statusReason: 'It was switched off.' })
  expect(await (await send('PUT', `/${uuid}`, { status: '0' })).json()).toMatchObject({ status: 0 })
  for (const webhook of [uuid, bare.uuid, off.uuid])
    expect(await (await send('DELETE', '', { uuid: webhook })).json()).toEqual({ message: 'Deleted' })
  expect(await webhooksOf(owner).list()).toEqual([])
})

test.each([
  ['an address that is none', { value: 'not an address' }, 400, /whole address/],
  ['no address', {}, 400, /value/],
  ['another type', { type: 'mail', value: 'https://example.com/' }, 400, /type/],
  ['an event that does not exist', { value: 'https://example.com/', event: 'video:played' }, 400, /video:readyall/],
  ['a status that is none', { value: 'https://example.com/', status: 2 }, 400, /status/],
])('a webhook with %s is refused in words', async (_, body, status, words) => {
  const answer = await reelgate.owner.call('POST', '/api/hooks', { body })
  expect(answer.status).toBe(status)
  expect(await answer.json()).toMatchObject({ message: expect.stringMatching(words), code: 'invalid' })
})

const CALLS: Record<string, (owner: Owner, uuid: string) => Promise<Response>> = {
  'DELETE /hooks': (owner, uuid) => owner.call('DELETE', '/api/hooks', { body: { uuid } }),
  'PUT /hooks/{uuid}': (owner, uuid) => owner.call('PUT', `/api/hooks/${uuid}`, { body: { status: 0 } }),
  'POST /hooks/{uuid}/secret': (owner, uuid) => owner.call('POST', `/api/hooks/${uuid}/secret`),
  'GET /hooks/{uuid}/deliveries': (owner, uuid) => owner.call('GET', `/api/hooks/${uuid}/deliveries`),
  'POST /hooks/{uuid}/deliveries/replay': (owner, uuid) => owner.call('POST', `/api/hooks/${uuid}/deliveries/replay`),
  'POST /hooks/{uuid}/deliveries/1/replay': (owner, uuid) => owner.call('POST', `/api/hooks/${uuid}/deliveries/1/replay`),
}

test.each(Object.entries(CALLS))(
  'K07: %s answers for another account’s webhook as for none, and changes nothing',
  async (_, call) => {
    const [ann, ben] = [await reelgate.newOwner('Ann'), await reelgate.newOwner('Ben')]
    const { uuid, secret: __, ...webhook } = await webhooksOf(ben).create(receivers.newReceiver().url)
    const { videoId } = await ben.credentials('Gone')
    await ben.delete([videoId])
    await webhooksOf(ben).untilNewest(uuid, 'delivered')
    const before = readRows(reelgate, 'select * from delivery where webhook_id = ?', uuid)
    const answers = [await call(ann, uuid), await call(ann, NO_SUCH)]
    for (const answer of answers) {
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ message: 'Webhook not found', code: 'not-found' })
    }
    expect(await webhooksOf(ben).list()).toEqual([{ uuid, ...webhook }])
    expect(readRows(reelgate, 'select * from delivery where webhook_id = ?', uuid)).toEqual(before)
  },
)

test('K11: a key that may only read sees webhooks and their log, and changes nothing', async () => {
  const owner = await reelgate.newOwner('has a reader')
  const [account] = readRows<{ id: string }>(reelgate, "select id from account where name = 'has a reader'")
  const { stdout } = await reelgate.cli('key', 'create', account?.id ?? '', '--permission', 'viewer', '--json')
  const { apiKey }: { apiKey: string } = JSON.parse(stdout)
  const call = (method: string, path: string, body?: unknown) =>
    owner.call(method, `/api/hooks${path}`, { body, headers: { Authorization: `Apisecret ${apiKey}` } })
  const { uuid } = await webhooksOf(owner).create(receivers.newReceiver().url)
  expect((await call('GET', '')).status).toBe(200)
  expect((await call('GET', `/${uuid}/deliveries`)).status).toBe(200)
  const refused = [
    await call('POST', '', { value: receivers.newReceiver().url }),
    await call('DELETE', '', { uuid }),
    await call('PUT', `/${uuid}`, { status: 0 }),
    await call('POST', `/${uuid}/secret`),
    await call('POST', `/${uuid}/deliveries/replay`),
    await call('POST', `/${uuid}/deliveries/1/replay`),
  ]
  expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 403))
  expect(await webhooksOf(owner).list()).toHaveLength(1)
})

test('W10: a secret is shown once, has 32 random bytes, is each webhook’s own, and is in no response, log or backup', async () => {
  const owner = await reelgate.newOwner('keeps secrets')
  const webhooks = webhooksOf(owner)
  const receiver = receivers.newReceiver()
  const secrets: string[] = []
  for (let n = 0; n < 5; n++) {
    const made = await webhooks.create(receiver.url)
    secrets.push(made.secret, await webhooks.rotate(made.uuid))
  }
  expect(new Set(secrets).size).toBe(10)
  for (const secret of secrets) expect(Buffer.from(/^whsec_(.+)$/.exec(secret)?.[1] ?? '', 'base64')).toHaveLength(32)
  const { videoId } = await owner.credentials('Gone')
  await owner.delete([videoId])
  await receiver.until(5)
  const { rows } = await webhooks.deliveries((await webhooks.list())[0]?.uuid ?? '')
  const responses = [
    JSON.stringify(await webhooks.list()),
    JSON.stringify(rows),
    (await reelgate.cli('webhook', 'list', 'keeps secrets')).stdout,
  ]
  const files = await readdir(reelgate.dataDir, { recursive: true, withFileTypes: true })
  const texts = await Promise.all(files.filter((file) => file.isFile()).map((file) => readFile(join(file.parentPath, file.name))))
  const locations = [...responses, reelgate.output(), ...receiver.received.map(({ body }) => body)].map((text) =>
    Buffer.from(text),
  )
  for (const secret of secrets) {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    for (const location of [...locations, ...texts])
      for (const form of [Buffer.from(secret), Buffer.from(secret.slice(6)), Buffer.from(key.toString('hex')), key])
        expect(location.includes(form)).toBe(false)
  }
})

test('a call that makes a webhook under an Idempotency-Key makes one, and gets the same secret again', async () => {
  const owner = await reelgate.newOwner('asks twice')
  const body = { value: receivers.newReceiver().url }
  const ask = () => owner.call('POST', '/api/hooks', { body, headers: { 'Idempotency-Key': 'one-hook' } })
  const answers = await Promise.all([ask(), ask(), ask()])
  const texts = await Promise.all([...answers, await ask()].map((answer) => answer.text()))
  expect(new Set(texts).size).toBe(1)
  expect(texts[0]).toContain('whsec_')
  expect(await webhooksOf(owner).list()).toHaveLength(1)
})

test('an account has at most twenty webhooks', async () => {
  const owner = await reelgate.newOwner('wants more')
  const { url } = receivers.newReceiver()
  const asked = await Promise.all(Array.from({ length: 25 }, () => owner.call('POST', '/api/hooks', { body: { value: url } })))
  expect(asked.map(({ status }) => status).sort()).toEqual([...Array(20).fill(200), ...Array(5).fill(409)])
  expect(await webhooksOf(owner).list()).toHaveLength(20)
})

test('the log shows what was sent, newest first, by pages; a replay sends the same delivery once more', async () => {
  const owner = await reelgate.newOwner('reads logs')
  const webhooks = webhooksOf(owner)
  const receiver = receivers.newReceiver()
  const { uuid } = await webhooks.create(receiver.url)
  const videoIds: string[] = []
  for (let n = 0; n < 5; n++) videoIds.push((await owner.credentials(`Video ${n}`)).videoId)
  await owner.delete(videoIds)
  await webhooks.untilNewest(uuid, 'delivered')
  const { count, rows } = await webhooks.deliveries(uuid, '?limit=2&page=2')
  expect(count).toBe(5)
  expect(rows.map(({ id }) => id)).toEqual([3, 2])
  expect(rows[0]).toEqual({
    id: 3,
    webhookId: `msg_${uuid}_3`,
    event: 'video:deleted',
    state: 'delivered',
    attempts: 1,
    time: receiver.received[2]?.event.time,
    triedAt: expect.any(String),
    dueAt: null,
    responseStatus: 204,
    problem: null,
    body: receiver.received[2]?.body,
  })
  expect(await webhooks.replay(uuid, 3)).toEqual({ message: 'Queued', count: 1 })
  const again = (await receiver.until(6))[5]
  expect(again?.body).toBe(receiver.received[2]?.body)
  expect(again?.headers['webhook-id']).toBe(`msg_${uuid}_3`)
  for (const id of ['6', '0', '-1', 'x', '9'.repeat(30)]) {
    const answer = await owner.call('POST', `/api/hooks/${uuid}/deliveries/${id}/replay`)
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({ message: 'Delivery not found' })
  }
})

test('a deleted webhook is sent nothing more and leaves no row; what happens while it is off is listed as failed, and may be replayed', async () => {
  const owner = await reelgate.newOwner('switches')
  const webhooks = webhooksOf(owner)
  const receiver = receivers.newReceiver()
  const { uuid } = await webhooks.create(receiver.url)
  await webhooks.set(uuid, 0)
  const ids = [(await owner.credentials('One')).videoId, (await owner.credentials('Two')).videoId]
  await owner.delete(ids)
  const { rows } = await webhooks.deliveries(uuid)
  expect(rows.map(({ state, attempts, problem }) => [state, attempts, problem])).toEqual([
    ['failed', 0, 'It was switched off.'],
    ['failed', 0, 'It was switched off.'],
  ])
  const early = await owner.call('POST', `/api/hooks/${uuid}/deliveries/replay`)
  expect([early.status, await early.json()]).toEqual([409, expect.objectContaining({ code: 'conflict' })])
  await webhooks.set(uuid, 1)
  expect(await webhooks.replay(uuid)).toEqual({ message: 'Queued', count: 2 })
  expect((await receiver.until(2)).map(({ event }) => event.sequence)).toEqual([1, 2])
  await webhooks.remove(uuid)
  expect(readRows(reelgate, 'select * from delivery where webhook_id = ?', uuid)).toEqual([])
  expect(readRows(reelgate, 'select * from webhook where id = ?', uuid)).toEqual([])
})

test('who makes, switches, rotates and deletes a webhook is on record', async () => {
  const owner = await reelgate.newOwner('is on record')
  const webhooks = webhooksOf(owner)
  const { uuid } = await webhooks.create(receivers.newReceiver().url)
  await webhooks.set(uuid, 0)
  await webhooks.set(uuid, 1)
  await webhooks.rotate(uuid)
  await webhooks.remove(uuid)
  const kinds = readRows<{ kind: string }>(reelgate, 'select kind from audit_event where subject = ? order by id', uuid)
  expect(kinds.map(({ kind }) => kind)).toEqual(['hook:created', 'hook:disabled', 'hook:enabled', 'hook:rotated', 'hook:deleted'])
})

test('reelgate webhook list names an account’s webhooks', async () => {
  const owner = await reelgate.newOwner('lists')
  const { url } = receivers.newReceiver()
  const { uuid } = await webhooksOf(owner).create(url, 'video:ready')
  const { code, stdout } = await reelgate.cli('webhook', 'list', 'lists', '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual([{ id: uuid, url, event: 'video:ready', status: 'on' }])
})

test('a test event is sent immediately, signed like any other, also while the webhook is off, and is not listed', async () => {
  const owner = await reelgate.newOwner('tries a webhook')
  const webhooks = webhooksOf(owner)
  const receiver = receivers.newReceiver()
  const { uuid, secret } = await webhooks.create(receiver.url)
  await webhooks.set(uuid, 0)
  const send = async () => (await owner.call('POST', `/api/hooks/${uuid}/test`)).json()
  expect(await send()).toEqual({ status: 204, problem: null })
  const [{ headers, body, event } = { headers: {}, body: '', event: undefined }] = await receiver.until(1)
  expect(event).toMatchObject({ hookId: uuid, event: 'test', payload: {} })
  new Webhook(secret).verify(body, headers as Record<string, string>)
  receiver.answer((response) => response.writeHead(500).end())
  expect(await send()).toEqual({ status: 500, problem: 'The endpoint returned 500.' })
  const deliveries = await owner.call('GET', `/api/hooks/${uuid}/deliveries`)
  expect(await deliveries.json()).toMatchObject({ count: 0 })
  const command = (webhookId: string) => sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'webhook test', { webhookId })
  expect(await command(uuid)).toMatchObject({ status: 500 })
  await expect(command(NO_SUCH)).rejects.toThrow('There is no webhook')
})
