import { rename } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { newTarget } from '../db/move/installation.ts'
import { shiftedClock } from '../faults/faked-clock.ts'
import { startReelgate } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import { createDatabase } from '../postgres/cluster.ts'
import { startPostgres } from '../postgres.ts'
import { runCli } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { isLong } from '../seeded-random.ts'

type Check = { check: string; state: string; says: string }

async function doctor(env: Record<string, string>) {
  const { code, stdout } = await runCli(['doctor', '--json'], env)
  const checks: Check[] = JSON.parse(stdout)
  return {
    code,
    checks,
    states: Object.fromEntries(checks.map(({ check, state }) => [check, state])),
    says: (name: string) => checks.find(({ check }) => check === name)?.says ?? '',
  }
}

/** How quick the disk is is the machine's own affair. */
const withoutDisks = ({ checks }: { checks: Check[] }) => checks.filter(({ check }) => !/disk$/.test(check))

/** A new installation has no backup yet, and where a machine has no bubblewrap, tests run without. */
const foundWrong = (found: { checks: Check[] }) =>
  withoutDisks(found).filter(({ check, state }) => state !== 'ok' && check !== 'ffmpeg' && check !== 'backup')

test('with and without a running server the doctor finds nothing wrong, and says so in lines or as JSON', async () => {
  const reelgate = await startReelgate({ database: 'sqlite' })
  for (const isRunning of [true, false]) {
    if (!isRunning) await reelgate.stop()
    const found = await doctor(reelgate.env)
    expect(found.code).toBe(0)
    expect(found.checks.map(({ check }) => check)).toEqual([
      'data folder',
      'free space',
      'disk',
      'ffmpeg',
      'start',
      'database',
      'master key',
      'backup',
      'webhook deliveries',
      'files',
      'OTP defaults',
      'API keys',
      'outbound requests',
    ])
    expect(foundWrong(found)).toEqual([])
    expect(found.says('disk')).toMatch(/^fsync takes \d+\.\d ms/)
  }
  const { stdout } = await runCli(['doctor'], reelgate.env)
  expect(stdout).toMatch(/^ok {7}data folder {10}\S+ can be written\.$/m)
})

test('J49: without encoders of the server, and without a worker that takes a kind of chunk, videos wait: a warning', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_ENCODERS: '0' } })
  const env = { ...reelgate.env, REELGATE_ENCODERS: '0' }
  expect((await doctor(env)).says('encoders')).toContain('asked for video and sound')
  const seen = (name: string, kinds: string) =>
    changeRows(
      reelgate,
      `insert into worker (id, name, hash, created_at_s, last_seen_at_s, kinds) values (?, ?, ?, 0, ?, ?)`,
      ...[name, name, Buffer.from(name), Math.floor(Date.now() / 1000), kinds],
    )
  seen('office', 'video')
  expect((await doctor(env)).says('encoders')).toContain('asked for sound')
  seen('attic', 'audio')
  expect((await doctor(env)).states).toMatchObject({ encoders: 'ok' })
})

test('a missing key, ffmpeg or database is trouble, with a remedy', async () => {
  const reelgate = await startReelgate({ database: 'sqlite' })
  await reelgate.stop()
  await rename(reelgate.masterKeyFile, `${reelgate.masterKeyFile}.away`)
  const found = await doctor({ ...reelgate.env, PATH: '/nowhere' })
  expect(found).toMatchObject({ code: 1, states: { 'master key': 'trouble', ffmpeg: 'trouble', database: 'ok' } })
  expect(found.says('ffmpeg')).toContain('apt-get install ffmpeg')
  expect(found.says('master key')).toContain('Put the key file back')
  const other = await doctor({ ...reelgate.env, REELGATE_MASTER_KEY: 'ab'.repeat(32) })
  expect(other.says('master key')).toContain('does not belong to this data folder')
  const missing = new URL(await newTarget())
  missing.pathname = '/none'
  // For one that does not answer it waits, in case that is starting.
  const silent = 'postgres://nobody@127.0.0.1:1/none'
  for (const url of [missing.href, ...(isLong ? [silent] : [])]) {
    const gone = await doctor({ ...reelgate.env, REELGATE_DATABASE_URL: url })
    expect(gone).toMatchObject({ code: 1, states: { database: 'trouble' } })
    expect(gone.says('database')).toMatch(/^The database postgres:\/\/\S+\/none cannot be opened/)
  }
})

test('the doctor says which settings of PostgreSQL are right, and which are wrong', async () => {
  const postgres = await startPostgres({ durable: true })
  const location = await makeLocation({ database: postgres })
  onTestFinished(() => location.remove())
  expect((await runCli(['account', 'list'], location.env)).code).toBe(0)
  const found = await doctor(location.env)
  expect(foundWrong(found)).toEqual([])
  expect(found.says('database disk')).toMatch(/^A commit takes \d+\.\d ms/)
  expect(found.says('search index')).toContain('is installed')

  changeRows(location, 'create table unfinished_move ()')
  expect((await doctor(location.env)).states).toMatchObject({ 'database move': 'trouble' })

  const latin = { ...location, databaseUrl: await createDatabase(postgres.url) }
  const name = 'in_latin'
  changeRows(latin, `create database ${name} encoding 'LATIN1' locale 'C' template template0`)
  const url = new URL(postgres.url)
  url.pathname = `/${name}`
  expect((await doctor({ ...location.env, REELGATE_DATABASE_URL: url.href })).states).toMatchObject({
    database: 'ok',
    'database encoding': 'trouble',
    'database language': 'warning',
    'search index': 'ok',
  })
})

test('a PostgreSQL that would lose data at a power cut is trouble; few connections or another time are warnings', async () => {
  const postgres = await startPostgres({ settings: { max_connections: '12' } })
  const location = await makeLocation({ database: postgres })
  onTestFinished(() => location.remove())
  const found = await doctor(location.env)
  expect(found).toMatchObject({ code: 1, states: { 'database durability': 'trouble', connections: 'warning', clocks: 'ok' } })
  const later = await doctor({ ...location.env, ...shiftedClock('+1h') })
  expect(later.says('clocks')).toMatch(/ by 3[56]\d\d\.\d s\. Set both by NTP\.$/)
})
