import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOwner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { createPerson, type Person, signIn } from './person.ts'

// The accounts of an installation, and what its administrator does in those of others.

let reelgate: Reelgate & { remove(): Promise<void> }
let admin: Person
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  admin = await signIn(reelgate)
})
afterAll(() => reelgate?.remove())

type Account = { id: string; name: string; disabled: boolean; limitFactor: number; mayUpload: boolean; pageMax: number }
type Events = { rows: { kind: string; actor: { type: string; name: string | null }; details: Record<string, unknown> | null }[] }

const newAccount = (name: string, more = {}) => admin.get<Account>('POST', '/accounts', { name, ...more })

/** A browser of the administrator that looks into an account. */
async function lookInto(account: string): Promise<Person> {
  const person = await signIn(reelgate)
  await person.get('PUT', '/sign-in/account', { account })
  return person
}

async function inviteOwner(by: Person, name: string): Promise<Person> {
  const { link } = await by.get<{ link: { url: string } }>('POST', '/users', { name, role: 'owner' })
  const person = createPerson(reelgate.url)
  await person.get('POST', '/sign-in/link', { token: link.url.split('#')[1] })
  return person
}

test('an administrator makes an account and its first owner, who makes a key; each account sees only its own', async () => {
  const { id } = await newAccount('A school')
  const ann = await inviteOwner(await lookInto(id), 'ann@school.example')
  expect(await ann.whoIs()).toMatchObject({
    account: { id, name: 'A school', own: true },
    accounts: [{ id, name: 'A school' }],
    user: { administrator: false },
  })
  const permissions = ['viewer', 'uploader', 'editor']
  const { secret } = await ann.get<{ secret: string }>('POST', '/keys', { name: 'The site', permissions })
  await createOwner(reelgate.url, secret).credentials('Of the school')
  expect(await ann.get('GET', '/videos')).toMatchObject({ count: 1 })
  expect((await reelgate.owner.list()).count).toBe(0)
})

test('what an administrator looks at is in the audit log of that account, with the administrator’s name, and in no other', async () => {
  const { id } = await newAccount('Looked at')
  const ben = await inviteOwner(await lookInto(id), 'ben@example.org')
  const guest = await lookInto(id)
  expect(await guest.whoIs()).toMatchObject({ account: { id, own: false } })
  await guest.get('PUT', '/videos?title=Made%20by%20the%20administrator')
  expect(await ben.get('GET', '/videos')).toMatchObject({ count: 1 })

  const looks = (await ben.get<Events>('GET', '/audit-log')).rows.filter(({ kind }) => kind === 'account:looked-at')
  expect(looks).toHaveLength(2)
  expect(looks[0]).toMatchObject({ actor: { type: 'user', name: 'owner' } })
  const own = (await admin.get<Events>('GET', '/audit-log')).rows
  expect(own.filter(({ kind }) => kind === 'account:looked-at')).toEqual([])

  await guest.get('PUT', '/sign-in/account', { account: (await admin.get<Account>('GET', '/account')).id })
  expect(await guest.whoIs()).toMatchObject({ account: { own: true } })
})

test('an administrator who is one no more is signed out of the account that was looked at', async () => {
  const { id } = await admin.get<{ id: string }>('POST', '/users', { name: 'For a while', role: 'owner', administrator: 1 })
  const { link } = await admin.get<{ link: { url: string } }>('POST', `/users/${id}/link`)
  const person = createPerson(reelgate.url)
  await person.get('POST', '/sign-in/link', { token: link.url.split('#')[1] })
  const { id: account } = await newAccount('Not for long')
  await person.get('PUT', '/sign-in/account', { account })
  expect((await person.ask('GET', '/videos')).status).toBe(200)
  await admin.get('PUT', `/users/${id}`, { administrator: 0 })
  expect((await person.ask('GET', '/videos')).status).toBe(401)
})

test('an owner who is no administrator sees and changes no account, and looks into none', async () => {
  const [mine, other] = [await newAccount('Mine'), await newAccount('Another')]
  const ann = await inviteOwner(await lookInto(mine.id), 'ann')
  for (const [method, path, body] of [
    ['GET', '/accounts', undefined],
    ['POST', '/accounts', { name: 'x' }],
    ['PUT', `/accounts/${mine.id}`, { limitFactor: 1000 }],
    ['PUT', '/sign-in/account', { account: other.id }],
    ['PUT', '/sign-in/account', { account: '0'.repeat(32) }],
  ] as const)
    expect([method, path, (await ann.ask(method, path, { body })).status]).toEqual([method, path, 403])
  expect(await ann.whoIs()).toMatchObject({ account: { id: mine.id } })
  expect((await admin.ask('PUT', '/sign-in/account', { body: { account: '0'.repeat(32) } })).status).toBe(404)
})

test('an administrator changes limits and switches of an account; what is not named stays', async () => {
  const { id } = await newAccount('Small', { mayImport: 0 })
  const changed = await admin.get<Account>('PUT', `/accounts/${id}`, {
    limitFactor: 4,
    pageMax: 100,
    mayUpload: 0,
    videosCount: 7,
  })
  expect(changed).toMatchObject({
    id,
    name: 'Small',
    limitFactor: 4,
    pageMax: 100,
    mayUpload: false,
    mayImport: false,
    videosCount: 0,
  })
  expect((await admin.get<{ rows: Account[] }>('GET', '/accounts')).rows).toContainEqual(changed)
  expect((await admin.ask('PUT', `/accounts/${'0'.repeat(32)}`, { body: { name: 'x' } })).status).toBe(404)
})

test('a disabled account refuses its people and keys until it is enabled; the administrator’s own is not disabled by accident', async () => {
  const { id } = await newAccount('Late with its bill')
  const ann = await inviteOwner(await lookInto(id), 'ann of the bill')
  const { secret } = await ann.get<{ secret: string }>('POST', '/keys', { name: 'The site', permissions: ['viewer'] })
  const site = createOwner(reelgate.url, secret)
  expect(await admin.get('PUT', `/accounts/${id}`, { disabled: 1 })).toMatchObject({ disabled: true })
  expect((await ann.ask('GET', '/videos')).status).toBe(403)
  expect((await site.call('GET', '/api/videos')).status).toBe(403)
  await admin.get('PUT', `/accounts/${id}`, { disabled: 0 })
  expect((await ann.ask('GET', '/videos')).status).toBe(200)
  expect((await site.call('GET', '/api/videos')).status).toBe(200)

  const own = await admin.get<Account>('GET', '/account')
  expect((await admin.ask('PUT', `/accounts/${own.id}`, { body: { disabled: 1 } })).status).toBe(409)
})
