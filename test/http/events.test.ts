import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { createPerson, makeLink, type Person, signIn } from '../console/person.ts'
import { openStream, type StreamEvent } from '../event-stream.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { beginImport } from '../ingest/import-host.ts'
import { changeRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

// What happens in an account, as a page of the console follows it.

let reelgate: Reelgate & { remove(): Promise<void> }
/** A host of imports, which answers when the test does. */
const slowHost = createServer().listen(0, '127.0.0.1')
const slowHostName = () => `127.0.0.1:${(slowHost.address() as AddressInfo).port}`
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: slowHostName() } })
})
afterAll(async () => {
  await reelgate?.remove()
  slowHost.closeAllConnections()
  slowHost.close()
})

async function follow(url: string, headers: Record<string, string>, lastId?: string) {
  const stream = await openStream(url, { ...headers, ...(lastId !== undefined && { 'Last-Event-ID': lastId }) })
  onTestFinished(() => stream.close())
  await stream.until(({ event }) => event === 'ready')
  return stream
}
const followAs = (person: Person) => follow(`${person.url}/console/api/events`, { Cookie: person.cookie ?? '' })
const followWith = (apiKey: string) => follow(`${reelgate.url}/api/events`, { Authorization: `Apisecret ${apiKey}` })

test('a page sees a video come, the work on it, and its viewer start and leave; a page of another account sees nothing', async () => {
  const { owner } = reelgate
  const stranger = await followWith((await reelgate.newOwner('Another')).apiKey)
  const page = await followAs(await signIn(reelgate))
  expect(page.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(page.headers.get('cache-control')).toBe('no-store')

  const asked = once(slowHost, 'request')
  const videoId = await beginImport(owner, `http://${slowHostName()}/video.mp4`)
  await page.until(({ event }) => event === 'videos')
  const ofVideo = ({ event, data }: StreamEvent) => event === 'progress' && data.video === videoId
  expect((await page.until(ofVideo)).data).toMatchObject({ state: 'importing', part: null })
  const [, response] = await asked
  response.end(await readFile(await makeVideo({ seconds: 8 })))
  await page.until((event) => ofVideo(event) && event.data.state === null)
  const parts = page.received.filter(ofVideo).flatMap(({ data }) => (typeof data.part === 'number' ? [data.part] : []))
  expect(parts).toEqual(parts.toSorted((a, b) => a - b))

  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await owner.issueOtp(videoId, { userId: 'ann' }))).toMatchObject({ playing: true })
  expect((await viewer.key(0)).status).toBe(200)
  const { session } = viewer.state
  const ofSession = (state: string) => (event: StreamEvent) => event.event === 'session' && event.data.state === state
  expect((await page.until(ofSession('started'))).data).toEqual({ session, video: videoId, userId: 'ann', state: 'started' })
  await owner.call('DELETE', `/api/sessions?session=${session}`)
  expect((await page.until(ofSession('ended'))).data).toMatchObject({ session })
  expect(stranger.received.map(({ event }) => event)).toEqual(['ready'])
})

/** @param account its name */
function addAlert(account: string): void {
  const columns = 'account_id, day, cause, subject, at_s, occurrence_count, user_id, video_id, numbers'
  changeRows(
    reelgate,
    `insert into alert (${columns}) select id, 1, 'keys-drawn', 'user ann', 1, 1, 'ann', '', '{}' from account where name = '${account}'`,
  )
}

test('an alert reaches the page of its account', async () => {
  const page = await followWith(reelgate.owner.apiKey)
  addAlert('owner')
  await reelgate.owner.credentials('So that the server commits something')
  const { data } = await page.until(({ event }) => event === 'alert')
  expect(data).toEqual({ cause: 'keys-drawn', video: null, userId: 'ann', session: null })
})

test('F-304: a page that comes back gets the videos and alerts that it has missed, once', async () => {
  const { apiKey, credentials } = await reelgate.newOwner('Comes back')
  const followFrom = (lastId?: string) => follow(`${reelgate.url}/api/events`, { Authorization: `Apisecret ${apiKey}` }, lastId)
  const first = await followFrom()
  await expect.poll(first.lastId).toMatch(/^\d+-0$/)
  first.close()
  await first.ended
  await credentials('While it was away')
  addAlert('Comes back')
  const second = await followFrom(first.lastId())
  await second.until(({ event }) => event === 'alert')
  await expect.poll(second.lastId).toMatch(/^\d+-[1-9]\d*$/)
  expect(second.received.map(({ event }) => event)).toEqual(['ready', 'videos', 'alert'])
  const third = await followFrom(second.lastId())
  await expect.poll(third.lastId).toBe(second.lastId())
  expect(third.received.map(({ event }) => event)).toEqual(['ready'])
})

test('D04: a stream ends when its person signs out, is disabled, or looks into another account', async () => {
  const admin = await signIn(reelgate)
  await admin.get('POST', '/users', { name: 'With a page', role: 'viewer' })
  const { rows } = await admin.get<{ rows: { id: string; name: string }[] }>('GET', '/users')
  const id = rows.find(({ name }) => name === 'With a page')?.id
  const come = async () => {
    const person = createPerson(reelgate.url)
    await person.get('POST', '/sign-in/link', { token: await makeLink(reelgate, 'With a page') })
    return person
  }
  const leaving = await come()
  const first = await followAs(leaving)
  await leaving.get('DELETE', '/sign-in')
  await first.ended

  const second = await followAs(await come())
  await admin.get('PUT', `/users/${id}`, { disabled: 1 })
  await second.ended

  const third = await followAs(admin)
  const { id: account } = await admin.get<{ id: string }>('POST', '/accounts', { name: 'Elsewhere' })
  await admin.get('PUT', '/sign-in/account', { account })
  await third.ended
})

test('a stream ends when its key is revoked', async () => {
  const body = { name: 'For a page', permissions: ['viewer'] }
  const { id, secret } = (await (await reelgate.owner.call('POST', '/api/keys', { body })).json()) as {
    id: string
    secret: string
  }
  const page = await followWith(secret)
  await reelgate.owner.call('DELETE', `/api/keys/${id}`)
  await page.ended
})

test('a person has at most 20 streams, and another one after a page is closed', async () => {
  const person = await signIn(reelgate)
  const pages = await Promise.all(Array.from({ length: 20 }, () => followAs(person)))
  const refused = await person.ask('GET', '/events')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
  pages[0]?.close()
  await vi.waitFor(() => followAs(person), { timeout: 120_000 })
})

test('a server that stops ends its streams instead of waiting for them', async () => {
  const stopped = await startReelgate()
  const page = await follow(`${stopped.url}/api/events`, { Authorization: `Apisecret ${stopped.owner.apiKey}` })
  await stopped.stop()
  await page.ended
  expect(page.wasCutOff()).toBe(false)
})
