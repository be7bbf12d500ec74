import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { type Authenticator, createAuthenticator, type Flaws } from './authenticator.ts'
import { createPerson, makeLink, type Person } from './person.ts'

// Signing in with a passkey, as a browser at http://localhost does.

let reelgate: Reelgate & { remove(): Promise<void> }
let page: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  page = reelgate.url.replace('127.0.0.1', 'localhost')
})
afterAll(() => reelgate?.remove())

type Options = {
  challenge: string
  rpId: string
  rp: { id: string }
  user: { name: string }
  excludeCredentials: { id: string }[]
}

async function signInByLink(): Promise<Person> {
  const person = createPerson(page)
  await person.get('POST', '/sign-in/link', { token: await makeLink(reelgate) })
  return person
}

/** Another owner in the account, who has come by a link. */
async function invite(name: string): Promise<{ id: string; person: Person }> {
  const owner = await signInByLink()
  const { id, link } = await owner.get<{ id: string; link: { url: string } }>('POST', '/users', { name, role: 'owner' })
  const person = createPerson(page)
  await person.get('POST', '/sign-in/link', { token: new URL(link.url).hash.slice(1) })
  return { id, person }
}

async function register(person: Person, authenticator: Authenticator, flaws?: Flaws): Promise<Response> {
  const { challenge } = await person.get<Options>('POST', '/passkeys/options')
  return person.ask('POST', '/passkeys', { body: authenticator.create(challenge, flaws) })
}

async function signInWith(authenticator: Authenticator, flaws?: Flaws, browser = createPerson(page)): Promise<Response> {
  const { challenge } = await browser.get<Options>('POST', '/sign-in/passkey/options')
  return browser.ask('POST', '/sign-in/passkey', { body: authenticator.get(challenge, flaws) })
}

async function newPasskey(keyType?: string): Promise<Authenticator> {
  const authenticator = createAuthenticator(page, keyType)
  expect((await register(await signInByLink(), authenticator)).status).toBe(200)
  return authenticator
}

test.each(['P-256', 'Ed25519', 'RSA'])(
  'a person who came by a link adds a passkey with %s, and signs in with it',
  async (keyType) => {
    const person = await signInByLink()
    const authenticator = createAuthenticator(page, keyType)
    const options = await person.get<Options>('POST', '/passkeys/options')
    expect([options.rp.id, options.user.name]).toEqual(['localhost', 'owner'])
    const before = person.cookie
    expect((await person.ask('POST', '/passkeys', { body: authenticator.create(options.challenge) })).status).toBe(200)
    expect(person.cookie).not.toBe(before) // the day of a link becomes thirty
    expect(await person.whoIs()).toMatchObject({ signedIn: true, method: 'passkey' })

    const browser = createPerson(page)
    expect((await signInWith(authenticator, {}, browser)).status).toBe(200)
    expect(await browser.whoIs()).toMatchObject({ signedIn: true, method: 'passkey', user: { name: 'owner' } })
    expect((await browser.ask('GET', '/videos')).status).toBe(200)
    const { rows } = await browser.get<{ rows: { id: string; lastUsedAt: string | null }[] }>('GET', '/passkeys')
    expect(rows.find(({ id }) => id === authenticator.id)?.lastUsedAt).toMatch(/^20/)
    expect((await browser.get<Options>('POST', '/passkeys/options')).excludeCredentials.map(({ id }) => id)).toContain(
      authenticator.id,
    )
  },
)

describe('a passkey is refused', () => {
  const WRONG: Record<string, Flaws> = {
    'at a page of another site': { origin: 'https://evil.example' },
    'at another port of this machine': { origin: 'http://localhost:1' },
    'made for another host': { rpId: 'evil.example' },
    'in a frame of another site': { crossOrigin: true },
    'that did not ask for the PIN': { isUnverified: true },
  }

  test.each(Object.entries(WRONG))('%s', async (_, flaws) => {
    const person = await signInByLink()
    expect((await register(person, createAuthenticator(page), flaws)).status).toBe(400)
    const authenticator = await newPasskey()
    expect((await signInWith(authenticator, flaws)).status).toBe(400)
    expect((await signInWith(authenticator)).status).toBe(200)
  })

  test.each(['RSA with a short key', 'P-384'])('with a key that is not asked for: %s', async (keyType) => {
    expect((await register(await signInByLink(), createAuthenticator(page, keyType))).status).toBe(400)
  })

  test('with a signature of another key, or over other data', async () => {
    const [ours, other] = [await newPasskey(), createAuthenticator(page)]
    const browser = createPerson(page)
    const { challenge } = await browser.get<Options>('POST', '/sign-in/passkey/options')
    const body = { ...other.get(challenge), id: ours.id }
    expect((await browser.ask('POST', '/sign-in/passkey', { body })).status).toBe(400)
    const { challenge: next } = await browser.get<Options>('POST', '/sign-in/passkey/options')
    const right = ours.get(next)
    const tampered = { ...right, response: { ...right.response, authenticatorData: ours.get(next).response.authenticatorData } }
    expect((await browser.ask('POST', '/sign-in/passkey', { body: tampered })).status).toBe(400)
  })

  test('with a challenge that was used, is not ours, or was made for adding one', async () => {
    const authenticator = await newPasskey()
    const browser = createPerson(page)
    const { challenge } = await browser.get<Options>('POST', '/sign-in/passkey/options')
    expect((await browser.ask('POST', '/sign-in/passkey', { body: authenticator.get(challenge) })).status).toBe(200)
    expect((await browser.ask('POST', '/sign-in/passkey', { body: authenticator.get(challenge) })).status).toBe(400)
    expect((await browser.ask('POST', '/sign-in/passkey', { body: authenticator.get('A'.repeat(43)) })).status).toBe(400)
    const adding = await browser.get<Options>('POST', '/passkeys/options')
    expect((await browser.ask('POST', '/sign-in/passkey', { body: authenticator.get(adding.challenge) })).status).toBe(400)
    const signing = await browser.get<Options>('POST', '/sign-in/passkey/options')
    const body = createAuthenticator(page).create(signing.challenge)
    expect((await browser.ask('POST', '/passkeys', { body })).status).toBe(400)
  })

  test('when its count has not risen: then there are two of it', async () => {
    const authenticator = await newPasskey()
    expect((await signInWith(authenticator, { count: 100 })).status).toBe(200)
    expect((await signInWith(authenticator, { count: 100 })).status).toBe(401)
    expect((await signInWith(authenticator, { count: 99 })).status).toBe(401)
    expect((await signInWith(authenticator, { count: 101 })).status).toBe(200)
  })

  test('that is unknown, or was deleted', async () => {
    expect((await signInWith(createAuthenticator(page))).status).toBe(401)
    const authenticator = await newPasskey()
    const person = await signInByLink()
    await person.get('DELETE', `/passkeys/${authenticator.id}`)
    expect((await signInWith(authenticator)).status).toBe(401)
    expect((await person.ask('DELETE', `/passkeys/${authenticator.id}`)).status).toBe(404)
  })

  test('when another person has registered it', async () => {
    const authenticator = await newPasskey()
    expect((await register(await signInByLink(), authenticator)).status).toBe(409)
  })
})

describe('D20: a cookie whose sign-in is older than 10 minutes', () => {
  const again = { code: 'sign-in-again', message: expect.stringContaining('Sign in again') }
  const PASSWORD = 'a lamp in the projection room'

  /** A person of the account, whose sign-in is so old. */
  async function signInLongAgo(name: string, hasPassword: boolean): Promise<Person> {
    const { id, person } = await invite(name)
    if (hasPassword) await person.get('PUT', '/sign-in/password', { password: PASSWORD })
    changeRows(reelgate, `update sign_in set created_at_s = created_at_s - 601 where console_user_id = '${id}'`)
    await reelgate.owner.credentials('x') // what is changed behind the server's back, it reads again after its next commit
    return person
  }

  test('adds neither a passkey nor a first password', async () => {
    const person = await signInLongAgo('Dora', false)
    const answers = [
      await person.ask('POST', '/passkeys/options'),
      await person.ask('POST', '/passkeys', { body: createAuthenticator(page).create('A'.repeat(43)) }),
      await person.ask('PUT', '/sign-in/password', { body: { password: PASSWORD } }),
    ]
    for (const answer of answers) expect([answer.status, await answer.json()]).toMatchObject([403, again])
    expect((await person.ask('GET', '/videos')).status).toBe(200)
    expect(await person.whoIs()).toMatchObject({ user: { hasPassword: false } })
  })

  test('changes no password without the current one', async () => {
    const person = await signInLongAgo('Emil', true)
    expect((await person.ask('PUT', '/sign-in/password', { body: { password: 'another lamp, as bright' } })).status).toBe(403)
    await person.get('PUT', '/sign-in/password', { current: PASSWORD, password: 'another lamp, as bright' })
  })

  test('makes no link for another person, invites none, and makes no API key', async () => {
    const person = await signInLongAgo('Fred', true)
    const { rows } = await person.get<{ rows: { id: string; name: string }[] }>('GET', '/users')
    const dora = rows.find(({ name }) => name !== 'Fred')?.id
    const keys = await person.get<{ rows: { id: string }[] }>('GET', '/keys')
    for (const [path, body] of [
      ['/users', { name: 'Mallory', role: 'owner' }],
      [`/users/${dora}/link`, undefined],
      ['/keys', { name: 'theirs', permissions: ['editor'] }],
      [`/keys/${keys.rows[0]?.id}/rotate`, {}],
    ] as const) {
      const answer = await person.ask('POST', path, { body })
      expect([path, answer.status, await answer.json()]).toMatchObject([path, 403, again])
    }
    expect((await person.get<{ rows: unknown[] }>('GET', '/users')).rows).toHaveLength(rows.length)
    expect((await person.get<{ rows: unknown[] }>('GET', '/keys')).rows).toHaveLength(keys.rows.length)
  })

  test('confirms no learning platform, and gives a confirmed one no other addresses', async () => {
    const { owner } = reelgate
    const addresses = Object.fromEntries(
      ['authorizationUrl', 'tokenUrl', 'keysUrl'].map((name) => [name, `https://lms.example/${name}`]),
    )
    const added = await owner.call('POST', '/api/lti/platforms', { body: { name: 'Moodle', issuer: 'https://lms.example' } })
    const path = `/lti/platforms/${((await added.json()) as { id: string }).id}`
    const person = await signInLongAgo('Ines', true)
    await person.get('PUT', path, { clientId: 'reelgate', ...addresses })
    const refused = await person.ask('PUT', path, { body: { confirmed: 1 } })
    expect([refused.status, await refused.json()]).toMatchObject([403, again])
    expect((await owner.call('PUT', `/api${path}`, { body: { confirmed: 1 } })).status).toBe(200)
    for (const name of ['clientId', ...Object.keys(addresses)])
      expect((await person.ask('PUT', path, { body: { [name]: 'https://evil.example/' } })).status, name).toBe(403)
    await person.get('PUT', path, { name: 'Our Moodle', ...addresses })
  })

  test('does so after the person has signed in again in that browser, by password or passkey', async () => {
    const person = await signInLongAgo('Gina', true)
    await person.get('POST', '/sign-in', { name: 'Gina', password: PASSWORD })
    const authenticator = createAuthenticator(page)
    expect((await register(person, authenticator)).status).toBe(200)
    changeRows(reelgate, 'update sign_in set created_at_s = created_at_s - 601')
    await reelgate.owner.credentials('x')
    expect((await register(person, createAuthenticator(page)).catch(({ message }) => message)) as unknown).toContain('403')
    expect((await signInWith(authenticator, {}, person)).status).toBe(200)
    expect((await register(person, createAuthenticator(page))).status).toBe(200)
  })

  test('an administrator who signs in again continues in the account that was looked at', async () => {
    const admin = await signInByLink()
    const { id: account } = await admin.get<{ id: string }>('POST', '/accounts', { name: 'Looked at' })
    await admin.get('PUT', '/sign-in/account', { account })
    const authenticator = createAuthenticator(page)
    expect((await register(admin, authenticator)).status).toBe(200)
    expect((await signInWith(authenticator, {}, admin)).status).toBe(200)
    expect(await admin.whoIs()).toMatchObject({ account: { id: account, own: false } })
    expect((await signInWith(authenticator, {}, createPerson(page))).status).toBe(200)
  })
})

test('D22: a change of the password removes the passkeys if that is asked for, and says so in the audit log', async () => {
  const { person } = await invite('Hedy')
  const passkeys = [createAuthenticator(page), createAuthenticator(page)]
  for (const authenticator of passkeys) expect((await register(person, authenticator)).status).toBe(200)
  await person.get('PUT', '/sign-in/password', { password: 'a lamp in the projection room' })
  for (const authenticator of passkeys) expect((await signInWith(authenticator)).status).toBe(200)
  const current = 'a lamp in the projection room'
  await person.get('PUT', '/sign-in/password', { current, password: 'another lamp, as bright', removePasskeys: 1 })
  for (const authenticator of passkeys) expect((await signInWith(authenticator)).status).toBe(401)
  const [event] = readRows<{ details: string }>(
    reelgate,
    `select details from audit_event where kind = 'user:password-set' order by id desc limit 1`,
  )
  expect(JSON.parse(event?.details ?? '{}')).toEqual({ removedPasskeys: ['Passkey', 'Passkey'] })
})

test('authenticators that do not count can sign in again and again', async () => {
  const authenticator = createAuthenticator(page)
  expect((await register(await signInByLink(), authenticator, { count: 0 })).status).toBe(200)
  for (let time = 0; time < 3; time++) expect((await signInWith(authenticator, { count: 0 })).status).toBe(200)
})

test('the last way in is kept: a person without a password cannot delete the only passkey', async () => {
  const person = await signInByLink()
  const { rows } = await person.get<{ rows: { id: string }[] }>('GET', '/passkeys')
  const authenticator = createAuthenticator(page)
  await register(person, authenticator)
  for (const { id } of rows) await person.get('DELETE', `/passkeys/${id}`)
  expect((await person.ask('DELETE', `/passkeys/${authenticator.id}`)).status).toBe(409)
  expect((await signInWith(authenticator)).status).toBe(200)
})

test('an address of digits has no passkeys, and the sentence says where to open the console', async () => {
  const response = await createPerson(reelgate.url).ask('POST', '/sign-in/passkey/options')
  expect([response.status, (await response.json()) as unknown]).toMatchObject([
    400,
    { message: 'A passkey needs a host name. Open the console at http://localhost instead of an address.' },
  ])
})

test('the database has of a passkey what is public alone', () => {
  const columns = Object.keys(readRows(reelgate, 'select * from passkey limit 1')[0] ?? {})
  expect(columns.toSorted()).toEqual(
    ['id', 'console_user_id', 'name', 'public_key', 'sign_count', 'transports', 'created_at_s', 'last_used_at_s'].toSorted(),
  )
})
