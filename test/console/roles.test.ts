import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOwner } from '../client.ts'
import { pathOf, type Rule, ruleOf } from '../http/route-rules.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { listTablesWithoutClock, readRows } from '../rows.ts'
import { createPerson, makeLink, type Person, signIn } from './person.ts'
import { collectRoutes } from './routes.ts'

// Every route of the console's interface × everyone who may ask it. The routes come from the server itself, and each has its rule in
// test/http/route-rules.ts; what API keys open is in test/http/credentials.test.ts.

const ROLES = ['signed out', 'viewer', 'owner', 'administrator'] as const
type Role = (typeof ROLES)[number]

let reelgate: Reelgate & { remove(): Promise<void> }
let routes: string[]
let videoId: string
let people: Record<Role, Person>
beforeAll(async () => {
  const { started, routes: found } = await collectRoutes(() => startSharedReelgate())
  reelgate = started
  routes = found.filter((route) => route.includes(' /console/api/') && !route.startsWith('HEAD '))
  videoId = (await reelgate.owner.credentials('A video')).videoId
  const administrator = await signIn(reelgate)
  for (const role of ['viewer', 'owner']) await administrator.get('POST', '/users', { name: nameOf(role), role })
  people = {
    'signed out': createPerson(reelgate.url),
    viewer: await signIn(reelgate, nameOf('viewer')),
    owner: await signIn(reelgate, nameOf('owner')),
    administrator,
  }
})
afterAll(() => reelgate?.remove())

const nameOf = (role: string) => (role === 'administrator' ? 'owner' : `a ${role}`)

/** Who may. A permission of the API is an owner's; a viewer has `viewer` alone. */
function mayOpen({ opens, role: needed }: Rule, role: Role): boolean {
  const lowest = opens === 'anybody' ? 'anybody' : (needed ?? (opens === 'viewer' ? 'viewer' : 'owner'))
  return lowest === 'anybody' || ROLES.indexOf(role) >= ROLES.indexOf(lowest)
}

function getRule(route: string): Rule {
  const own = ruleOf(route)
  const original = ruleOf(route.replace(' /console/api/', ' /api/'))
  const rule = own?.role || own?.opens === 'anybody' ? own : original
  if (!rule) throw new Error(`${route} has no rule`)
  return rule
}

async function ask(route: string, person: Person): Promise<number> {
  const [method = ''] = route.split(' ')
  const { body } = getRule(route)
  const path = pathOf(route).replace('/console/api', '').replace('VIDEO', videoId)
  const sent = body && JSON.parse(JSON.stringify(body).replaceAll('VIDEO', videoId))
  const response = await person.ask(method, path, { body: sent ?? (method === 'POST' || method === 'PUT' ? {} : undefined) })
  await response.body?.cancel()
  return response.status
}

/** All rows but those that time alone changes. */
function digest(): string {
  const rowsOf = (name: string) => readRows(reelgate, `select * from ${name}`).map((row) => ({ ...row, ...TIMES }))
  const tables = listTablesWithoutClock(reelgate)
  return JSON.stringify(tables.map((name) => [name, rowsOf(name)]))
}
const TIMES = { last_seen_at_s: 0, last_used_at_s: 0 }

test('D12: who has not the role for an operation is refused, and nothing is changed', async () => {
  const before = digest()
  const wrong: string[] = []
  let refusedCount = 0
  for (const route of routes)
    for (const role of ROLES.filter((one) => !mayOpen(getRule(route), one))) {
      refusedCount++
      const status = await ask(route, people[role])
      if (status !== (role === 'signed out' ? 401 : 403)) wrong.push(`${route}, ${role}: ${status}`)
    }
  expect(wrong).toEqual([])
  expect(refusedCount).toBeGreaterThan(100)
  expect(digest()).toBe(before)
})

test('D12: each role opens every operation that is its own', async () => {
  const wrong: string[] = []
  for (const role of ROLES)
    for (const route of routes.filter((one) => mayOpen(getRule(one), role))) {
      // Some end the sign-in that asks, so each is asked by a new one.
      const person = role === 'signed out' ? createPerson(reelgate.url) : await signIn(reelgate, nameOf(role))
      const status = await ask(route, person)
      const isPublic = getRule(route).role === 'anybody'
      const isRefused = isPublic ? status >= 500 : [401, 403, 405, 429].includes(status) || status >= 500
      if (isRefused) wrong.push(`${route}, ${role}: ${status}`)
    }
  expect(wrong).toEqual([])
})

test('D03: a key that has every permission opens no operation of the console, and a cookie none of the API', async () => {
  const owner = createOwner(reelgate.url, reelgate.owner.apiKey, { 'Reelgate-Console': '1' })
  const cookie = (await signIn(reelgate)).cookie ?? ''
  const wrong: string[] = []
  for (const route of routes.filter((one) => !['anybody'].includes(getRule(one).role ?? getRule(one).opens))) {
    const [method = ''] = route.split(' ')
    const path = pathOf(route).replace('VIDEO', videoId)
    const body = method === 'GET' ? undefined : {}
    const byKey = await owner.call(method, path, { body })
    const api = path.replace('/console/api/', '/api/')
    const byCookie = await fetch(`${reelgate.url}${api}`, { method, headers: { Cookie: cookie, 'Reelgate-Console': '1' } })
    if (byKey.status !== 401) wrong.push(`${route} with a key: ${byKey.status}`)
    if (![401, 404].includes(byCookie.status)) wrong.push(`${method} ${api} with a cookie: ${byCookie.status}`)
  }
  expect(wrong).toEqual([])
})

test('a link that was made for one role never signs in as another', async () => {
  for (const role of ['viewer', 'owner', 'administrator'] as const) {
    const person = createPerson(reelgate.url)
    await person.get('POST', '/sign-in/link', { token: await makeLink(reelgate, nameOf(role)) })
    expect(await person.whoIs()).toMatchObject({
      user: { name: nameOf(role), role: role === 'viewer' ? 'viewer' : 'owner', administrator: role === 'administrator' },
    })
  }
})
