import { execFile } from 'node:child_process'
import { cp, mkdir, open, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import SqliteDatabase from 'better-sqlite3'
import { afterAll, beforeAll, expect } from 'vitest'
import { readHighWaterMark } from '../../../src/db/high-water-mark.ts'
import { listFiles } from '../../data-folder.ts'
import { runCli, startReelgate } from '../../reelgate.ts'
import { sampledTests } from '../../sample.ts'
import { copyToHurt, newFolder, serve, startOriginal } from '../../start/refusals.ts'

const { test, draw } = sampledTests('refused databases', 1)

// Starts that are refused because of SQLite's file, as test/start/refusals.test.ts has all others.

let original: Awaited<ReturnType<typeof startOriginal>>
beforeAll(async () => {
  original = await startOriginal()
})
afterAll(() => original.remove())

const newInstallation = () => copyToHurt(original)

test('F-37: a start that lacks the master key does not change the database, so that it can still be used as it was', async () => {
  const dataDir = join(await newFolder(), 'data')
  await mkdir(dataDir)
  const path = join(dataDir, 'reelgate.db')
  const database = new SqliteDatabase(path)
  database.exec(
    "create table setting (name text primary key, value text not null); insert into setting values ('master-key-id', 'ab')",
  )
  database.close()
  const before = await readFile(path)
  expect(await serve({ REELGATE_DATA: dataDir })).toRefuse(/The master key .*data\.key is missing, and .*reelgate\.db needs it/)
  expect(await readFile(path)).toEqual(before)
})

test('F-39: without its key and with a damaged database, the damage is reported and no new key is made', async () => {
  const { dataDir, start } = await newInstallation()
  await rm(`${dataDir}.key`)
  await writeFile(join(dataDir, 'reelgate.db'), 'not a database')
  expect(await start()).toRefuse(/The database .*reelgate\.db cannot be opened: it is damaged/)
  await expect(readFile(`${dataDir}.key`)).rejects.toThrow('ENOENT')
})

test('F-17: if the database is missing and videos exist, no new database is created', async () => {
  const { dataDir, start } = await newInstallation()
  for (const suffix of ['', '-wal', '-shm']) await rm(join(dataDir, `reelgate.db${suffix}`), { force: true })
  expect(await start()).toRefuse(/There are videos in .*sources but no database .*Restore it from a backup/)
  expect(await listFiles({ dataDir, masterKeyFile: '' })).not.toContain('reelgate.db')
  expect(await runCli(['account', 'create', 'owner'], { REELGATE_DATA: dataDir })).toRefuse(/no database/)
})

test('F-17: an installation whose database is missing is never started from scratch, with or without videos', async () => {
  const { dataDir, start } = await newInstallation()
  for (const name of ['reelgate.db', 'sources', 'segments', 'posters']) await rm(join(dataDir, name), { recursive: true })
  expect(await start()).toRefuse(/The database .*reelgate\.db is missing. Restore it from a backup/)
  expect(await listFiles({ dataDir, masterKeyFile: '' })).not.toContain('reelgate.db')
})

test('F-17: a database without its log is rejected, because its last commits are lost, and so is an old copy; the operator can accept both', async () => {
  const folder = await newFolder()
  const reelgate = await startReelgate({ within: folder })
  const { dataDir, owner } = reelgate
  await owner.credentials('in the log')
  await reelgate.kill()
  await cp(join(dataDir, 'reelgate.db-wal'), join(folder, 'kept'))
  await rm(join(dataDir, 'reelgate.db-wal'))
  await rm(join(dataDir, 'reelgate.db-shm'), { force: true })
  const olderThanFolder =
    /The database .*reelgate\.db is older than its data folder: its log reelgate\.db-wal is missing, or it is an old copy/
  expect(await serve({ REELGATE_DATA: dataDir })).toRefuse(olderThanFolder)
  expect(await runCli(['account', 'list'], { REELGATE_DATA: dataDir })).toRefuse(olderThanFolder)
  await cp(join(folder, 'kept'), join(dataDir, 'reelgate.db-wal'))
  await reelgate.restart()
  expect((await owner.list()).rows.map(({ title }) => title)).toEqual(['in the log'])
  await reelgate.stop()
  await cp(join(dataDir, 'reelgate.db'), join(folder, 'old copy'))
  const { value } = readHighWaterMark(join(dataDir, 'reelgate.mark'))
  await reelgate.restart()
  await owner.credentials('later')
  // The high-water mark counts seconds: a copy less than a second older is not recognized.
  await expect.poll(() => readHighWaterMark(join(dataDir, 'reelgate.mark')).value).toBeGreaterThan(value)
  await reelgate.stop()
  await cp(join(folder, 'old copy'), join(dataDir, 'reelgate.db'))
  expect(await serve({ REELGATE_DATA: dataDir })).toRefuse(olderThanFolder)
  await rm(join(dataDir, 'reelgate.mark'))
  await reelgate.restart()
  expect((await owner.list()).count).toBe(1)
})

test('F-17: a database that cannot be written is rejected by name, and is not changed', async () => {
  const { dataDir, start } = await newInstallation()
  const database = join(dataDir, 'reelgate.db')
  const before = await readFile(database)
  await promisify(execFile)('chattr', ['+i', database])
  try {
    expect(await start()).toRefuse(/The database .*reelgate\.db cannot be opened: it is damaged or not writable/)
  } finally {
    await promisify(execFile)('chattr', ['-i', database])
  }
  expect(await readFile(database)).toEqual(before)
})

test('F-17: damage in a database too large for a check at the start is found soon, and then writes are rejected', async () => {
  const { dataDir } = await newInstallation()
  const database = new SqliteDatabase(join(dataDir, 'reelgate.db'))
  database.exec('create table ballast (bytes blob)')
  database.prepare('insert into ballast values (zeroblob(?))').run(70 * 2 ** 20)
  database.exec('create table broken (text)')
  database.close()
  await damageLastPage(join(dataDir, 'reelgate.db'))
  const reelgate = await startReelgate({ env: { REELGATE_DATA: dataDir } }).catch(String)
  if (typeof reelgate === 'string') {
    // Found before it served.
    expect(reelgate).toContain('The database is damaged: nothing was changed. Stop Reelgate and restore it from a backup.')
    return
  }
  await expect.poll(() => reelgate.output()).toContain('database: damaged; rejecting writes')
  const { stdout } = await reelgate.cli('account', 'list', '--json') // reads go on
  expect(JSON.parse(stdout)).toHaveLength(1)
  expect(await reelgate.cli('account', 'create', 'x')).toRefuse(/The database is damaged: nothing was changed/)
  const ready = await fetch(`${reelgate.url}/readyz`)
  expect([ready.status, await ready.json()]).toMatchObject([503, { checks: { database: 'failed' } }])
})

test.each([
  { damaged: 'in its header', at: 0 },
  { damaged: 'on its first page', at: 100 },
  { damaged: 'on a page in its middle', at: 20 * 4096 },
])('F-17: a database that is damaged $damaged is refused by name', async ({ at }) => {
  const { dataDir, start } = await newInstallation()
  const file = await open(join(dataDir, 'reelgate.db'), 'r+')
  await file.write(Buffer.alloc(3000, 0xa5), 0, undefined, at)
  await file.close()
  expect(await start()).toRefuse(/The database .*reelgate\.db cannot be opened: it is damaged.*Restore it from a backup/)
})

async function damageLastPage(path: string): Promise<void> {
  await using file = await open(path, 'r+')
  const { size } = await file.stat()
  await file.write(Buffer.alloc(3000, 0xa5), 0, undefined, size - 4096)
}

draw()
