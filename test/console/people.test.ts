import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { createPerson, type Person, signIn } from './person.ts'

// The people of an account: who invites whom, what each may do, and how their access ends.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Person
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  owner = await signIn(reelgate)
})
afterAll(() => reelgate?.remove())

type Invitation = { id: string; link: { url: string; expiresAt: string } }
type Listed = { id: string; name: string; role: string; administrator: boolean; disabled: boolean; hasPassword: boolean }
type Invited = { id: string; person: Person }

/** Invites a person, who opens the link. */
async function invite(by: Person, name: string, role: 'owner' | 'viewer' = 'owner', more = {}): Promise<Invited> {
  const { id, link } = await by.get<Invitation>('POST', '/users', { name, role, ...more })
  return { id, person: await openLink(link.url) }
}

async function openLink(url: string): Promise<Person> {
  const person = createPerson(reelgate.url)
  await person.get('POST', '/sign-in/link', { token: url.split('#')[1] })
  return person
}

const listPeople = async (by: Person) => (await by.get<{ rows: Listed[] }>('GET', '/users')).rows
const statusOf = async (by: Person, method: string, path: string, body?: unknown) => (await by.ask(method, path, { body })).status

test('an invited viewer opens the link once, sets a password, reads, and changes nothing', async () => {
  const { id, link } = await owner.get<Invitation>('POST', '/users', { name: 'Eve@example.org', role: 'viewer' })
  expect(link.url).toMatch(/^http:\/\/localhost:\d+\/console\/link#[A-Za-z0-9]{64}$/)
  const eve = await openLink(link.url)
  await expect(openLink(link.url)).rejects.toThrow('401')
  await eve.get('PUT', '/sign-in/password', { password: 'a lamp in the projection room' })
  expect(await eve.whoIs()).toMatchObject({ user: { id, name: 'Eve@example.org', role: 'viewer' }, permissions: ['viewer'] })

  expect(await statusOf(eve, 'GET', '/videos')).toBe(200)
  for (const [method, path, body] of [
    ['PUT', '/videos?title=x', undefined],
    ['POST', '/keys', { name: 'x', permissions: ['viewer'] }],
    ['GET', '/keys', undefined],
    ['GET', '/users', undefined],
    ['POST', '/users', { name: 'x', role: 'viewer' }],
    ['PUT', `/users/${id}`, { role: 'owner' }],
    ['PUT', '/account', { streamLimit: 1 }],
    ['GET', '/audit-log', undefined],
    ['GET', '/accounts', undefined],
  ] as const)
    expect([method, path, await statusOf(eve, method, path, body)]).toEqual([method, path, 403])

  const again = createPerson(reelgate.url)
  await again.get('POST', '/sign-in', { name: 'eve@EXAMPLE.org', password: 'a lamp in the projection room' })
  expect(await listPeople(owner)).toContainEqual(
    expect.objectContaining({ id, role: 'viewer', hasPassword: true, passkeys: 0, lastSeenAt: expect.stringMatching(/Z$/) }),
  )
})

test('a name exists once in the installation, in upper or lower case', async () => {
  const { id } = await owner.get<Invitation>('POST', '/users', { name: 'Once', role: 'viewer' })
  expect(await statusOf(owner, 'POST', '/users', { name: 'ONCE', role: 'viewer' })).toBe(409)
  expect(await statusOf(owner, 'PUT', `/users/${id}`, { name: 'once' })).toBe(200)
  expect(await statusOf(owner, 'PUT', `/users/${id}`, { name: 'owner' })).toBe(409)
  expect(await statusOf(owner, 'POST', '/users', { name: ' \n', role: 'viewer' })).toBe(400)
})

test.each([
  ['a letter of another alphabet', 'Zoe@example.org', 'Zoе@example.org'],
  ['compatible letters', 'Yann', 'Ｙａｎｎ'],
  ['a digit', 'xoo1', 'x00l'],
  ['an upper-case i for an l', 'wally', 'waIly'],
  ['an invisible character', 'Vera', 'Ve\u200bra'],
  ['letters that look like one', 'umber', 'urnber'],
  ['a space of another width', 'T T', 'T\u2003T'],
])('D23: a name that is mistaken for another person’s is refused: %s', async (_, name, lookalike) => {
  const { id } = await owner.get<Invitation>('POST', '/users', { name, role: 'viewer' })
  expect(await statusOf(owner, 'POST', '/users', { name: lookalike, role: 'viewer' })).toBe(409)
  const other = await owner.get<Invitation>('POST', '/users', { name: `not ${name}`, role: 'viewer' })
  expect(await statusOf(owner, 'PUT', `/users/${other.id}`, { name: lookalike })).toBe(409)
  expect(await statusOf(owner, 'PUT', `/users/${id}`, { name: lookalike })).toBe(200) // their own
})

test('a change of the role applies to the next request; who is disabled or deleted is out, with every link', async () => {
  const { id, person } = await invite(owner, 'Changing')
  expect(await statusOf(person, 'GET', '/keys')).toBe(200)
  await owner.get('PUT', `/users/${id}`, { role: 'viewer' })
  expect(await statusOf(person, 'GET', '/keys')).toBe(403)
  expect(await statusOf(person, 'GET', '/videos')).toBe(200)

  const { link } = await owner.get<Invitation>('POST', `/users/${id}/link`)
  await owner.get('PUT', `/users/${id}`, { disabled: 1 })
  expect(await statusOf(person, 'GET', '/videos')).toBe(401)
  await expect(openLink(link.url)).rejects.toThrow('401')
  expect(await statusOf(owner, 'POST', `/users/${id}/link`)).toBe(403)
  await owner.get('PUT', `/users/${id}`, { disabled: 0 })
  expect(await statusOf(person, 'GET', '/videos')).toBe(401)

  const back = await openLink((await owner.get<Invitation>('POST', `/users/${id}/link`)).link.url)
  await owner.get('DELETE', `/users/${id}`)
  expect(await statusOf(back, 'GET', '/videos')).toBe(401)
  expect(await statusOf(owner, 'DELETE', `/users/${id}`)).toBe(404)
})

describe('who manages whom', () => {
  test('no one changes their own access, so that an owner cannot lock themselves out', async () => {
    const { id, person } = await invite(owner, 'Alone')
    for (const change of [{ role: 'viewer' }, { disabled: 1 }])
      expect([change, await statusOf(person, 'PUT', `/users/${id}`, change)]).toEqual([change, 409])
    expect(await statusOf(person, 'DELETE', `/users/${id}`)).toBe(409)
    expect(await statusOf(person, 'PUT', `/users/${id}`, { name: 'Still alone' })).toBe(200)
  })

  test('of two owners who remove each other at the same time, one remains; so does the last administrator', async () => {
    const fresh = await startReelgate()
    const first = await signIn(fresh)
    const user = (await first.get<{ user: { id: string } }>('GET', '/sign-in')).user.id
    const { id, link } = await first.get<Invitation>('POST', '/users', { name: 'Second', role: 'owner', administrator: 1 })
    const second = createPerson(fresh.url)
    await second.get('POST', '/sign-in/link', { token: link.url.split('#')[1] })
    await Promise.all([
      first.ask('PUT', `/users/${id}`, { body: { disabled: 1 } }),
      second.ask('PUT', `/users/${user}`, { body: { disabled: 1 } }),
    ])
    expect(readRows(fresh, 'select id from console_user where disabled = 0 and is_administrator = 1')).toHaveLength(1)
  })

  test('the last owner of an account is removed by no administrator either, nor demoted or disabled', async () => {
    const admin = await signIn(reelgate)
    const account = await admin.get<{ id: string }>('POST', '/accounts', { name: 'With one owner' })
    await admin.get('PUT', '/sign-in/account', { account: account.id })
    const { id } = await invite(admin, 'The only owner')
    for (const change of [{ role: 'viewer' }, { disabled: true }])
      expect([change, await statusOf(admin, 'PUT', `/users/${id}`, change)]).toEqual([change, 409])
    expect(await statusOf(admin, 'DELETE', `/users/${id}`)).toBe(409)
    expect(await listPeople(admin)).toEqual([expect.objectContaining({ id, role: 'owner', disabled: false })])
    await invite(admin, 'Another owner')
    expect(await statusOf(admin, 'DELETE', `/users/${id}`)).toBe(200)
  })

  test('an owner neither makes an administrator, nor gets a link of one, nor changes or deletes one', async () => {
    const { id: ownId, person } = await invite(owner, 'No administrator')
    const [admin] = (await listPeople(owner)).filter(({ administrator }) => administrator)
    for (const [method, path, body] of [
      ['POST', '/users', { name: 'x', role: 'owner', administrator: 1 }],
      ['PUT', `/users/${ownId}`, { administrator: 1 }],
      ['POST', `/users/${admin?.id}/link`, undefined],
      ['PUT', `/users/${admin?.id}`, { name: 'mine' }],
      ['DELETE', `/users/${admin?.id}`, undefined],
    ] as const)
      expect([method, path, await statusOf(person, method, path, body)]).toEqual([method, path, 403])
    expect(await person.whoIs()).toMatchObject({ user: { administrator: false } })
  })

  test('people of another account do not exist', async () => {
    const admin = await signIn(reelgate)
    const { id: account } = await admin.get<{ id: string }>('POST', '/accounts', { name: 'Elsewhere' })
    await admin.get('PUT', '/sign-in/account', { account })
    const stranger = await invite(admin, 'Of elsewhere')
    const { id } = await invite(owner, 'Of here')
    for (const [method, path, body] of [
      ['PUT', `/users/${id}`, { name: 'mine' }],
      ['DELETE', `/users/${id}`, undefined],
      ['POST', `/users/${id}/link`, undefined],
    ] as const)
      expect([method, path, await statusOf(stranger.person, method, path, body)]).toEqual([method, path, 404])
    expect((await listPeople(stranger.person)).map(({ name }) => name)).toEqual(['Of elsewhere'])
  })
})

test('a name with HTML is returned as the text that it is', async () => {
  const name = '<img src=x onerror=alert(1)>'
  const { id } = await invite(owner, name, 'viewer')
  expect((await listPeople(owner)).find((one) => one.id === id)?.name).toBe(name)
})

test('an OTP of a person plays without any API key in the account, and no more once the person is disabled', async () => {
  const videoId = await reelgate.owner.readyVideo(await makeVideo({ seconds: 1 }))
  const { id, person } = await invite(owner, 'Who plays')
  const issue = async () => (await person.get<{ otp: string }>('POST', `/videos/${videoId}/otp`, {})).otp
  const [first, second] = [await issue(), await issue()]
  expect(await reelgate.newViewer().redeem(first)).toMatchObject({ playing: true })
  await owner.get('PUT', `/users/${id}`, { disabled: 1 })
  expect(await reelgate.newViewer().redeem(second)).toMatchObject({ playing: false, body: { code: 'otp-unknown' } })
})

describe('sign-ins', () => {
  type SignIns = { rows: { id: string; current: boolean; method: string; address: string; userAgent: string }[] }

  test('D04: a person sees the browsers that are signed in, and ends one, or all others', async () => {
    const { id, person } = await invite(owner, 'With browsers')
    const another = async () => openLink((await owner.get<Invitation>('POST', `/users/${id}/link`)).link.url)
    const [second, third] = [await another(), await another()]
    const { rows } = await person.get<SignIns>('GET', '/sign-ins')
    expect(rows.map(({ current }) => current).filter(Boolean)).toHaveLength(1)
    expect(rows).toHaveLength(3)
    expect(rows[0]).toMatchObject({ method: 'link', address: '127.0.0.1' })

    const own = (await second.get<SignIns>('GET', '/sign-ins')).rows.find(({ current }) => current)
    await person.get('DELETE', `/sign-ins/${own?.id}`)
    expect(await statusOf(second, 'GET', '/videos')).toBe(401)
    expect(await statusOf(third, 'GET', '/videos')).toBe(200)
    expect(await person.get('DELETE', '/sign-ins')).toEqual({ message: 'Signed out', count: 1 })
    expect(await statusOf(third, 'GET', '/videos')).toBe(401)
    expect(await statusOf(person, 'GET', '/videos')).toBe(200)
  })

  test('those of another person are neither listed nor ended, not even by an administrator', async () => {
    const { person } = await invite(owner, 'With one browser')
    const { rows } = await person.get<SignIns>('GET', '/sign-ins')
    expect(rows).toHaveLength(1)
    expect(await statusOf(owner, 'DELETE', `/sign-ins/${rows[0]?.id}`)).toBe(404)
    expect((await owner.get<SignIns>('GET', '/sign-ins')).rows.map(({ id }) => id)).not.toContain(rows[0]?.id)
    expect(await statusOf(person, 'GET', '/videos')).toBe(200)
  })
})
