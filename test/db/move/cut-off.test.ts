import { spawnSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CompiledQuery } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { createAccount } from '../../../src/accounts/account.ts'
import { dataPaths, readConfig } from '../../../src/config.ts'
import { openSource } from '../../../src/db/move/source.ts'
import { openInstallation } from '../../../src/installation.ts'
import { newChance, rounds } from '../../pipeline/chance.ts'
import { makePlace, type Place } from '../../place.ts'
import { runCli, startReelgate } from '../../reelgate.ts'
import { changeRows, readRows } from '../../rows.ts'
import { hashOf, migrate, moved, newTarget, rowsOf } from './installation.ts'

const VIDEOS = 5_000
const FILLED = ['account', 'video', 'video_text', 'tag', 'video_tag', 'folder']

test('a move that is killed, wherever that is, goes on when it is asked for again, and is whole', async () => {
  const place = await newInstallation(VIDEOS)
  const hash = hashOf(place)
  const undisturbed = migrateTraced(place, await newTarget(), [])
  expect(undisturbed.status).toBe(0)
  const writes = mostOfOneThread(undisturbed.stderr)
  const chance = newChance('killed moves')
  const places = Array.from({ length: writes }, (_, i) => i + 1)
  let kills = 0
  for (const nth of rounds(0, 1) ? places : [1, 2, 3].map(() => Math.floor(chance.between(1, writes + 1)))) {
    const url = await newTarget()
    kills += Number(migrateTraced(place, url, ['-e', `inject=write:signal=KILL:when=${nth}`]).signal === 'SIGKILL')
    const { code, stderr } = await migrate(place.env, url)
    // One that was killed after its last word to the database was whole before.
    if (code !== 0) expect(stderr).toMatch(/is not empty/)
    const there = { dataDir: '', databaseUrl: url }
    expect(readRows(there, "select to_regclass('unfinished_move') is null as gone")).toEqual([{ gone: 1 }])
    for (const table of FILLED) expect(rowsOf(there, table), `${table}, killed at write ${nth}`).toEqual(rowsOf(place, table))
  }
  expect(kills).toBeGreaterThan(0)
  expect(hashOf(place)).toBe(hash)
}, 3_600_000)

test('a database with half a move is refused by a server and by another installation’s move; the same one goes on, or begins anew where the source has changed', async () => {
  const place = await newInstallation(10)
  const url = await newTarget()
  await moved(place.env, url)
  const half = { dataDir: '', databaseUrl: url }
  await makeUnfinished(place, url)
  changeRows(half, "update unfinished_move set state = 'as it was a day before'")
  changeRows(half, "update video set title = 'of before' where position = 3")

  const refused = await runCli(['serve'], { ...place.env, REELGATE_DATABASE_URL: url })
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/in part only\. Run reelgate migrate again/) })
  const other = await newInstallation(1)
  expect(await migrate(other.env, url)).toMatchObject({ code: 1, stderr: expect.stringContaining('another installation’s move') })
  expect(readRows(half, 'select count(*) as count from video')).toEqual([{ count: 10 }])
  await moved(place.env, url)
  for (const table of FILLED) expect(rowsOf(half, table), table).toEqual(rowsOf(place, table))
})

test('what came over differently is noticed, and no server starts on it; a database that has anything in it is refused', async () => {
  const place = await newInstallation(10)
  const url = await newTarget()
  const there = { dataDir: '', databaseUrl: url }
  await moved(place.env, url)
  expect(await migrate(place.env, url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is not empty: it has the table/),
  })

  await makeUnfinished(place, url)
  changeRows(there, "update tag set video_count = 9 where name = 'tag 3'")
  expect(await migrate(place.env, url)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/no true copy: the table tag came over differently: 7 rows there, 7 here/),
  })
  expect((await runCli(['serve'], { ...place.env, REELGATE_DATABASE_URL: url })).stderr).toMatch(/in part only/)
})

test('a running server, a folder with nothing in it, a database that is not there: each is refused in a sentence', async () => {
  const url = await newTarget()
  const running = await startReelgate({ database: 'sqlite' })
  expect(await migrate(running.env, url)).toMatchObject({ code: 1, stderr: expect.stringMatching(/A server runs on .* Stop it/) })
  const empty = await makePlace({ database: 'sqlite' })
  onTestFinished(() => empty.remove())
  expect(await migrate(empty.env, url)).toMatchObject({ code: 1, stderr: expect.stringContaining('no installation in') })
  const place = await newInstallation(1)
  const nowhere = url.replace(/[^/]+$/, 'nowhere')
  expect(await migrate(place.env, nowhere)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no such database'),
  })
  expect(await migrate(place.env, 'mysql://localhost/x')).toMatchObject({ code: 2 })
  expect(await runCli(['migrate'], place.env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('REELGATE_DATABASE_URL'),
  })
  await writeFile(dataPaths(place.dataDir).database, 'This is no database. '.repeat(1000))
  expect(await migrate(place.env, url)).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot be opened') })
  expect(
    readRows({ dataDir: '', databaseUrl: url }, 'select count(*) as count from pg_tables where schemaname = current_schema()'),
  ).toEqual([{ count: 0 }])
})

/** An installation in SQLite that no server uses, with so many videos. */
async function newInstallation(videos: number): Promise<Place> {
  const place = await makePlace({ database: 'sqlite' })
  onTestFinished(() => place.remove())
  await mkdir(place.dataDir)
  const installation = await openInstallation(readConfig(place.env))
  const { accountId } = await createAccount({ ...installation, nowS: () => 1 }, 'ann', { mayUpload: true, mayImport: true })
  const numbers = `with recursive number (n) as (select 1 union all select n + 1 from number where n < ${videos})`
  await installation.write(async (tx) => {
    await tx.executeQuery(CompiledQuery.raw(`${numbers} ${VIDEO} from number`, [accountId]))
    await tx.executeQuery(CompiledQuery.raw(TAGS))
  })
  await installation.close()
  return place
}

const VIDEO = `insert into video (id, account_id, title, description, file_name, upload_time_s, status)
  select printf('%032x', n), ?, 'Film ' || n, '', n || '.mp4', n, 'PRE-Upload'`
const TAGS = `insert into video_tag (account_id, name, position, ordinal) select account_id, 'tag ' || (position % 7), position, 1 from video`

/** A moved database as it is just before the end of its move. */
async function makeUnfinished(place: Place, url: string): Promise<void> {
  const there = { dataDir: '', databaseUrl: url }
  const source = openSource(dataPaths(place.dataDir).database)
  changeRows(there, 'create table unfinished_move (installation text not null, state text not null)')
  changeRows(there, "insert into unfinished_move select value, ? from setting where name = 'master-key-id'", source.state)
  source[Symbol.dispose]()
}

/** How many writes the busiest thread made: strace counts for each by itself. */
function mostOfOneThread(traced: string): number {
  const threads = Map.groupBy(traced.matchAll(/^(?:\[pid +(\d+)\] )?write\(/gm), ([, thread]) => thread)
  return Math.max(...[...threads.values()].map((writes) => writes.length))
}

/** In a process of its own, of which strace sees every write. */
function migrateTraced({ env }: Place, url: string, inject: readonly string[]) {
  const command = [process.execPath, join(import.meta.dirname, '../../../src/main.ts'), 'migrate', '--to', url, '--json']
  const args = ['-f', '-e', 'trace=write', '-e', 'signal=none', ...inject, ...command]
  return spawnSync('strace', args, { encoding: 'utf8', maxBuffer: 2 ** 28, env: { PATH: process.env.PATH, ...env } })
}
