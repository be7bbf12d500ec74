import { readFile, stat } from 'node:fs/promises'
import SqliteDatabase from 'better-sqlite3'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import type { Database, Db } from '../../../src/db/database.ts'
import { truncateWal } from '../../../src/db/sqlite/database.ts'
import { openOwnSqlite } from './database.ts'

test('calls of one turn share one commit', async () => {
  const { write, commits } = await open()
  const before = await commits()
  await Promise.all(Array.from({ length: 200 }, (_, i) => write((tx) => put(tx, `s${i}`, 'x'))))
  expect(await commits()).toBe(before + 1)
})

test('calls that arrive while a group commits form the next one', async () => {
  const { write, commits, names } = await open()
  const before = await commits()
  const later: Promise<void>[] = []
  await write(async (tx) => {
    await put(tx, 'first', 'x')
    for (let i = 0; i < 50; i++) later.push(write((own) => put(own, `later ${i}`, 'x')))
  })
  await Promise.all(later)
  expect(await commits()).toBe(before + 2)
  expect(await names()).toHaveLength(51)
})

test('a write resolves only after its commit, when another connection sees it', async () => {
  const { write, otherProgram } = await open()
  await write((tx) => put(tx, 'a', '1'))
  expect(otherProgram.prepare('select value from setting').pluck().all()).toEqual(['1'])
})

test.each(['write', 'append'] as const)(
  'when a %s makes SQLite roll back the whole transaction, each call of its group rejects',
  async (kind) => {
    const { write, names } = await open()
    await write((tx) => put(tx, 'a', '1'))
    const rollBack = (tx: Db) => sql`insert or rollback into setting (name, value) values ('a', 'twice')`.execute(tx)
    const outcomes = await Promise.allSettled([
      write.append((tx) => put(tx, 'b', '1')),
      kind === 'write' ? write(rollBack) : write.append(rollBack),
      write.append((tx) => put(tx, 'c', '1')),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(await names()).toEqual(['a'])
  },
)

test('a statement between two groups runs in no transaction', async () => {
  const { write, db } = await open()
  const writes = [
    write((tx) => put(tx, 'a', '1')),
    write.outsideTransaction((own) => sql`vacuum`.execute(own)),
    write((tx) => put(tx, 'b', '1')),
  ]
  await Promise.all(writes)
  expect(await value(db, 'b')).toBe('1')
})

test('F-16: while another program locks the database, writes are rejected with a sentence and reads continue; then everything works again', async () => {
  const { write, db, otherProgram } = await open()
  await write((tx) => put(tx, 'a', '1'))
  otherProgram.exec('begin immediate')
  const refused = await Promise.allSettled([write((tx) => put(tx, 'b', '1')), write((tx) => put(tx, 'c', '1'))])
  for (const outcome of refused)
    expect(outcome).toMatchObject({
      status: 'rejected',
      reason: { kind: 'unavailable', message: expect.stringContaining('in use by another program') },
    })
  expect(await value(db, 'a')).toBe('1')
  otherProgram.exec('rollback')
  await write((tx) => put(tx, 'd', '1'))
  expect(await value(db, 'd')).toBe('1')
})

test('F-16: writes that wait for another program do not block reads, and run as soon as the lock is free', async () => {
  const { write, db, otherProgram, commits } = await open()
  const before = await commits()
  otherProgram.exec('begin immediate')
  const settled: string[] = []
  const early = write((tx) => put(tx, 'early', '1')).then(() => settled.push('early'))
  for (let looks = 0; looks < 20; looks++) {
    await new Promise((resolve) => setTimeout(resolve, 10)) // a blocked event loop would not get here while the lock is held
    expect(await value(db, 'early')).toBeUndefined()
  }
  const late = write((tx) => put(tx, 'late', '1')).then(() => settled.push('late'))
  expect(settled).toEqual([])
  otherProgram.exec('rollback')
  await Promise.all([early, late])
  expect(settled).toEqual(['early', 'late'])
  expect(await commits()).toBe(before + 1)
})

test('F-29: commits are synchronous to the disk, with a write-ahead log and without traces of what was deleted', async () => {
  const { write, db } = await open()
  const pragma = async (name: string, on: Db) =>
    Object.values((await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(on)).rows[0] ?? {})[0]
  expect(await pragma('journal_mode', db)).toBe('wal')
  const ofWriter = await write.outsideTransaction(async (own) => [
    await pragma('synchronous', own),
    await pragma('foreign_keys', own),
    await pragma('secure_delete', own),
  ])
  expect(ofWriter).toEqual([2, 1, 1]) // FULL
})

test('deleted data is in neither file of the database after a checkpoint', async () => {
  const { write, path } = await open()
  await write((tx) => put(tx, 'a', 'SomethingThatOnceWasHere'))
  await write((tx) => tx.deleteFrom('setting').where('name', '=', 'a').execute())
  await truncateWal(write)
  expect((await stat(`${path}-wal`)).size).toBe(0)
  expect((await readFile(path)).includes('SomethingThatOnceWasHere')).toBe(false)
})

const put = async (tx: Db, name: string, text: string) =>
  void (await tx.insertInto('setting').values({ name, value: text }).execute())
const value = async (db: Db, name: string) =>
  (await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirst())?.value

type Opened = Database & {
  path: string
  otherProgram: SqliteDatabase.Database
  commits(): Promise<number>
  names(): Promise<string[]>
}

/** A database of the test's own, and a connection of another program. */
async function open(): Promise<Opened> {
  const database = await openOwnSqlite()
  const otherProgram = new SqliteDatabase(database.path)
  onTestFinished(() => void otherProgram.close())
  return {
    ...database,
    otherProgram,
    commits: async () => countCommits(database.path),
    names: async () => (await database.db.selectFrom('setting').select('name').orderBy('name').execute()).map(({ name }) => name),
  }
}

/** Commits in the write-ahead log: a frame with the database's size in its header ends one (sqlite.org/fileformat2.html, 4.1). */
async function countCommits(path: string): Promise<number> {
  const log = await readFile(`${path}-wal`)
  const pageBytes = log.readUInt32BE(8)
  let commits = 0
  for (let at = 32; at + 24 + pageBytes <= log.length; at += 24 + pageBytes) if (log.readUInt32BE(at + 4) > 0) commits += 1
  return commits
}
