import { open } from 'node:fs/promises'
import SqliteDatabase from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import type { Db } from '../../../src/db/database.ts'
import { findDamage, findDamageInWorker } from '../../../src/db/sqlite/damage.ts'
import { openSlowReads } from '../../../src/db/sqlite/slow-reads.ts'
import { openOwnSqlite } from './database.ts'

const always = () => true
const findByTable = (db: Db, mayContinue: () => boolean) => findDamageInWorker(db, { blockWrites: () => undefined }, mayContinue)

test('F-17: an intact database is found intact, checked as a whole and table by table', async () => {
  const { db } = await openOwnSqlite()
  expect(await findDamage(db)).toBeUndefined()
  expect(await findByTable(db, always)).toBeUndefined()
})

test.each([
  { what: 'a table', findOffset: pageOffset('a "strange" table') },
  { what: 'an index', findOffset: pageOffset('an_index') },
  { what: 'the list of free pages', findOffset: () => 36 }, // their number, in the header
])('F-17: damage in $what is found table by table too', async ({ findOffset }) => {
  expect(await findByTable(await openDamaged(findOffset), always)).toMatch(/^quick_check: .|malformed/)
})

test('F-09: a stop ends the check of a large database between two tables', async () => {
  const db = await openDamaged(pageOffset('a "strange" table'))
  let calls = 0
  expect(await findByTable(db, () => ++calls <= 3)).toBeUndefined()
  expect(calls).toBe(4)
})

function pageOffset(name: string) {
  return (database: SqliteDatabase.Database) => {
    const pages = database.prepare<[string], { rootpage: number }>('select rootpage from sqlite_master where name = ?')
    return ((pages.get(name)?.rootpage ?? expect.fail()) - 1) * 4096
  }
}

/** A database with an additional table and four wrong bytes at an offset of its file, opened like a running server’s checker. */
async function openDamaged(findOffset: (database: SqliteDatabase.Database) => number): Promise<Db> {
  const { path } = await openOwnSqlite()
  const database = new SqliteDatabase(path)
  database.exec(`create table "a ""strange"" table" (text); create index an_index on "a ""strange"" table" (text);
    insert into "a ""strange"" table" values ('here'); pragma wal_checkpoint(truncate)`)
  const offset = findOffset(database)
  database.close()
  await using file = await open(path, 'r+')
  await file.write(Buffer.from([9, 9, 9, 9]), 0, undefined, offset)
  const checker = openSlowReads(path)
  onTestFinished(() => checker.destroy())
  return checker
}
