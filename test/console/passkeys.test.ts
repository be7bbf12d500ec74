import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
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
    'of which nobody was asked for the PIN': { isUnverified: true },
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
