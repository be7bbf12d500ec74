import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ReceivedMail, startMailServer } from '../alerts/mail-server.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { createAuthenticator } from './authenticator.ts'
import { createPerson, type Person, signIn } from './person.ts'

// What a person is notified of by e-mail, received by a real mail server on this machine.

const PASSWORD = 'a lamp in the projection room'
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0'

type Invitation = { id: string; link: { url: string } }

/** Signs in by a link, at the name to which passkeys belong. */
async function openLink({ url }: Pick<Reelgate, 'url'>, link: string): Promise<Person> {
  const person = createPerson(url.replace('127.0.0.1', 'localhost'))
  await person.get('POST', '/sign-in/link', { token: new URL(link).hash.slice(1) })
  return person
}

async function invite(reelgate: Reelgate, by: Person, more: object): Promise<{ id: string; person: Person }> {
  const { id, link } = await by.get<Invitation>('POST', '/users', { role: 'owner', ...more })
  return { id, person: await openLink(reelgate, link.url) }
}

async function addPasskey(person: Person) {
  const authenticator = createAuthenticator(person.url)
  const { challenge } = await person.get<{ challenge: string }>('POST', '/passkeys/options')
  const credential = authenticator.create(challenge)
  await person.get('POST', '/passkeys', { ...credential, name: 'https://evil.example/sign-in' })
  return credential
}

async function startWithMail() {
  const mails = await startMailServer()
  const env = { REELGATE_SMTP_URL: `smtp://127.0.0.1:${mails.port}`, REELGATE_ALERT_TO: 'operator@example.org' }
  const reelgate = await startReelgate({ env })
  const received = () => mails.received.filter(({ to }) => !to.includes('operator@example.org'))
  /** The mail about this to this address, of which there is one. */
  async function about(subject: string, address?: string) {
    const isIt = ({ headers, to }: ReceivedMail) => headers.includes(subject) && (!address || to.includes(address))
    await expect.poll(() => received().filter(isIt).length).toBe(1)
    const [mail] = received().filter(isIt)
    if (!mail) throw new Error(`no mail about ${subject}`)
    return { ...mail, text: mail.text.replaceAll('\r\n', '\n') }
  }
  return { mails, reelgate, owner: await signIn(reelgate), received, about }
}

test('D27: a person is notified by e-mail of a new passkey, a new password, a sign-out everywhere and a new address, without secrets', async () => {
  const { reelgate, owner, received, about } = await startWithMail()
  const [first, again] = ['ann@example.org', 'ann.new@example.org']
  const { id, person } = await invite(reelgate, owner, { name: 'Ann', email: first })
  expect(await person.whoIs()).toMatchObject({ user: { email: first } })

  const headers = { 'User-Agent': `${FIREFOX} <https://evil.example>` }
  expect((await person.ask('PUT', '/sign-in/password', { body: { password: PASSWORD }, headers })).status).toBe(200)
  const credential = await addPasskey(person)
  await openLink(reelgate, (await owner.get<Invitation>('POST', `/users/${id}/link`)).link.url)
  await person.get('DELETE', '/sign-ins')
  await person.get('DELETE', '/sign-ins') // ends nothing
  await person.get('PUT', '/sign-in/email', { email: again })
  await person.get('PUT', '/sign-in/email', { email: again }) // changes nothing
  expect(await person.whoIs()).toMatchObject({ user: { email: again } })
  await addPasskey(person)
  await person.get('PUT', '/sign-in/email', { email: null })
  await addPasskey(person) // has no address any more

  await expect.poll(() => received().length).toBe(6)
  const [password, passkey, signedOut, changed, ...others] = [
    await about('A new password was set'),
    await about('A passkey was added', first),
    await about('All other browsers were signed out'),
    await about('Your e-mail address was changed', first),
    await about('A passkey was added', again),
    await about('Your e-mail address was changed', again),
  ]
  expect(password.headers).toMatch(/^Subject: \[Reelgate \S+\] A new password was set$/m)
  expect(password.text).toMatch(
    /^A new password was set at \S+\.\n\nAll your other browsers were signed out\.\n\nPerson: Ann\nWhen: /,
  )
  expect(password.text).toMatch(
    /^When: 20\d\d-\d\d-\d\d \d\d:\d\d UTC\nAddress: 127\.0\.0\.1\nBrowser: Mozilla\/5\.0 .* Firefox\/150\.0/m,
  )
  expect(password.text).toMatch(/^If this was not you: ask another owner or the operator of the server for a sign-in link/m)
  expect(passkey.text).toMatch(/^If this was not you: sign in, remove the newest passkey/m)
  expect(signedOut.text).toMatch(/^If this was not you: sign in, sign out everywhere else/m)
  expect(changed.text).toMatch(/^If this was not you: sign in, correct the address/m)
  expect(others).toHaveLength(2)
  const cookie = person.cookie?.split('=')[1]
  for (const { text } of received())
    for (const secret of [PASSWORD, credential.id, cookie, 'evil.example', 'ann.new@example.org'])
      expect(text).not.toContain(secret)
  const rows = readRows<{ cause: string }>(reelgate, 'select cause from mail where recipient is not null and sent_at_s is null')
  expect(rows).toEqual([])
})

test('D27: what another owner does to a person is notified with that owner’s name, to the address before', async () => {
  const { reelgate, owner, about, received } = await startWithMail()
  const { id } = await invite(reelgate, owner, { name: 'Ben', email: 'ben@example.org' })
  const listed = async () => (await owner.get<{ rows: { id: string; email: string | null }[] }>('GET', '/users')).rows
  await owner.get('PUT', `/users/${id}`, { email: 'thief@example.org' })
  expect((await listed()).find((user) => user.id === id)?.email).toBe('thief@example.org')
  await owner.get('PUT', `/users/${id}`, { role: 'viewer', email: 'thief@example.org' })
  await owner.get('PUT', `/users/${id}`, { disabled: 1 })
  await owner.get('DELETE', `/users/${id}`) // has had no access any more
  const changed = await about('Your e-mail address was changed')
  expect(changed.to).toEqual(['ben@example.org'])
  expect(changed.text).toMatch(/^Person: Ben\nBy: owner\nWhen: /m)
  expect((await about('Your access was ended')).text).toMatch(/^By: owner\n/m)
  expect(received()).toHaveLength(2)

  const log = await (await owner.ask('GET', '/audit-log')).text()
  expect(log).toContain('e-mail address')
  expect(log).not.toMatch(/ben@|thief@/) // is kept when the person is deleted
})

test('D27: a notice that the mail server refuses is sent after a restart; what is refused itself is not notified', async () => {
  const { mails, reelgate, owner, about, received } = await startWithMail()
  const { person } = await invite(reelgate, owner, { name: 'Cleo', email: 'cleo@example.org' })
  mails.refuse({ responseCode: 451, message: 'Try again later' })
  const credential = await addPasskey(person)
  const rows = () =>
    readRows<{ cause: string; problem: string | null }>(reelgate, 'select cause, problem from mail where recipient is not null')
  await expect.poll(rows).toEqual([{ cause: 'passkey-added', problem: expect.stringContaining('451') }])
  const { challenge } = await person.get<{ challenge: string }>('POST', '/passkeys/options')
  expect(
    (await person.ask('POST', '/passkeys', { body: createAuthenticator(person.url).create(challenge, { origin: 'https://x' }) }))
      .status,
  ).toBe(400)
  expect((await person.ask('PUT', '/sign-in/password', { body: { password: 'short' } })).status).not.toBe(200)
  expect(rows()).toHaveLength(1)

  await reelgate.stop()
  mails.refuse()
  changeRows(reelgate, 'update mail set due_at_s = 0')
  await reelgate.restart()
  expect((await about('A passkey was added')).to).toEqual(['cleo@example.org'])
  expect(received()).toHaveLength(1)
  expect(JSON.stringify(received())).not.toContain(credential.id)
})

describe('an e-mail address', () => {
  let reelgate: Reelgate & { remove(): Promise<void> }
  let owner: Person
  let id: string
  beforeAll(async () => {
    reelgate = await startSharedReelgate()
    owner = await signIn(reelgate)
    id = (await owner.get<Invitation>('POST', '/users', { name: 'Eve', role: 'viewer' })).id
  })
  afterAll(() => reelgate?.remove())

  test.each([
    ['no address', 'ann'],
    ['empty', ''],
    ['two', 'a@example.org, b@example.org'],
    ['one with a name', 'Ann <ann@example.org>'],
    ['a line break that would add a header', 'ann@example.org\r\nBcc: all@example.org'],
    ['a line break at the end', 'ann@example.org\n'],
    ['a control character', 'ann\u0000@example.org'],
    ['a character that is not seen', 'ann@exam\u202eple.org'],
    ['255 characters', `${'a'.repeat(243)}@example.org`],
  ])('D27: is refused: %s', async (_, email) => {
    for (const [method, path, body] of [
      ['PUT', '/sign-in/email', { email }],
      ['POST', '/users', { name: 'Nobody', role: 'viewer', email }],
      ['PUT', `/users/${id}`, { email }],
    ] as const)
      expect([path, (await owner.ask(method, path, { body })).status]).toEqual([path, 400])
    expect(readRows(reelgate, 'select id from console_user where email is not null')).toEqual([])
  })

  test('D27: is changed by a cookie whose sign-in is older than 10 minutes neither for its person nor for another', async () => {
    const own = await startReelgate()
    const person = await signIn(own)
    const { id } = await person.get<Invitation>('POST', '/users', {
      name: 'Dan',
      role: 'viewer',
      email: `${'a'.repeat(242)}@example.org`,
    })
    changeRows(own, 'update sign_in set created_at_s = created_at_s - 601')
    await own.owner.credentials('x') // what is changed behind the server's back, it reads again after its next commit
    for (const path of ['/sign-in/email', `/users/${id}`]) {
      const answer = await person.ask('PUT', path, { body: { email: 'thief@example.org' } })
      expect([path, answer.status, await answer.json()]).toMatchObject([path, 403, { code: 'sign-in-again' }])
    }
    await person.get('PUT', `/users/${id}`, { role: 'uploader' })
    expect(readRows(own, "select id from console_user where email like 'thief%'")).toEqual([])
  })
})
