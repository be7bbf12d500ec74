import { expect, test } from 'vitest'
import { cachedUntilCommit } from '../../../src/db/cache-until-commit.ts'
import { openOwnDatabase } from '../database.ts'

test('a result is read once, and again after the next commit', async () => {
  const { db, write, reads, find } = await open()
  await write((tx) => tx.insertInto('setting').values({ name: 'a', value: '1' }).execute())
  expect([await find('a'), await find('a')]).toEqual(['1', '1'])
  expect(reads()).toBe(1)
  await write((tx) => tx.updateTable('setting').set({ value: '2' }).execute())
  expect(await find('a')).toBe('2')
  expect((await db.selectFrom('setting').selectAll().execute()).length).toBe(1)
})

test('appended rows leave it cached; a group with any other change does not', async () => {
  const { write, reads, find } = await open()
  await write((tx) => tx.insertInto('setting').values({ name: 'a', value: '1' }).execute())
  const append = (name: string) => write.append((tx) => tx.insertInto('setting').values({ name, value: 'x' }).execute())
  expect(await find('a')).toBe('1')
  await append('another')
  expect(await find('a')).toBe('1')
  expect(reads()).toBe(1)
  await Promise.all([append('one more'), write((tx) => tx.updateTable('setting').set({ value: '2' }).execute())])
  expect(await find('a')).toBe('2')
})

test('a missing value is looked up each time', async () => {
  const { reads, find } = await open()
  expect([await find('b'), await find('b')]).toEqual([undefined, undefined])
  expect(reads()).toBe(2)
})

test('a value that was read before a commit is not cached after it', async () => {
  const { write, find } = await open()
  await write((tx) => tx.insertInto('setting').values({ name: 'a', value: '1' }).execute())
  const changed = write((tx) => tx.updateTable('setting').set({ value: '2' }).execute())
  await Promise.all([...Array.from({ length: 50 }, () => find('a')), changed])
  expect(await find('a')).toBe('2')
})

async function open() {
  const database = await openOwnDatabase()
  let reads = 0
  const find = cachedUntilCommit(database.write, async (name) => {
    reads++
    const row = await database.db.selectFrom('setting').select('value').where('name', '=', name).executeTakeFirst()
    return row?.value
  })
  return { ...database, find, reads: () => reads }
}
