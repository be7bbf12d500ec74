import { spawnSync } from 'node:child_process'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSqlite } from '../../../src/db/sqlite/database.ts'
import { takeFolderLock } from '../../../src/storage/folder-lock.ts'
import { isLong, newChance } from '../../seeded-random.ts'
import { newPath, using } from './database.ts'

const schemaOf = (path: string) =>
  using(path, (database) => database.prepare('select name, sql from sqlite_master order by name').all())

test('a new database has the tables of this version, and opening it again changes nothing', async () => {
  const path = await newPath()
  await (await openSqlite(path)).close()
  const schema = schemaOf(path)
  expect(schema.length).toBeGreaterThan(10)
  await (await openSqlite(path)).close()
  expect(schemaOf(path)).toEqual(schema)
})

test('F-37: a database of a newer version is rejected with the migration’s name, and is not changed', async () => {
  const path = await newPath()
  await (await openSqlite(path)).close()
  using(path, (database) =>
    database.prepare('insert into kysely_migration values (?, ?)').run('9999-from-the-future', '2030-01-01T00:00:00Z'),
  )
  const before = await readFile(path)
  await expect(openSqlite(path)).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/newer version .*9999-from-the-future.*Start that version/),
  })
  expect((await readFile(path)).equals(before)).toBe(true)
})

test('F-37: a database of an unreleased state between two versions is rejected, and is not changed', async () => {
  const path = await newPath()
  await (await openSqlite(path)).close()
  using(path, (database) => database.exec("update kysely_migration set name = '0002-server-keys' where name like '0002-%'"))
  const before = await readFile(path)
  await expect(openSqlite(path)).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/unreleased state .*0002-server-keys/),
  })
  expect((await readFile(path)).equals(before)).toBe(true)
})

test('F-08: a migration that a crash interrupted is completed by the next start', async () => {
  const path = await newPath()
  await (await openSqlite(path)).close()
  const schema = schemaOf(path)
  const half = await newPath()
  // What a crash before the commit leaves: a log without its commit, and at most the table that keeps count.
  using(half, (database) => {
    database.pragma('journal_mode = wal')
    database.exec('create table kysely_migration (name varchar(255) not null primary key, timestamp varchar(255) not null)')
    database.exec('begin; create table setting (name text primary key, value text not null) without rowid')
  })
  await (await openSqlite(half)).close()
  const tables = (rows: unknown[]) => JSON.stringify(rows).match(/create (unique )?(table|index) \w+/g)
  expect(tables(schemaOf(half))?.filter((name) => !name.includes('kysely'))).toEqual(
    tables(schema)?.filter((name) => !name.includes('kysely')),
  )
})

test('F-08: a migration that fails half-way leaves no trace, and says so', async () => {
  const path = await newPath()
  using(path, (database) => database.exec('create table view_total (in_the_way text)'))
  const tablesOf = () => JSON.stringify(schemaOf(path)).match(/create table \w+/gi)
  const before = tablesOf()
  await expect(openSqlite(path)).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('nothing was changed'),
  })
  expect(tablesOf()?.filter((name) => !name.includes('kysely'))).toEqual(before)
  using(path, (database) => database.exec('drop table view_total'))
  await (await openSqlite(path)).close()
})

test('F-08: after kill -9 at any moment of creating the tables, the next start has all of them', async () => {
  const chance = newChance('killed migrations')
  const whole = await newPath()
  const writes = openTraced(whole, []).stderr.match(/pwrite64\(/g)?.length ?? 0
  expect(writes).toBeGreaterThan(10)
  const locations = Array.from({ length: writes }, (_, i) => i + 1)
  let kills = 0
  for (const nth of isLong ? locations : [1, 2, 3].map(() => Math.floor(chance.between(1, writes + 1)))) {
    const path = await newPath()
    const { signal } = openTraced(path, ['-e', `inject=pwrite64:signal=KILL:when=${nth}`])
    kills += Number(signal === 'SIGKILL')
    await (await openSqlite(path)).close()
    expect(schemaOf(path), `killed at write ${nth}`).toEqual(schemaOf(whole))
  }
  expect(kills).toBeGreaterThan(0)
}, 3_600_000)

/** Opens it in a process of its own, of which strace sees every write to the database. */
function openTraced(path: string, inject: readonly string[]) {
  const script = join(import.meta.dirname, 'open-once.ts')
  const args = ['-f', '-e', 'trace=pwrite64', '-e', 'signal=none', ...inject, process.execPath, script, path]
  return spawnSync('strace', args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
}

test.each([
  { damage: 'its header is overwritten', offset: 0, bytes: 100 },
  { damage: 'its first page is overwritten', offset: 100, bytes: 3_996 },
  { damage: 'everything after its first page is overwritten', offset: 4_096, bytes: 1e6 },
])('F-17: a database is refused in one sentence when $damage', async ({ offset, bytes }) => {
  const path = await newPath()
  await (await openSqlite(path)).close()
  const file = await open(path, 'r+')
  const { size } = await file.stat()
  await file.write(Buffer.alloc(Math.min(bytes, size - offset), 0xa5), 0, undefined, offset)
  await file.close()
  const before = await readFile(path)
  await expect(openSqlite(path)).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/damaged.*Restore it from a backup/),
  })
  expect((await readFile(path)).equals(before)).toBe(true)
})

test('F-17: a database with any one page overwritten opens or is rejected with a message', async () => {
  const path = await newPath()
  await (await openSqlite(path)).close()
  using(path, (database) => database.exec('vacuum')) // the pages of a dropped table hold nothing
  const clean = await readFile(path)
  const damaged = await newPath()
  let refused = 0
  for (let offset = 0; offset < clean.length; offset += 4_096) {
    const bytes = Buffer.from(clean)
    bytes.fill(0xa5, offset, offset + 4_096)
    await writeFile(damaged, bytes)
    const outcome = await openSqlite(damaged).then(
      (database) => database.close(),
      (error: unknown) => error,
    )
    if (outcome !== undefined) expect(outcome).toMatchObject({ kind: 'unavailable', message: expect.stringContaining('damaged') })
    if (outcome !== undefined) refused += 1
  }
  expect(refused).toBe(clean.length / 4_096)
})

test('F-17: an empty file or a text in the database’s place is not taken for a new installation', async () => {
  const path = await newPath()
  await writeFile(path, 'This is not a database. '.repeat(500))
  await expect(openSqlite(path)).rejects.toMatchObject({ kind: 'unavailable' })
})

test('F-40: a data folder’s lock is granted once, and again when its holder releases it', async () => {
  const path = await newPath()
  const lock = takeFolderLock(path)
  expect(lock).toBeDefined()
  expect(takeFolderLock(path)).toBeUndefined()
  lock?.release()
  const again = takeFolderLock(path)
  expect(again).toBeDefined()
  again?.release()
})
