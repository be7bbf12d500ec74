import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { CompiledQuery } from 'kysely'
import { expect, onTestFinished } from 'vitest'
import { createAccount } from '../../../src/accounts/account.ts'
import { readConfig } from '../../../src/config/config.ts'
import { dataPaths } from '../../../src/config/data-paths.ts'
import { moveToPostgres } from '../../../src/db/move/move.ts'
import { openSource } from '../../../src/db/move/source.ts'
import { openInstallation } from '../../../src/installation/open.ts'
import { startProxy } from '../../faults/proxy.ts'
import { type Location, makeLocation } from '../../installation-folder.ts'
import { createDatabase } from '../../postgres/cluster.ts'
import { startPostgres } from '../../postgres.ts'
import { runCli, startReelgate } from '../../reelgate.ts'
import { changeRows, readRows } from '../../rows.ts'
import { sampledTests } from '../../sample.ts'
import { newChance, rounds } from '../../seeded-random.ts'
import { hashDatabaseFiles, migrate, migrateSuccessfully, newTarget, readTable } from './installation.ts'

const { test, draw } = sampledTests('moves that are cut off', 1)

const MAIN = join(import.meta.dirname, '../../../bin/main.js')

const VIDEOS = 1_500
const FILLED = ['account', 'video', 'video_text', 'tag', 'video_tag', 'folder']

test('a move that is killed at any point continues when it is started again, and is complete', async () => {
  const location = await newInstallation(VIDEOS)
  const before = hashDatabaseFiles(location)
  const undisturbed = migrateTraced(location, await newTarget(), [])
  expect(undisturbed.status).toBe(0)
  const locations = listKillPoints(undisturbed.stderr)
  const chance = newChance('killed moves')
  const drawn = [1, 2, 3].flatMap(() => locations[Math.floor(chance.between(0, locations.length))] ?? [])
  let kills = 0
  for (const { call, nth } of rounds(0, 1) ? locations : drawn) {
    const url = await newTarget()
    await rm(dataPaths(location.dataDir).mark)
    kills += Number(migrateTraced(location, url, ['-e', `inject=${call}:signal=KILL:when=${nth}`]).signal === 'SIGKILL')
    await migrateSuccessfully(location.env, url)
    const there = { dataDir: '', databaseUrl: url }
    expect(readRows(there, "select to_regclass('unfinished_move') is null as gone")).toEqual([{ gone: 1 }])
    for (const table of FILLED)
      expect(readTable(there, table), `${table}, killed at ${call} ${nth}`).toEqual(readTable(location, table))
    expect((await runCli(['serve'], location.env)).stderr, `killed at ${call} ${nth}`).toMatch(/has moved to postgres:/)
  }
  expect(kills).toBeGreaterThan(0)
  expect(hashDatabaseFiles(location)).toMatchObject(before)
}, 7_200_000)

test('Ctrl-C ends a move cleanly, even while the database does not respond: nothing is left next to the source, and the same command continues', async () => {
  const location = await newInstallation(10)
  const [before, url] = [hashDatabaseFiles(location), await newTarget()]
  const { child, ended, network } = await startInterruptedMove(location, url)
  child.kill('SIGINT')
  expect(await ended).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/\nStopped: the installation is as it was\. Run the same command again: it resumes\.\n$/),
  })
  expect(hashDatabaseFiles(location)).toEqual(before)
  network.reset() // so that the database notices, too
  expect(await resumeMove(location, url)).toBe('Resuming the interrupted move.')
})

test('when the installation was used after its move was interrupted, the move starts again and moves what is there now', async () => {
  const location = await newInstallation(10)
  const url = await newTarget()
  const { ended, network } = await startInterruptedMove(location, url)
  network.reset()
  await ended
  const reelgate = await startReelgate({ database: 'sqlite', env: location.env })
  await reelgate.stop()
  changeRows(location, "update video set description = 'of later' where position = 7")
  changeRows(location, 'delete from video_tag where position = 9')
  expect(await resumeMove(location, url)).toBe('The installation has changed since the interrupted move: starting over.')
})

test('a PostgreSQL that is lost in the middle of a move is reported, and when it is back the same command continues', async () => {
  const location = await newInstallation(10)
  const cluster = await startPostgres()
  const url = await createDatabase(cluster.url)
  const { ended, network } = await startInterruptedMove(location, url)
  network.reset()
  await cluster.crash()
  expect(await ended).toMatchObject({ code: 1, stderr: expect.stringMatching(/was lost\. Run the same command again/) })
  await cluster.start()
  expect(await resumeMove(location, url)).toBe('Resuming the interrupted move.')
})

test('a database with an unfinished move is rejected by a server and by another installation’s move', async () => {
  const location = await newInstallation(10)
  const url = await newTarget()
  const half = { dataDir: '', databaseUrl: url }
  await migrateSuccessfully(location.env, url)
  await makeUnfinished(location, url)

  const refused = await runCli(['serve'], { ...location.env, REELGATE_DATABASE_URL: url })
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/contains an unfinished move\. Run reelgate migrate again/),
  })
  const other = await newInstallation(1)
  expect(await migrate(other.env, url)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('unfinished move of another installation'),
  })
  expect(readRows(half, 'select count(*) as count from video')).toEqual([{ count: 10 }])
})

test('a row that was copied wrongly is noticed, and no server starts on it', async () => {
  const location = await newInstallation(10)
  const url = await newTarget()
  const there = { dataDir: '', databaseUrl: url }
  await migrateSuccessfully(location.env, url)
  await makeUnfinished(location, url)
  changeRows(there, "update tag set video_count = 9 where name = 'tag 3'")
  expect(await migrate(location.env, url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/not an exact copy: the table tag differs: 7 rows in the source, 7 here/),
  })
  expect((await runCli(['serve'], { ...location.env, REELGATE_DATABASE_URL: url })).stderr).toMatch(/contains an unfinished move/)
})

test('a move that cannot be recorded in the data folder says so, and the same command records it', async () => {
  const location = await newInstallation(1)
  const url = await newTarget()
  const { mark } = dataPaths(location.dataDir)
  await writeFile(mark, '0\n')
  await promisify(execFile)('chattr', ['+i', mark])
  try {
    expect(await migrate(location.env, url)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/moved to postgres:.*, but that cannot be recorded in /),
    })
  } finally {
    await promisify(execFile)('chattr', ['-i', mark])
  }
  expect(await migrateSuccessfully(location.env, url)).toEqual({ tables: [], before: true })
  expect((await runCli(['account', 'list'], location.env)).stderr).toMatch(/^The installation has moved/)
})

test('after a move only one database is accepted: the old one is rejected until the operator goes back to it, then the other one is', async () => {
  const location = await newInstallation(1)
  const url = await newTarget()
  expect(await migrateSuccessfully(location.env, url)).toMatchObject({ before: false })
  expect(await migrateSuccessfully(location.env, url)).toEqual({ tables: [], before: true })
  expect((await runCli(['serve'], location.env)).stderr).toMatch(
    /^The installation has moved to postgres:\/\/[\d.:]+\/reelgate_\w+, and .*reelgate\.db is as it was before\. Set REELGATE_DATABASE_URL to that database\. To go back, .* remove .*reelgate\.mark and start again\.\n$/,
  )
  expect((await runCli(['account', 'list'], location.env)).stderr).toMatch(/^The installation has moved/)
  const { database, mark } = dataPaths(location.dataDir)
  await rename(database, `${database}.removed`)
  expect((await runCli(['serve'], location.env)).stderr).toMatch(
    /^The installation in .*data has its database in postgres:\/\/[\d.:]+\/reelgate_\w+\. Set REELGATE_DATABASE_URL to it\.\n$/,
  )
  await rename(`${database}.removed`, database)

  await rm(mark)
  const back = await startReelgate({ database: 'sqlite', env: location.env })
  await back.stop()
  const there = { ...location.env, REELGATE_DATABASE_URL: url }
  expect((await runCli(['serve'], there)).stderr).toMatch(/is older than its data folder: .*was replaced by reelgate\.db again/)
  expect(await migrate(location.env, url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /as it was when it was moved there, and .*reelgate\.db has been used since\. Create an empty database/,
    ),
  })
})

test('a server that is given a new database before the installation has moved there does not start from scratch: it says what to do', async () => {
  const location = await newInstallation(1)
  const url = await newTarget()
  expect(await runCli(['serve'], { ...location.env, REELGATE_DATABASE_URL: url, PORT: '0' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^The installation has not moved yet: .*reelgate\.db, and postgres:.* is empty\. Run reelgate migrate/,
    ),
  })
  expect(await migrateSuccessfully(location.env, url)).toMatchObject({ before: false })
})

test('a running server, an empty folder, a database that does not exist: each is rejected with a message', async () => {
  const url = await newTarget()
  const running = await startReelgate({ database: 'sqlite' })
  expect(await migrate(running.env, url)).toMatchObject({ code: 1, stderr: expect.stringMatching(/A server runs on .* Stop it/) })
  const empty = await makeLocation({ database: 'sqlite' })
  onTestFinished(() => empty.remove())
  expect(await migrate(empty.env, url)).toMatchObject({ code: 1, stderr: expect.stringContaining('no installation in') })
  const location = await newInstallation(1)
  const nowhere = url.replace(/[^/]+$/, 'nowhere')
  expect(await migrate(location.env, nowhere)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no such database'),
  })
  expect(await migrate(location.env, 'mysql://localhost/x')).toMatchObject({ code: 2 })
  expect(await runCli(['migrate'], location.env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('REELGATE_DATABASE_URL'),
  })
  await writeFile(dataPaths(location.dataDir).database, 'This is no database. '.repeat(1000))
  expect(await migrate(location.env, url)).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be opened') })
  expect(
    readRows({ dataDir: '', databaseUrl: url }, 'select count(*) as count from pg_tables where schemaname = current_schema()'),
  ).toEqual([{ count: 0 }])
})

test('a database that is not empty, with an object of any kind in any schema, is rejected and not changed', async () => {
  const location = await newInstallation(1)
  const path = dataPaths(location.dataDir).database
  for (const [name, statement] of Object.entries(FOREIGN_OBJECTS)) {
    const url = await newTarget()
    const there = { dataDir: '', databaseUrl: url }
    changeRows(there, statement)
    const move = moveToPostgres({ path, url, installation: 'this' }, NO_LISTENER)
    await expect(move, statement).rejects.toThrow(
      `is not empty: it has ${name}. Make an empty database and name that one. Nothing was`,
    )
    expect(readRows(there, "select to_regclass('unfinished_move') is null as gone")).toEqual([{ gone: 1 }])
  }
  const url = await newTarget()
  changeRows({ dataDir: '', databaseUrl: url }, 'revoke create on schema public from pg_database_owner')
  await expect(moveToPostgres({ path, url, installation: 'this' }, NO_LISTENER)).rejects.toThrow(
    /may not create tables there\. Make that user/,
  )
})

/** Objects that prevent a move, by name. */
const FOREIGN_OBJECTS = {
  'public.posts': 'create table posts (id int)',
  'shop.orders': 'create schema shop; create table shop.orders (id int)',
  'public.account': 'create sequence account',
  'public.otp': "create type otp as enum ('one')",
  'public.fold': "create function fold(text) returns text language sql as 'select $1'",
}

const NO_LISTENER = { started: () => undefined, progress: () => undefined, signal: new AbortController().signal }

/** An installation on SQLite that no server uses. */
async function newInstallation(videos: number): Promise<Location> {
  const location = await makeLocation({ database: 'sqlite' })
  onTestFinished(() => location.remove())
  await mkdir(location.dataDir)
  const installation = await openInstallation(readConfig(location.env))
  const { accountId } = await createAccount({ ...installation, nowS: () => 1 }, 'ann', { mayUpload: true, mayImport: true })
  const numbers = `with recursive number (n) as (select 1 union all select n + 1 from number where n < ${videos})`
  await installation.write(async (tx) => {
    await tx.executeQuery(CompiledQuery.raw(`${numbers} ${VIDEO} from number`, [accountId]))
    await tx.executeQuery(CompiledQuery.raw(TAGS))
  })
  await installation.close()
  return location
}

const VIDEO = `insert into video (id, account_id, title, description, file_name, upload_time_s, status)
  select printf('%032x', n), ?, 'Video ' || n, '', n || '.mp4', n, 'PRE-Upload'`
const TAGS = `insert into video_tag (account_id, name, position, ordinal) select account_id, 'tag ' || (position % 7), position, 1 from video`

/** Turns a moved database back into one just before the end of its move. */
async function makeUnfinished(location: Location, url: string): Promise<void> {
  const there = { dataDir: '', databaseUrl: url }
  const source = openSource(dataPaths(location.dataDir).database)
  changeRows(there, 'create table unfinished_move (installation text not null, fingerprint text not null)')
  changeRows(there, "insert into unfinished_move select value, ? from setting where name = 'master-key-id'", source.fingerprint)
  source[Symbol.dispose]()
  await rm(dataPaths(location.dataDir).mark)
}

const CALLS = ['write', 'writev', 'fsync', 'unlink']

/** Each call of the thread that makes most of them: strace counts per thread. */
function listKillPoints(traced: string): { call: string; nth: number }[] {
  return CALLS.flatMap((call) => {
    const threads = Map.groupBy(traced.matchAll(new RegExp(`^(?:\\[pid +(\\d+)\\] )?${call}\\(`, 'gm')), ([, thread]) => thread)
    const most = Math.max(0, ...[...threads.values()].map((calls) => calls.length))
    return Array.from({ length: most }, (_, i) => ({ call, nth: i + 1 }))
  })
}

/** Runs the move in a process of its own under strace. */
function migrateTraced({ env }: Location, url: string, inject: readonly string[]) {
  const args = [
    '-f',
    '-e',
    `trace=${CALLS}`,
    '-e',
    'signal=none',
    ...inject,
    process.execPath,
    MAIN,
    'migrate',
    '--to',
    url,
    '--json',
  ]
  return spawnSync('strace', args, { encoding: 'utf8', maxBuffer: 2 ** 28, env: { PATH: process.env.PATH, ...env } })
}

/** Starts a move that gets no further than the tags: they are inserted, but the response is lost. */
async function startInterruptedMove({ env }: Location, url: string) {
  const network = await startProxy(url)
  const isHalf = network.swallowAnswer('INSERT', 'insert into "tag"')
  const child = spawn(process.execPath, [MAIN, 'migrate', '--to', network.through(url)], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const said = text(child.stderr)
  const ended = once(child, 'close').then(async ([code]: (number | null)[]) => ({ code, stderr: await said }))
  await Promise.race([isHalf, ended.then(({ stderr }) => Promise.reject(new Error(stderr)))])
  return { child, ended, network }
}

/** Runs the same command again, to the end. @returns its first line on stderr */
async function resumeMove(location: Location, url: string) {
  const { code, stdout, stderr } = await runCli(['migrate', '--to', url], location.env)
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^Moved, and equal on both sides/)])
  for (const table of FILLED)
    expect(readTable({ dataDir: '', databaseUrl: url }, table), table).toEqual(readTable(location, table))
  return stderr.split('\n')[0]
}

draw()
