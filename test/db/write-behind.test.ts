import { expect, test } from 'vitest'
import { createWriteBehind } from '../../src/db/write-behind.ts'
import { openOwnDatabase } from './database.ts'
import { failingOnce } from './failing-write.ts'

// What changes with many requests is changed in memory and written every few seconds. Here: a number, in a setting.

type Counter = { value: number; saved: number }

async function open(failing?: number) {
  const { db, write } = await openOwnDatabase()
  const clock = { nowS: 1_800_000_000 }
  const counters = createWriteBehind<Counter, number>(
    { write: failing === undefined ? write : failingOnce(write, failing), nowS: () => clock.nowS },
    {
      toChange: ({ value, saved }) => (value === saved ? undefined : value),
      async write(tx, number) {
        const value = String(number)
        await tx
          .insertInto('setting')
          .values({ name: 'counter', value })
          .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
          .execute()
      },
      onWritten(counter, value) {
        counter.saved = value
      },
    },
  )
  const counter = () => counters.getOrMake('counter', () => ({ value: 0, saved: 0 }))
  const stored = async () => {
    const row = await db.selectFrom('setting').select('value').where('name', '=', 'counter').executeTakeFirst()
    return Number(row?.value ?? 0)
  }
  return { counters, counter, stored, clock }
}

test('what many ask for at the same time is loaded once, and all get the same', async () => {
  const { counters } = await open()
  let loads = 0
  const load = async () => ({ value: ++loads, saved: 0 })
  const found = await Promise.all(Array.from({ length: 20 }, () => counters.getOrLoad('counter', load)))
  expect([loads, new Set(found).size]).toEqual([1, 1])
  expect(await counters.getOrLoad('counter', load)).toBe(found[0])
})

test('what changes while it is saved is saved the next time', async () => {
  const { counters, counter, stored } = await open()
  counter().value = 1
  const saving = counters.save()
  await Promise.resolve().then(() => undefined)
  counter().value = 2
  await saving
  const next = counters.save()
  await next
  expect([await stored(), counter().saved]).toEqual([2, 2])
})

test('what cannot be written is kept, and written the next time', async () => {
  const { counters, counter, stored, clock } = await open(1)
  counter().value = 1
  clock.nowS += 1000
  await expect(counters.save()).rejects.toThrow('the disk is full')
  expect([await stored(), counters.size]).toEqual([0, 1])
  await counters.save()
  expect([await stored(), counters.size]).toEqual([1, 0])
})

test('what was not used for five minutes is dropped from memory, and nothing else', async () => {
  const { counters, counter, clock } = await open()
  counter().value = 1
  clock.nowS += 299
  await counters.save()
  expect(counters.size).toBe(1)
  counters.get('counter')
  clock.nowS += 299
  await counters.save()
  expect(counters.has('counter')).toBe(true)
  clock.nowS += 1
  await counters.save()
  expect(counters.size).toBe(0)
})
