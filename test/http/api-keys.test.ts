import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOwner, type Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'

// API keys over the API: a program, or a person in the console, manages those of its own account.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  owner = reelgate.owner
})
afterAll(() => reelgate?.remove())

type Created = { id: string; secret: string; expiresAt: string | null }
type Listed = Omit<Created, 'secret'> & {
  name: string
  prefix: string
  permissions: string[]
  revokedAt: string | null
  lastUsedAt: string | null
}

async function ask<Reply>(method: string, path: string, body?: unknown, by = owner): Promise<Reply> {
  const response = await by.call(method, path, { body })
  expect([method, path, response.status]).toEqual([method, path, 200])
  return (await response.json()) as Reply
}
const createKey = (name: string, permissions: string[], more = {}, by = owner) =>
  ask<Created>('POST', '/api/keys', { name, permissions, ...more }, by)
const find = async (id: string) => (await ask<{ rows: Listed[] }>('GET', '/api/keys')).rows.find((key) => key.id === id)
const statusOf = async (key: string, method = 'GET', path = '/api/videos', body?: unknown) =>
  (await createOwner(reelgate.url, key).call(method, path, { body })).status

test('a new key does what it was given, and its secret is in no later answer and no row', async () => {
  const { id, secret } = await createKey('The site', ['otpCreator', 'viewer'])
  expect(secret).toMatch(/^[A-Za-z0-9]{64}$/)
  expect(await statusOf(secret)).toBe(200)
  expect(await statusOf(secret, 'DELETE', '/api/videos?videos=none')).toBe(403)
  expect(await find(id)).toMatchObject({
    name: 'The site',
    permissions: ['otpCreator', 'viewer'],
    prefix: secret.slice(0, 6),
    expiresAt: null,
  })
  const later = [
    await owner.call('GET', '/api/keys'),
    await owner.call('GET', '/api/audit-log'),
    await owner.call('GET', '/api/account'),
  ]
  for (const response of later) expect(await response.text()).not.toContain(secret)
  for (const table of ['api_key', 'audit_event', 'stored_response'])
    expect(JSON.stringify(readRows(reelgate, `select * from ${table}`))).not.toContain(secret)
})

test('a request that is sent again with its Idempotency-Key shows no secret again: it makes another key', async () => {
  const send = async () => {
    const body = { name: 'Twice', permissions: ['viewer'] }
    return (await (await owner.call('POST', '/api/keys', { body, headers: { 'Idempotency-Key': 'once' } })).json()) as Created
  }
  const [first, second] = [await send(), await send()]
  expect(second.secret).not.toBe(first.secret)
  expect(readRows(reelgate, "select 1 from stored_response where idempotency_key = 'once'")).toEqual([])
})

test('a key gives no other key a permission that it lacks, not by creating and not by rotating one', async () => {
  const { secret } = await createKey('Manager', ['editor'])
  const stronger = await createKey('Stronger', ['downloader'])
  expect(await statusOf(secret, 'POST', '/api/keys', { name: 'x', permissions: ['editor', 'downloader'] })).toBe(403)
  expect(await statusOf(secret, 'POST', `/api/keys/${stronger.id}/rotate`)).toBe(403)
  expect(await statusOf(secret, 'POST', '/api/keys', { name: 'x', permissions: ['editor'] })).toBe(200)
  for (const permissions of [[], ['everything'], 'editor'])
    expect(await statusOf(owner.apiKey, 'POST', '/api/keys', { name: 'x', permissions })).toBe(400)
})

test('a key makes no other that lasts longer than itself, not by creating and not by rotating one', async () => {
  const { secret, expiresAt } = await createKey('For an hour', ['editor'], { ttl: 3600 })
  const lasting = await createKey('For ever', ['editor'])
  const create = (more: object) => statusOf(secret, 'POST', '/api/keys', { name: 'x', permissions: ['editor'], ...more })
  expect([await create({}), await create({ ttl: 7200 }), await create({ ttl: 60 })]).toEqual([403, 403, 200])
  const rotated = await ask<Created>('POST', `/api/keys/${lasting.id}/rotate`, {}, createOwner(reelgate.url, secret))
  expect(rotated.expiresAt).toBe(expiresAt)
})

test('a key with a lifetime says when it expires, and a rotated one is valid together with its successor', async () => {
  const old = await createKey('Temporary', ['viewer'], { ttl: 3600 })
  expect(Date.parse(old.expiresAt ?? '')).toBeGreaterThan(Date.now())
  const rotated = await ask<Created & { oldExpiresAt: string }>('POST', `/api/keys/${old.id}/rotate`, { overlap: 600 })
  expect(await statusOf(old.secret)).toBe(200)
  expect(await statusOf(rotated.secret)).toBe(200)
  expect((await find(old.id))?.expiresAt).toBe(rotated.oldExpiresAt)
  expect(await find(rotated.id)).toMatchObject({ name: 'Temporary', permissions: ['viewer'] })
  await ask('POST', `/api/keys/${rotated.id}/rotate`, { overlap: 0 })
  expect(await statusOf(rotated.secret)).toBe(401)
})

test('a revoked key is refused at its next request, and stays in the list', async () => {
  const { id, secret } = await createKey('Leaked', ['viewer'])
  expect(await statusOf(secret)).toBe(200)
  expect(await ask('DELETE', `/api/keys/${id}`)).toEqual({ message: 'Revoked' })
  expect(await statusOf(secret)).toBe(401)
  expect((await find(id))?.revokedAt).toMatch(/Z$/)
  expect(await statusOf(owner.apiKey, 'DELETE', `/api/keys/${id}`)).toBe(404)
})

test('keys of another account do not exist', async () => {
  const other = await reelgate.newOwner('Another')
  const { id, secret } = await createKey('Theirs', ['viewer'], {}, other)
  expect(await find(id)).toBeUndefined()
  expect(await statusOf(owner.apiKey, 'DELETE', `/api/keys/${id}`)).toBe(404)
  expect(await statusOf(owner.apiKey, 'POST', `/api/keys/${id}/rotate`)).toBe(404)
  expect(await statusOf(secret)).toBe(200)
})
