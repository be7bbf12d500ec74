import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createSignInLimit, type SignInLimit } from '../../src/users/sign-in-limit.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { changeRows, readRows } from '../rows.ts'
import { createPerson, makeLink, type Person, signIn } from './person.ts'

// Who gets in to the console, how, and for how long.

const PASSWORD = 'a lamp in the projection room'

let reelgate: Reelgate & { remove(): Promise<void> }
let person: Person
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  person = await signIn(reelgate)
  await person.get('PUT', '/sign-in/password', { password: PASSWORD })
})
afterAll(() => reelgate?.remove())

async function newBrowser(password = PASSWORD): Promise<Person> {
  const browser = createPerson(reelgate.url)
  await browser.get('POST', '/sign-in', { name: 'owner', password })
  return browser
}

test('a link signs in its person once; then the password does, and the console calls every operation of the API', async () => {
  const token = await makeLink(reelgate)
  const first = createPerson(reelgate.url)
  expect(await first.get('POST', '/sign-in/link', { token })).toMatchObject({
    signedIn: true,
    user: { name: 'owner', role: 'owner', administrator: true },
    method: 'link',
    account: { name: 'owner', own: true },
  })
  expect((await createPerson(reelgate.url).ask('POST', '/sign-in/link', { body: { token } })).status).toBe(401)
  const browser = await newBrowser()
  expect(await browser.whoIs()).toMatchObject({ signedIn: true, method: 'password' })
  expect(await browser.get('GET', '/videos')).toEqual({ count: 0, rows: [] })
  const { videoId } = await browser.get<{ videoId: string }>('PUT', '/videos?title=From%20the%20console')
  expect((await reelgate.owner.video(videoId)).title).toBe('From the console')
  const { otp } = await browser.get<{ otp: string }>('POST', `/videos/${videoId}/otp`, {})
  expect(otp).toMatch(/^[A-Za-z0-9]{64}$/)
  const [event] = readRows(reelgate, `select actor from audit_event where kind = 'user:signed-in' order by id desc limit 1`)
  expect(event?.actor).toMatch(/^user:[0-9a-f]{32}$/)
  await browser.get('DELETE', `/videos?videos=${videoId}`)
})

test('the first person is in the account of the owner, not in that of the demo video', async () => {
  const withDemo = await startReelgate({ env: { REELGATE_DEMO: 'on' } })
  expect(await (await signIn(withDemo)).whoIs()).toMatchObject({ account: { name: 'owner', own: true } })
})

test('a new link of a person replaces the one before, and a link that has expired opens nothing', async () => {
  const old = await makeLink(reelgate)
  const token = await makeLink(reelgate)
  const stranger = createPerson(reelgate.url)
  for (const wrong of [old, 'x'.repeat(64), '']) {
    expect((await stranger.ask('POST', '/sign-in/link', { body: { token: wrong } })).status).toBe(401)
  }
  changeRows(reelgate, 'update sign_in_link set expires_at_s = 1')
  expect((await stranger.ask('POST', '/sign-in/link', { body: { token } })).status).toBe(401)
})

test('D21: a link does not replace an open sign-in without being asked to, and works afterwards', async () => {
  const browser = await newBrowser()
  const before = browser.cookie
  const { link } = await browser.get<{ link: { url: string } }>('POST', '/users', { name: 'Not the owner', role: 'owner' })
  const token = link.url.split('#')[1]
  const refused = await browser.ask('POST', '/sign-in/link', { body: { token } })
  expect([refused.status, await refused.json()]).toMatchObject([
    409,
    { message: 'You are signed in as owner in this browser. This link signs in Not the owner instead.' },
  ])
  expect(browser.cookie).toBe(before)
  expect(await browser.whoIs()).toMatchObject({ user: { name: 'owner' } })
  expect((await browser.ask('POST', '/sign-in/link', { body: { token: 'A'.repeat(64) } })).status).toBe(401)
  expect(await browser.get('POST', '/sign-in/link', { token, replace: 1 })).toMatchObject({ user: { name: 'Not the owner' } })
  browser.cookie = before
  expect((await browser.ask('GET', '/videos')).status).toBe(401)
})

test('of ten browsers that open one link at the same time, one is signed in', async () => {
  const token = await makeLink(reelgate)
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => createPerson(reelgate.url).ask('POST', '/sign-in/link', { body: { token } })),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
})

describe('D01: the cookie', () => {
  test('over http on this machine is out of reach for scripts and other sites', async () => {
    const response = await createPerson(reelgate.url).ask('POST', '/sign-in', { body: { name: 'OWNER', password: PASSWORD } })
    expect(response.headers.getSetCookie()).toEqual([
      expect.stringMatching(
        /^reelgate-console-[0-9a-f]{8}=[A-Za-z0-9]{64}; Path=\/; Max-Age=2(592000|59199\d); HttpOnly; SameSite=Strict$/,
      ),
    ])
  })

  test('over https is bound to the host and to https, and no other is taken there', async () => {
    const publicUrl = 'https://video.example.org'
    const secure = await startReelgate({ env: { REELGATE_PUBLIC_URL: publicUrl, HOST: '0.0.0.0' } })
    const token = await makeLink(secure)
    const page = ['Origin: https://video.example.org', 'Reelgate-Console: 1', 'Content-Type: application/json']
    const as = { host: 'video.example.org' }
    const answer = await sendRaw(secure.url, 'POST /console/api/sign-in/link', page, JSON.stringify({ token }), as)
    expect(answer.status).toBe(200)
    const set = answer.headers.get('set-cookie') ?? ''
    expect(set).toMatch(
      /^__Host-reelgate-console-[0-9a-f]{8}=\w{64}; Path=\/; Max-Age=86(400|39\d); HttpOnly; SameSite=Strict; Secure$/,
    )
    const [cookie = ''] = set.split(';')
    const ask = (lines: string[]) => sendRaw(secure.url, 'GET /console/api/videos', lines, '', as)
    expect((await ask([`Cookie: ${cookie}`])).status).toBe(200)
    expect((await ask([`Cookie: ${cookie.replace('__Host-', '')}`])).status).toBe(401)
    const hash = createHash('sha256').update(publicUrl).digest('hex').slice(0, 8)
    expect(cookie).toMatch(new RegExp(`^__Host-reelgate-console-${hash}=`))
  })

  test('D17: two installations on one host do not sign each other out', async () => {
    const other = await startReelgate()
    const browser = await newBrowser()
    const there = createPerson(other.url)
    // A browser sends the cookies of all ports of a host to each of them.
    there.cookie = browser.cookie
    await there.get('POST', '/sign-in/link', { token: await makeLink(other) })
    const both = `${browser.cookie}; ${there.cookie}`
    for (const { url } of [reelgate, other]) {
      const response = await fetch(`${url}/console/api/videos`, { headers: { Cookie: both } })
      expect(response.status).toBe(200)
    }
    expect(browser.cookie?.split('=')[0]).not.toBe(there.cookie?.split('=')[0])
  })

  test('is new at each sign-in', async () => {
    const cookies = [await newBrowser(), await newBrowser()].map(({ cookie }) => cookie)
    expect(new Set(cookies).size).toBe(2)
    for (const cookie of cookies) expect(JSON.stringify(readRows(reelgate, 'select * from sign_in'))).not.toContain(cookie)
  })

  test('ends after 30 days, or after 7 without use', async () => {
    const browser = await newBrowser()
    const token = browser.cookie?.split('=')[1]
    expect(token).toHaveLength(64)
    const id = readRows<{ id: string }>(reelgate, 'select id from sign_in order by created_at_s desc, id')[0]?.id ?? ''
    expect(id).toHaveLength(32)
    changeRows(reelgate, 'update sign_in set last_seen_at_s = last_seen_at_s - 7 * 86400')
    await forgetCache()
    expect((await browser.ask('GET', '/videos')).status).toBe(401)
    const other = await newBrowser()
    changeRows(reelgate, 'update sign_in set expires_at_s = created_at_s')
    await forgetCache()
    expect((await other.ask('GET', '/videos')).status).toBe(401)
  })

  /** What is changed behind the server's back, it reads again after its next commit. */
  async function forgetCache(): Promise<void> {
    await reelgate.owner.credentials('x')
  }
})

test('D04: a cookie is refused after its browser signed out, and all others of the person after a change of the password', async () => {
  const [one, two, three] = [await newBrowser(), await newBrowser(), await newBrowser()]
  const old = one.cookie
  await one.get('DELETE', '/sign-in')
  expect(one.cookie).toBeUndefined()
  one.cookie = old
  expect((await one.ask('GET', '/videos')).status).toBe(401)
  expect(await one.whoIs()).toMatchObject({ signedIn: false })

  const before = two.cookie
  expect((await two.ask('PUT', '/sign-in/password', { body: { password: 'another lamp, as bright' } })).status).toBe(403)
  await two.get('PUT', '/sign-in/password', { current: PASSWORD, password: 'another lamp, as bright' })
  expect(two.cookie).not.toBe(before)
  expect((await two.ask('GET', '/videos')).status).toBe(200)
  expect((await three.ask('GET', '/videos')).status).toBe(401)
  two.cookie = before
  expect((await two.ask('GET', '/videos')).status).toBe(401)
  const again = await newBrowser('another lamp, as bright')
  await again.get('PUT', '/sign-in/password', { current: 'another lamp, as bright', password: PASSWORD })
})

test('a lost password is replaced by way of a link, without the old one', async () => {
  const browser = await signIn(reelgate)
  await browser.get('PUT', '/sign-in/password', { password: 'written down this time' })
  expect((await createPerson(reelgate.url).ask('POST', '/sign-in', { body: { name: 'owner', password: PASSWORD } })).status).toBe(
    401,
  )
  await (await signIn(reelgate)).get('PUT', '/sign-in/password', { password: PASSWORD })
})

test('D05: a cookie that was set before is replaced at a sign-in, and opens nothing', async () => {
  const browser = await newBrowser()
  const preset = `${browser.cookie?.split('=')[0]}=${'A'.repeat(64)}`
  browser.cookie = preset
  await browser.get('POST', '/sign-in', { name: 'owner', password: PASSWORD })
  expect(browser.cookie).not.toBe(preset)
  const attacker = createPerson(reelgate.url)
  attacker.cookie = preset
  expect((await attacker.ask('GET', '/videos')).status).toBe(401)
  const first = browser.cookie
  await browser.get('POST', '/sign-in', { name: 'owner', password: PASSWORD })
  attacker.cookie = first
  expect((await attacker.ask('GET', '/videos')).status).toBe(401)
})

describe('D06: guessing', () => {
  test('an unknown name is answered as a wrong password is', async () => {
    const answers = await Promise.all(
      [
        { name: 'owner', password: 'wrong' },
        { name: 'unknown', password: PASSWORD },
      ].map(async (body) => {
        const response = await createPerson(reelgate.url).ask('POST', '/sign-in', { body })
        const text = (await response.text()).replace(/"requestId":"[^"]*"/, '')
        return [response.status, text, [...response.headers.keys()].filter((name) => name !== 'date')]
      }),
    )
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]?.[0]).toBe(401)
  })

  test('a password that is guessed first is refused', async () => {
    const browser = await newBrowser()
    for (const password of ['short', 'aaaaaaaaaaaaaaaa', 'the owner himself', 'x'.repeat(201)])
      expect((await browser.ask('PUT', '/sign-in/password', { body: { current: PASSWORD, password } })).status).toBe(400)
  })

  test('is limited for each address, and the limit is said', async () => {
    const limited = await startReelgate({ env: { REELGATE_LIMITS: '{"signIns":{"ip":3}}' } })
    const stranger = createPerson(limited.url)
    const statuses: number[] = []
    for (let attempt = 0; attempt < 5; attempt++) {
      const response = await stranger.ask('POST', '/sign-in', { body: { name: `name ${attempt}`, password: 'x' } })
      statuses.push(response.status)
      expect(response.headers.get('ratelimit-policy')).toBe('"signIns";q=3;w=60')
    }
    expect(statuses).toEqual([401, 401, 401, 429, 429])
    expect((await stranger.ask('POST', '/sign-in/link', { body: { token: 'x' } })).status).toBe(429)
    expect((await limited.owner.list()).count).toBe(0) // nothing else of the address is limited
  })

  /** Attempts from one address, one after the other. @returns the answers without what differs between any two requests */
  async function guess(url: string, address: string, attempts: readonly { name: string; password: string }[]) {
    const answers: { status: number; body: string; retryAfterS: number }[] = []
    for (const body of attempts) {
      const response = await createPerson(url).ask('POST', '/sign-in', { body, headers: { 'X-Forwarded-For': address } })
      const text = (await response.text()).replace(/"requestId":"[^"]*"/, '')
      answers.push({ status: response.status, body: text, retryAfterS: Number(response.headers.get('Retry-After')) })
    }
    return answers
  }
  const statusesOf = (answers: readonly { status: number }[]) => answers.map(({ status }) => status)
  const wrong = (name: string, times: number) => Array(times).fill({ name, password: 'wrong' })

  describe('from many addresses', () => {
    const RIGHT = { name: 'owner', password: PASSWORD }
    const ENV = {
      REELGATE_TRUSTED_PROXIES: '127.0.0.1',
      REELGATE_LIMITS: '{"signIns":{"ip":1000},"unauthenticated":{"ip":1000}}',
    }
    let limited: Awaited<ReturnType<typeof startSharedReelgate>>
    beforeAll(async () => {
      limited = await startSharedReelgate({ env: ENV })
      await (await signIn(limited)).get('PUT', '/sign-in/password', { password: PASSWORD })
    })
    afterAll(() => limited?.remove())

    test('D18: ten wrong passwords slow one address down for at most a minute, and no other one', async () => {
      const guesses = await guess(limited.url, '192.0.2.1', [...wrong('owner', 12), RIGHT])
      expect(statusesOf(guesses)).toEqual([...Array(10).fill(401), 429, 429, 429])
      for (const { retryAfterS } of guesses.slice(10)) expect(retryAfterS).toBeLessThanOrEqual(60)
      expect(statusesOf(await guess(limited.url, '192.0.2.2', [RIGHT]))).toEqual([200])
    })

    test('D19: 401 and 429 are the same for a name that exists and one that does not, also where its person has been', async () => {
      await guess(limited.url, '192.0.2.4', [RIGHT])
      const known = await guess(limited.url, '192.0.2.4', wrong('owner', 12))
      const unknown = await guess(limited.url, '192.0.2.5', wrong('no such person', 12))
      expect(known.map(withoutSeconds)).toEqual(unknown.map(withoutSeconds))
      expect(statusesOf(known)).toEqual([...Array(10).fill(401), 429, 429])
    })
  })

  /** They count down meanwhile. */
  const withoutSeconds = ({ status, body }: { status: number; body: string }) => [
    status,
    body.replace(/\d+ seconds/, 'N seconds'),
  ]

  describe('the limit', () => {
    const clock = { nowS: 1_000 }
    let limit: SignInLimit
    beforeEach(() => {
      limit = createSignInLimit(() => clock.nowS)
    })
    const take = (address: string, times: number, name = 'owner') =>
      Array.from({ length: times }, () => limit.take(address, name))

    test('D18: whatever an address has sent, it waits a minute at most, and a right password is not counted', () => {
      expect(take('192.0.2.1', 10)).toEqual(Array(10).fill(undefined))
      expect(take('192.0.2.1', 300)).toEqual(Array(300).fill(60))
      clock.nowS += 30
      expect(take('192.0.2.1', 1)).toEqual([30])
      clock.nowS += 30
      expect(take('192.0.2.1', 1)).toEqual([undefined])
      limit.refund('192.0.2.1', 'owner')
      expect(take('192.0.2.1', 2)).toEqual([undefined, 60])
      clock.nowS += 600
      expect(take('192.0.2.1', 11)).toEqual([...Array(10).fill(undefined), 60])
    })

    test('D18: an IPv6 address counts as its /64', () => {
      for (let host = 1; host <= 10; host++) expect(take(`2001:db8::${host}`, 1)).toEqual([undefined])
      expect(take('2001:db8::ffff', 1)).toEqual([60])
      expect(take('2001:db8:0:1::1', 1)).toEqual([undefined])
    })

    test('D18: a name that is guessed from many addresses has one attempt a minute from each, so its person still gets in', () => {
      for (let host = 1; host <= 10; host++) take(`198.51.100.${host}`, 10)
      expect(take('203.0.113.1', 2)).toEqual([undefined, 60])
      expect(take('203.0.113.1', 2, 'ann')).toEqual([undefined, undefined]) // another name
      expect(take('203.0.113.2', 1)).toEqual([undefined])
      limit.refund('203.0.113.2', 'owner')
      expect(take('203.0.113.2', 1)).toEqual([undefined])
      clock.nowS += 60
      expect(take('203.0.113.1', 1)).toEqual([undefined])
    })
  })
})

test('over http on a network sign-in is refused: the password would cross it in the clear', async () => {
  const body = JSON.stringify({ name: 'owner', password: PASSWORD })
  const lines = ['Reelgate-Console: 1', 'Content-Type: application/json']
  const ask = (host: string, more: string[] = []) =>
    sendRaw(reelgate.url, 'POST /console/api/sign-in', [...lines, ...more], body, { host })
  const overNetwork = await ask('192.168.1.5:8080')
  expect([overNetwork.status, JSON.parse(overNetwork.text).message]).toEqual([403, expect.stringContaining('needs https')])
  expect((await ask('192.168.1.5:8080', ['Origin: http://192.168.1.5:8080'])).status).toBe(403)
  expect((await ask('localhost:9000', ['Origin: http://localhost:9000'])).status).toBe(200) // a port that a container maps
})
