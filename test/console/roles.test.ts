import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ViewsBody } from '../../src/http/console/videos.ts'
import { createOwner } from '../client.ts'
import { pathOf, type Rule, ruleOf } from '../http/route-rules.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, listTablesWithoutClock, readRows } from '../rows.ts'
import { createPerson, makeLink, type Person, signIn } from './person.ts'
import { collectRoutes } from './routes.ts'

// Every route of the console's interface × everyone who may ask it. The routes come from the server itself, and each has its rule in
// test/http/route-rules.ts; what API keys open is in test/http/credentials.test.ts.

const ROLES = ['signed out', 'viewer', 'uploader', 'owner', 'administrator'] as const
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
  for (const role of ['viewer', 'uploader', 'owner']) await administrator.get('POST', '/users', { name: nameOf(role), role })
  people = {
    'signed out': createPerson(reelgate.url),
    viewer: await signIn(reelgate, nameOf('viewer')),
    uploader: await signIn(reelgate, nameOf('uploader')),
    owner: await signIn(reelgate, nameOf('owner')),
    administrator,
  }
})
afterAll(() => reelgate?.remove())

const nameOf = (role: string) => (role === 'administrator' ? 'owner' : `a ${role}`)

/** Who may. A permission of the API is an owner's; a viewer has `viewer` alone, an uploader `uploader`, too. */
function mayOpen({ opens, role: needed }: Rule, role: Role): boolean {
  const lowest = opens === 'anybody' ? 'anybody' : (needed ?? (opens === 'viewer' || opens === 'uploader' ? opens : 'owner'))
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

test('D24: an uploader edits the videos that they have uploaded or imported, and no others, and deletes none', async () => {
  const { viewer, uploader, owner } = await signInAll()
  const { videoId: uploaded } = await uploader.get<{ videoId: string }>('PUT', '/videos?title=Theirs')
  const { videoId: ofOwner } = await owner.get<{ videoId: string }>('PUT', '/videos?title=Of%20the%20owner')
  const edits = (id: string) =>
    [
      ['POST', `/videos/${id}`, { title: 'Changed' }],
      ['POST', '/videos/tags', { videos: [id], tags: ['a'] }],
      ['PUT', '/videos/tags', { videos: [id], tags: ['b'] }],
      ['DELETE', '/videos/tags', { videos: [id], tags: ['b'] }],
      ['POST', `/videos/${id}/files`, undefined],
      ['PUT', `/videos/${id}/files/1`, { enabled: 1 }],
      ['DELETE', `/videos/${id}/files/1`, undefined],
      ['POST', `/videos/${id}/retry`, undefined],
      ['PUT', `/videos/${id}/chapters`, { chapters: [] }],
      ['PUT', `/videos/${id}/audio/99`, {}],
      ['PUT', `/videos/${id}`, undefined],
      ['PUT', `/videos/${id}/trim`, { startS: 1 }],
      ['DELETE', `/videos/${id}/replacement`, undefined],
      ['POST', `/videos/${id}/undo`, undefined],
      ['DELETE', `/videos/${id}/kept`, undefined],
    ] as const
  const statuses = async (id: string) =>
    Promise.all(edits(id).map(async ([method, path, body]) => (await uploader.ask(method, path, { body })).status))
  expect(await statuses(uploaded)).toEqual([200, 200, 200, 200, 400, 404, 404, 409, 200, 404, 409, 409, 409, 409, 200])
  for (const other of [videoId, ofOwner, '0'.repeat(32)]) expect(await statuses(other)).toEqual(Array(15).fill(403))
  const mixed = { videos: [uploaded, ofOwner], tags: ['c'] }
  expect((await uploader.ask('POST', '/videos/tags', { body: mixed })).status).toBe(403)
  expect((await uploader.ask('POST', '/videos/tags', { body: { videos: [], tags: ['c'] } })).status).toBe(403)
  expect((await uploader.ask('DELETE', `/videos?videos=${uploaded}`)).status).toBe(403)
  expect((await uploader.ask('PUT', `/videos/${uploaded}/otp-defaults`, { body: {} })).status).toBe(403)
  const access = async (person: Person, id: string) =>
    (await person.get<{ mayEdit: boolean }>('GET', `/videos/${id}/access`)).mayEdit
  expect(await Promise.all([uploaded, ofOwner].map((id) => access(uploader, id)))).toEqual([true, false])
  expect(await Promise.all([uploaded, ofOwner].map((id) => access(owner, id)))).toEqual([true, true])
  expect(await access(viewer, uploaded)).toBe(false)
  const { rows } = await owner.get<{ rows: { id: string; name: string }[] }>('GET', '/users')
  const id = rows.find(({ name }) => name === nameOf('uploader'))?.id
  await owner.get('PUT', `/users/${id}`, { role: 'viewer' })
  expect(await statuses(uploaded)).toEqual(Array(15).fill(403))
  await owner.get('PUT', `/users/${id}`, { role: 'uploader' })
})

/** New sign-ins, since some of the operations above end theirs. */
async function signInAll() {
  const [viewer, uploader, owner] = await Promise.all([
    signIn(reelgate, nameOf('viewer')),
    signIn(reelgate, nameOf('uploader')),
    signIn(reelgate, nameOf('owner')),
  ])
  return { viewer, uploader, owner }
}

test('D24: a key that may upload edits nothing', async () => {
  const { apiKey } = await createKey('uploader')
  const response = await createOwner(reelgate.url, apiKey).call('POST', `/api/videos/${videoId}`, { body: { title: 'theirs' } })
  expect(response.status).toBe(403)
})

async function createKey(permission: string): Promise<{ apiKey: string }> {
  const administrator = await signIn(reelgate)
  const { secret } = await administrator.get<{ secret: string }>('POST', '/keys', { name: permission, permissions: [permission] })
  return { apiKey: secret }
}

test('D25: each role plays every video of the account in the console, at its own host alone, for ten minutes', async () => {
  const { viewer, uploader, owner } = await signInAll()
  for (const person of [viewer, uploader, owner]) {
    const { otp } = await person.get<{ otp: string }>('POST', `/videos/${videoId}/preview`, {})
    expect(otp).toMatch(/^[A-Za-z0-9]{64}$/)
  }
  const [row] = readRows<{ rules: string; expires_at_s: number }>(reelgate, 'select * from otp order by expires_at_s limit 1')
  expect(JSON.stringify(row)).toContain('^127')
  expect((await viewer.ask('POST', `/videos/${videoId}/otp`, { body: {} })).status).toBe(403)
  expect((await viewer.ask('POST', `/videos/${'0'.repeat(32)}/preview`, { body: {} })).status).toBe(404)
})

test('each role reads how often videos were viewed, of its own account alone', async () => {
  const administrator = await signIn(reelgate)
  const { id: account } = await administrator.get<{ id: string }>('POST', '/accounts', { name: 'Another' })
  await administrator.get('PUT', '/sign-in/account', { account })
  const { videoId: ofOther } = await administrator.get<{ videoId: string }>('PUT', '/videos?title=Of+another')
  changeRows(reelgate, `insert into view_total (video_id, view_count) values ('${videoId}', 7), ('${ofOther}', 9)`)
  const { viewer } = await signInAll()
  const { rows } = await viewer.get<ViewsBody>('GET', `/videos/views?ids=${videoId},${ofOther}`)
  expect(rows).toEqual([
    { id: videoId, views: 7 },
    { id: ofOther, views: 0 },
  ])
})

test('a link that was made for one role never signs in as another', async () => {
  for (const role of ['viewer', 'uploader', 'owner', 'administrator'] as const) {
    const person = createPerson(reelgate.url)
    await person.get('POST', '/sign-in/link', { token: await makeLink(reelgate, nameOf(role)) })
    expect(await person.whoIs()).toMatchObject({
      user: { name: nameOf(role), role: role === 'administrator' ? 'owner' : role, administrator: role === 'administrator' },
    })
  }
})
