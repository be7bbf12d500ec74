import pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import { createOwner, type Owner } from '../client.ts'
import { signIn } from '../console/person.ts'
import { openStream } from '../event-stream.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { sampledTests } from '../sample.ts'
import { makeInstallation } from '../several-servers.ts'

const { test, draw } = sampledTests('servers of one database', 3)

type Row = Record<string, unknown>

/** Rows of the installation, read without blocking the servers, which are in this process. */
async function connectTo(url: string | undefined): Promise<(sql: string, ...values: unknown[]) => Promise<Row[]>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return async (sql, ...values) => (await client.query<Row>(sql, values)).rows
}

const bodyOf = async <T = unknown>(owner: Owner, method: string, path: string, body?: unknown): Promise<T> =>
  (await (await owner.call(method, path, body === undefined ? {} : { body })).json()) as T

const readiness = async (url: string) => (await fetch(`${url}/readyz`)).status

test('F-280: servers that share a database answer alike, and a revoked key is refused by all when the call returns', async () => {
  const installation = await makeInstallation()
  const [first, second] = [await installation.start(), await installation.start()]
  await bodyOf(first.owner, 'POST', '/api/videos/folders', { name: 'Lessons', parent: 'root' })
  const { id, secret } = await bodyOf<{ id: string; secret: string }>(first.owner, 'POST', '/api/keys', {
    name: 'short',
    permissions: ['viewer'],
  })
  const holder = createOwner(second.url, secret)
  const listed = await bodyOf(holder, 'GET', '/api/videos/folders/root') // now its holder is cached there
  expect(listed).toMatchObject({ folderList: [{ name: 'Lessons' }] })
  expect((await first.owner.call('DELETE', `/api/keys/${id}`)).status).toBe(200)
  expect((await holder.call('GET', '/api/videos/folders/root')).status).toBe(401)
})

test('F-303: a list has the same ETag at all servers, and each shows what another has just changed', async () => {
  const installation = await makeInstallation()
  const publicUrl = { REELGATE_PUBLIC_URL: 'http://video.example.org', REELGATE_TRUSTED_PROXIES: '10.0.0.1' }
  const [first, second] = [await installation.start(publicUrl), await installation.start(publicUrl)]
  const list = async ({ owner }: typeof first, etag = '') => {
    const answer = await owner.call('GET', '/api/videos', { headers: { 'If-None-Match': etag } })
    return { status: answer.status, etag: answer.headers.get('etag') ?? '', text: await answer.text() }
  }
  for (const [one, other] of [
    [first, second],
    [second, first],
  ] as const) {
    const { etag } = await list(one)
    expect(await list(other, etag)).toMatchObject({ status: 304 })
    const { clientPayload: _, videoId } = await bodyOf<Record<string, string>>(one.owner, 'PUT', '/api/videos?title=New')
    const changed = await list(other, etag)
    expect(changed).toMatchObject({ status: 200, text: expect.stringContaining(videoId ?? '') })
    expect(await list(one, changed.etag)).toMatchObject({ status: 304 })
  }
})

test('F-304: a stream of events that was opened at one server continues at another, with what was missed', async () => {
  const installation = await makeInstallation()
  const [first, second] = [await installation.start(), await installation.start()]
  const headers = { Authorization: `Apisecret ${installation.apiKey}` }
  const before = await openStream(`${first.url}/api/events`, headers)
  await expect.poll(before.lastId).not.toBe('')
  before.close()
  await first.owner.credentials('While it was away')
  const after = await openStream(`${second.url}/api/events`, { ...headers, 'Last-Event-ID': before.lastId() })
  await after.until(({ event }) => event === 'videos')
  after.close()
})

test('F-281: five servers that start concurrently on an empty database make one account and one installation', async () => {
  const installation = await makeInstallation()
  const query = await connectTo(installation.location.databaseUrl)
  const servers = await Promise.all(Array.from({ length: 5 }, () => installation.start()))
  expect(await query('select name from account')).toHaveLength(1)
  expect(await query('select id from server')).toHaveLength(5)
  for (const { url } of servers) expect((await createOwner(url, installation.apiKey).call('GET', '/api/videos')).status).toBe(200)
})

test('F-282: one server has a duty, and another takes it over when that one stops', async () => {
  const installation = await makeInstallation()
  const query = await connectTo(installation.location.databaseUrl)
  const holders = async () =>
    (await query("select server from claim where kind = 'duty' and id is not null")).map(({ server }) => server)
  const first = await installation.start()
  await expect.poll(holders).toHaveLength(1)
  const [former] = await holders()
  const second = await installation.start()
  expect(await holders()).toEqual([former])
  await first.stop()
  await expect.poll(holders).toEqual([expect.not.stringMatching(`^${former}$`)])
  expect(await readiness(second.url)).toBe(200)
})

test('F-283: a server that stops, or is drained from the console, is first not ready, and answers meanwhile', async () => {
  const installation = await makeInstallation()
  const [first, second] = [await installation.start(), await installation.start({ REELGATE_SERVER_NAME: 'left' })]
  const person = await signIn(first)
  const { rows } = await person.get<{ rows: { id: string; name: string; state: string }[] }>('GET', '/system/servers')
  expect(rows).toHaveLength(2)
  const left = rows.find(({ name }) => name === 'left')
  expect(left?.state).toBe('serves')
  await person.get('PUT', `/system/servers/${left?.id}`, { drained: 1 })
  await expect.poll(() => readiness(second.url)).toBe(503)
  expect((await second.owner.call('GET', '/api/videos')).status).toBe(200)
  await person.get('PUT', `/system/servers/${left?.id}`, { drained: 0 })
  await expect.poll(() => readiness(second.url)).toBe(200)
  const stopped = second.stop()
  await expect.poll(() => readiness(second.url), { interval: 20 }).toBe(503)
  expect((await second.owner.call('GET', '/api/videos')).status).toBe(200)
  await stopped
})

test('F-284: a server that is silent for ten seconds loses its writing connection, its row and its work, before another one answers', async () => {
  const installation = await makeInstallation()
  const query = await connectTo(installation.location.databaseUrl)
  await (await installation.start()).stop()
  const frozen = new pg.Client({ connectionString: installation.location.databaseUrl })
  const ended = new Promise<void>((resolve) => frozen.on('error', () => resolve()))
  await frozen.connect()
  const { rows } = await frozen.query<Row>(
    `select pid || ' ' || extract(epoch from backend_start)::text as backend from pg_stat_activity where pid = pg_backend_pid()`,
  )
  await query(
    `insert into server (id, run, name, version, state, started_at_s, beat_at_s, backend)
     values ('frozen', 'a', 'frozen', '0.3.0', 'serving', 1, extract(epoch from now()) - 11, $1)`,
    rows[0]?.backend,
  )
  await query("insert into claim (kind, subject, id, server, ends_at_s) values ('mp4', 'its', 'x', 'frozen', 9999999999)")
  await installation.start()
  await ended
  expect(await query("select id from server where id = 'frozen'")).toEqual([])
  await expect.poll(() => query("select id from claim where server = 'frozen' and id is not null")).toEqual([])
})

test('F-312: a server that joins after the database was away leaves those alone whose signs of life were kept from it', async () => {
  const installation = await makeInstallation()
  const query = await connectTo(installation.location.databaseUrl)
  await (await installation.start()).stop()
  await query(
    `insert into server (id, run, name, version, state, started_at_s, beat_at_s, backend)
     values ('late', 'a', 'late', '0.3.0', 'serving', 1, extract(epoch from now()) - 11, pg_backend_pid() || ' 0')`,
  )
  const joining = installation.start()
  const joined = () => query("select id, beat_at_s from server where id <> 'late'")
  await expect.poll(joined).toHaveLength(1)
  const [before] = await joined()
  await expect.poll(joined).not.toEqual([before]) // it has seen the row
  await query("update server set beat_at_s = extract(epoch from now()), knows = $1 where id = 'late'", before?.id)
  await joining
  expect(await query("select run from server where id = 'late'")).toEqual([{ run: 'a' }])
})

test('F-285: a server that others took for dead answers nothing more, and starts again', async () => {
  const installation = await makeInstallation()
  const query = await connectTo(installation.location.databaseUrl)
  const first = await installation.start()
  await installation.start()
  const [row] = await query('select id, backend from server order by started_at_s, beat_at_s limit 1')
  const [pid] = String(row?.backend).split(' ')
  await query('delete from server where id = $1', row?.id)
  await query('select pg_terminate_backend($1)', pid)
  await first.outdated
  expect((await first.owner.call('GET', '/api/videos')).status).toBe(503)
})

test('F-286: a server with another master key or another bucket does not start', async () => {
  const installation = await makeInstallation()
  await installation.start()
  await expect(installation.start({ REELGATE_MASTER_KEY: 'ab'.repeat(32) })).rejects.toThrow('does not belong')
  const { REELGATE_STORAGE_URL: bucket = '' } = installation.location.env
  await expect(installation.start({ REELGATE_STORAGE_URL: bucket.replace(/\/[^/]*\/\?/, '/other/?') })).rejects.toThrow(
    'REELGATE_STORAGE_URL',
  )
})

test('F-291: an upload that one server began continues at another, and of two that receive it concurrently one counts', async () => {
  const installation = await makeInstallation()
  const [first, second] = [await installation.start(), await installation.start()]
  const client = createTusClient(first.owner)
  const { address } = await client.create(2000)
  const there = address.replace(first.url, second.url)
  expect((await client.patch(address, 0, Buffer.alloc(500, 1))).status).toBe(204)
  expect(await client.offset(there)).toBe(500)
  const both = await Promise.all([address, there].map((each) => client.patch(each, 500, Buffer.alloc(500, 2))))
  const statuses = both.map(({ status }) => status).toSorted()
  expect(statuses[0]).toBe(204)
  expect([409, 423]).toContain(statuses[1])
  expect([await client.offset(address), await client.offset(there)]).toEqual([1000, 1000])
  expect((await client.patch(there, 1000, Buffer.alloc(1000, 3))).status).toBe(204)
})

draw()
