import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { Db } from '../../../src/db/database.ts'
import { DATABASE } from '../../postgres.ts'
import { openOwnDatabase } from '../database.ts'

// The guarantees of `write` on every database. The tests in sqlite/ and postgres/ check how each provides them.

test('calls of one turn share a commit, and those that arrive meanwhile the next one', async () => {
  const { write, db } = await openOwnDatabase()
  let commits = 0
  write.onCommit(() => commits++)
  const later: Promise<void>[] = []
  const first = write(async (tx) => {
    await put(tx, 'first', 'x')
    if (later.length === 0) for (let i = 0; i < 50; i++) later.push(write((own) => put(own, `later ${i}`, 'x')))
  })
  await Promise.all([first, ...Array.from({ length: 200 }, (_, i) => write((tx) => put(tx, `s${i}`, 'x')))])
  expect(commits).toBe(1)
  await Promise.all(later)
  expect(commits).toBe(2)
  expect(await names(db)).toHaveLength(251)
})

test('a result resolves only after its commit: every later read sees the change', async () => {
  const { write, db, slowQueryDb } = await openOwnDatabase()
  for (let i = 0; i < 20; i++) {
    const given = await write(async (tx) => {
      await put(tx, `s${i}`, `${i}`)
      return value(tx, `s${i}`)
    })
    expect([given, await value(db, `s${i}`), await value(slowQueryDb, `s${i}`)]).toEqual(Array.from({ length: 3 }, () => `${i}`))
  }
})

test('no reader sees half of a group: its changes become visible together', async () => {
  const { write, db } = await openOwnDatabase()
  let isDone = false
  const seen: number[] = []
  const reading = (async () => {
    while (!isDone) {
      seen.push((await names(db)).length)
      await turn()
    }
  })()
  for (let group = 0; group < 20; group++)
    await Promise.all(Array.from({ length: 10 }, (_, i) => write((tx) => put(tx, `${group} ${i}`, 'x'))))
  isDone = true
  await reading
  expect(seen.filter((count) => count % 10 !== 0)).toEqual([])
})

test('a call that fails rolls back alone and rejects with its reason; the others of its group are durable', async () => {
  const { write, db } = await openOwnDatabase()
  const outcomes = await Promise.allSettled([
    write((tx) => put(tx, 'a', '1')),
    write.append((tx) => put(tx, 'b', '1')),
    write(async (tx) => {
      await put(tx, 'c', '1')
      await put(tx, 'd', '1')
      throw new Error('changed its mind')
    }),
    write.append((tx) => put(tx, 'a', 'twice')), // breaks the primary key
    write.append((tx) => put(tx, 'e', '1')),
    write(() => {
      throw new Error('never began')
    }),
    write((tx) => put(tx, 'f', '1')),
  ])
  expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([true, true, false, false, true, false, true])
  expect(outcomes[2]).toMatchObject({ reason: { message: 'changed its mind' } })
  expect(outcomes[3]).toMatchObject({ reason: { code: DATABASE === 'sqlite' ? 'SQLITE_CONSTRAINT_PRIMARYKEY' : '23505' } })
  expect(outcomes[5]).toMatchObject({ reason: { message: 'never began' } })
  expect(await names(db)).toEqual(['a', 'b', 'e', 'f'])
  expect(await value(db, 'a')).toBe('1')
})

test('a call that fails by itself rejects, and the next one succeeds', async () => {
  const { write, db } = await openOwnDatabase()
  await expect(write((tx) => sql`no words of SQL`.execute(tx))).rejects.toThrow(/syntax/)
  await expect(write.append(() => Promise.reject(new Error('refused')))).rejects.toThrow('refused')
  await write((tx) => put(tx, 'a', '1'))
  expect(await names(db)).toEqual(['a'])
})

test('changes of a call before its failure are invisible to later calls', async () => {
  const { write } = await openOwnDatabase()
  const failed = write(async (tx) => {
    await put(tx, 'a', '1')
    throw new Error('changed its mind')
  })
  const seen = write(names)
  await expect(failed).rejects.toThrow('changed its mind')
  expect(await seen).toEqual([])
})

test('calls run in the order in which they were made, and each sees the changes of earlier ones', async () => {
  const { write, db } = await openOwnDatabase()
  await write((tx) => put(tx, 'words', ''))
  const append = (text: string) => (tx: Db) =>
    tx
      .updateTable('setting')
      .set((row) => ({ value: sql<string>`${row.ref('value')} || ${sql.lit(text)}` }))
      .where('name', '=', 'words')
      .execute()
  const seen: Promise<string | undefined>[] = []
  for (let i = 0; i < 30; i++) {
    const appended = i % 3 === 0 ? write(append(`${i} `)) : write.append(append(`${i} `))
    seen.push(write((tx) => value(tx, 'words')))
    if (i % 10 === 9) await appended
  }
  const upTo = (last: number) => Array.from({ length: last + 1 }, (_, i) => `${i} `).join('')
  expect(await Promise.all(seen)).toEqual(Array.from({ length: 30 }, (_, i) => upTo(i)))
  expect(await value(db, 'words')).toBe(upTo(29))
})

test('a failing statement between two groups rejects, also if it throws synchronously, and writes continue', async () => {
  const { write, db } = await openOwnDatabase()
  const thrown = write.outsideTransaction(() => {
    throw new Error('never begun')
  })
  await expect(thrown).rejects.toThrow('never begun')
  await expect(write.outsideTransaction(() => Promise.reject(new Error('not possible')))).rejects.toThrow('not possible')
  expect(await write.outsideTransaction(names)).toEqual([])
  await write((tx) => put(tx, 'a', '1'))
  expect(await value(db, 'a')).toBe('1')
})

test('reads are on connections that cannot write', async () => {
  const { db, slowQueryDb } = await openOwnDatabase()
  for (const reader of [db, slowQueryDb]) {
    await expect(put(reader, 'a', '1')).rejects.toThrow()
    await expect(sql`delete from setting`.execute(reader)).rejects.toThrow()
    await expect(sql`create table x (y int)`.execute(reader)).rejects.toThrow()
  }
  expect(await names(db)).toEqual([])
  await expect(sql`select * from x`.execute(db)).rejects.toThrow(/no such table|does not exist/)
})

test('an empty list matches nothing with in, and everything with not in', async () => {
  const { write, db } = await openOwnDatabase()
  await write((tx) => put(tx, 'a', '1'))
  const found = (operator: 'in' | 'not in') => db.selectFrom('setting').select('name').where('name', operator, []).execute()
  expect([await found('in'), await found('not in')]).toEqual([[], [{ name: 'a' }]])
})

const put = async (tx: Db, name: string, text: string) =>
  void (await tx.insertInto('setting').values({ name, value: text }).execute())
const value = async (db: Db, name: string) =>
  (await db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirst())?.value
const names = async (db: Db) => (await db.selectFrom('setting').select('name').orderBy('name').execute()).map(({ name }) => name)
