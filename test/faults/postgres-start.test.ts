import { execFile } from 'node:child_process'
import { chown, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { makeLocation } from '../installation-folder.ts'
import { type Cluster, createDatabase, openCluster } from '../postgres/cluster.ts'
import { makeDatabase, startPostgres } from '../postgres.ts'
import { runCli, startReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { startProxy } from './proxy.ts'

const { test, draw } = sampledTests('starts on an unusable PostgreSQL', 1)

let postgres: Cluster
let databaseUrl: string
beforeAll(async () => {
  postgres = await openCluster()
  databaseUrl = await createDatabase(postgres.url)
})
afterAll(() => postgres.remove())

/** Starts a server on a folder of its own that must not come up. */
async function refusalOf(url: string) {
  const { dataDir, remove } = await makeLocation({ database: 'sqlite' })
  const env = { REELGATE_DATA: dataDir, REELGATE_DATABASE_URL: url, REELGATE_DEMO: 'off', PORT: '0' }
  const { code, stdout, stderr } = await runCli(['serve'], env)
  await remove()
  const { password } = new URL(url)
  if (password) expect(stdout + stderr).not.toContain(password)
  return [code, stderr.replaceAll(/postgres:\/\/\S+/g, 'DATABASE').trim()]
}

const changed = (change: (url: URL) => void) => {
  const url = new URL(databaseUrl)
  change(url)
  return url.href
}

test.each([
  {
    what: 'a wrong password',
    url: () => changed((url) => Object.assign(url, { password: 'not-the-one' })),
    why: 'the password is wrong',
  },
  { what: 'no password', url: () => changed((url) => Object.assign(url, { password: '' })), why: 'it requires a password' },
  {
    what: 'a database that is not there',
    url: () => changed((url) => Object.assign(url, { pathname: '/elsewhere' })),
    why: 'there is no such database',
  },
  {
    what: 'a host that is not known',
    url: () => changed((url) => Object.assign(url, { hostname: 'nowhere.invalid' })),
    why: 'its host name is not known',
  },
])('F-10: a start with $what is refused in a sentence that names it', async ({ url, why }) => {
  expect(await refusalOf(url())).toEqual([1, refusedBecause(why)])
})

test.each(['/', '#', '?'])(
  'F-10: an address whose password has a %s as it is, which ends it, is refused, and no part of it is shown',
  async (sign) => {
    const url = `postgres://reelgate:5432${sign}s3cr3t@127.0.0.1/reelgate`
    const { env, remove } = await makeLocation({ database: 'sqlite' })
    const refused = [
      await runCli(['doctor'], { ...env, REELGATE_DATABASE_URL: url }),
      await runCli(['serve'], { ...env, REELGATE_DATABASE_URL: url, PORT: '0' }),
      await runCli(['migrate', '--to', url], env),
    ]
    await remove()
    expect(refused).toEqual([
      {
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('REELGATE_DATABASE_URL is invalid: expected a URL such as postgres://'),
      },
      {
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('REELGATE_DATABASE_URL is invalid: expected a URL such as postgres://'),
      },
      { code: 2, stdout: '', stderr: expect.stringContaining('expected --to postgres:') },
    ])
    expect(JSON.stringify(refused)).not.toContain('s3cr3t')
  },
)

test('F-10: an address that names a certificate that is not there is refused in a sentence', async () => {
  const url = changed(({ searchParams }) => searchParams.set('sslrootcert', '/nowhere.pem'))
  const why = "ENOENT: no such file or directory, open '/nowhere.pem'"
  const sentence = `The address of the database DATABASE cannot be used: ${why}. Correct it.`
  expect(await refusalOf(url)).toEqual([1, sentence])
  const { stdout } = await runCli(['doctor', '--json'], { REELGATE_DATABASE_URL: url })
  expect(JSON.parse(stdout.replaceAll(/postgres:\/\/\S+/g, 'DATABASE'))).toContainEqual({
    check: 'database',
    state: 'trouble',
    says: sentence,
  })
})

test('F-10: where the address asks for TLS, a server whose certificate is trusted serves, any other is refused', async () => {
  const own = new URL(await createDatabase(postgres.url))
  own.hostname = 'localhost' // an address by number is not looked for in a certificate
  own.searchParams.set('sslmode', 'verify-full')
  const encrypted = own.href
  expect(await refusalOf(encrypted)).toEqual([1, refusedBecause('it does not support encrypted connections')])
  const certificate = await encrypt(postgres)
  expect(await refusalOf(encrypted)).toEqual([
    1,
    refusedBecause('its certificate is not trusted (sslrootcert=FILE names its authority)'),
  ])
  const trusting = `${encrypted}&sslrootcert=${certificate}`
  const reelgate = await startReelgate({ database: 'sqlite', env: { REELGATE_DATABASE_URL: trusting } })
  expect((await reelgate.owner.call('GET', '/api/videos')).status).toBe(200)
  const sessions = readRows({ dataDir: '', databaseUrl: postgres.adminUrl }, SESSIONS)
  expect(sessions.length).toBeGreaterThan(2)
  expect(sessions.filter(({ encrypted }) => encrypted !== 1)).toEqual([])
})

const SESSIONS = `select ssl::int as encrypted from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'reelgate'`

const refusedBecause = (why: string) =>
  `The database DATABASE cannot be opened: ${why}. Correct REELGATE_DATABASE_URL, or start PostgreSQL.`

/** Gives it a certificate of its own making. @returns its file */
async function encrypt({ folder, adminUrl }: Cluster): Promise<string> {
  const key = join(folder, 'data/server.key')
  const certificate = join(folder, 'data/server.crt')
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', ...subject]
  await promisify(execFile)('openssl', [...made, '-keyout', key, '-out', certificate])
  const { uid, gid } = await stat(folder)
  for (const file of [key, certificate]) await chown(file, uid, gid)
  const admin = { dataDir: '', databaseUrl: adminUrl }
  changeRows(admin, `alter system set ssl = 'on'`)
  changeRows(admin, 'select pg_reload_conf()')
  await expect.poll(() => readRows(admin, `select current_setting('ssl') as ssl`)).toEqual([{ ssl: 'on' }])
  return certificate
}

test('F-10: a PostgreSQL that is too old is refused', async () => {
  const proxy = await startProxy(databaseUrl)
  const { major, number } = versionOf(databaseUrl)
  proxy.rewrite(`${number}`, `${number - (major - 14) * 10_000}`)
  expect(await refusalOf(proxy.through(databaseUrl))).toEqual([
    1,
    'The database DATABASE is PostgreSQL 14, which is too old. Use PostgreSQL 15 or newer.',
  ])
})

function versionOf(url: string) {
  const [row] = readRows<{ number: number }>(
    { dataDir: '', databaseUrl: url },
    `select current_setting('server_version_num')::int as number`,
  )
  const number = row?.number ?? 0
  return { number, major: Math.floor(number / 10_000) }
}

test('F-10: a database that does not keep every text is refused', async () => {
  changeRows(
    { dataDir: '', databaseUrl },
    `create database latin encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0`,
  )
  expect(await refusalOf(changed((url) => Object.assign(url, { pathname: '/latin' })))).toEqual([
    1,
    `The database DATABASE has the encoding LATIN1, expected UTF8. Create one with: create database NAME encoding 'UTF8' template template0.`,
  ])
})

test('F-10: a database in which nothing may be made is refused, and is as it was', async () => {
  const { url = '', remove } = await makeDatabase({ database: postgres })
  changeRows({ dataDir: '', databaseUrl: url }, 'revoke create on schema public from public, pg_database_owner')
  expect(await refusalOf(url)).toEqual([1, expect.stringContaining('may not create tables')])
  expect(readRows({ dataDir: '', databaseUrl: url }, `select 1 from pg_tables where schemaname = 'public'`)).toEqual([])
  await remove()
})

test('F-10: a server that starts before its PostgreSQL comes up with it', async () => {
  const own = await startPostgres()
  const { url = '', env } = await makeDatabase({ database: own })
  await own.stop()
  const starting = startReelgate({ database: 'sqlite', env })
  await pause(1_000) // the fault itself
  await own.start()
  expect((await (await starting).owner.list()).count).toBe(0)
  expect(readRows({ dataDir: '', databaseUrl: url }, 'select id from account')).toHaveLength(1)
})

test('F-10: of several servers that start on an empty database at the same time, one makes the tables and serves, the others say why they do not', async () => {
  const { env } = await makeDatabase({ database: postgres })
  const starts = await Promise.allSettled([1, 2, 3].map(() => startReelgate({ database: 'sqlite', env })))
  const refused = starts.filter((start) => start.status === 'rejected').map(({ reason }) => String(reason))
  expect(refused).toHaveLength(2)
  // Who comes when the tables are there first sees that the key of what is in them is not in its folder.
  for (const words of refused) expect(words).toMatch(/Another Reelgate server uses the database|The master key \S+ is missing/)
})

draw()
