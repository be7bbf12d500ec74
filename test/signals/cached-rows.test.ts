import { expect, test } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import { cachedRows } from '../../src/signals/cached-rows.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { openOwnDatabase } from '../db/database.ts'

test('a result is read once, and again after the next change of an account', async () => {
  const { write, reads, find } = await open()
  expect([await find('ann'), await find('ann')]).toEqual(['1', '1'])
  expect(reads()).toBe(1)
  await write((tx) => setName(tx, '2'))
  expect(await find('ann')).toBe('2')
})

test('rows that no account depends on leave it cached; a group with any other change does not', async () => {
  const { write, reads, find } = await open()
  const addSetting = (name: string) => write((tx) => tx.insertInto('setting').values({ name, value: 'x' }).execute())
  expect(await find('ann')).toBe('1')
  await addSetting('another')
  expect(await find('ann')).toBe('1')
  expect(reads()).toBe(1)
  await Promise.all([addSetting('one more'), write((tx) => setName(tx, '2'))])
  expect(await find('ann')).toBe('2')
})

test('a missing value is looked up each time', async () => {
  const { reads, find } = await open()
  expect([await find('ben'), await find('ben')]).toEqual([undefined, undefined])
  expect(reads()).toBe(2)
})

test('a value that was read before a commit is not cached after it', async () => {
  const { write, find } = await open()
  const changed = write((tx) => setName(tx, '2'))
  await Promise.all([...Array.from({ length: 50 }, () => find('ann')), changed])
  expect(await find('ann')).toBe('2')
})

test('F-85: what another process changes is seen after a second, though its signal is lost', async () => {
  const { otherWrite, find, passMs } = await open()
  expect(await find('ann')).toBe('1')
  await otherWrite((tx) => setName(tx, '2'))
  passMs(999)
  expect(await find('ann')).toBe('1')
  passMs(1)
  expect(await find('ann')).toBe('2')
})

test('F-302: where another server may answer, its change is seen by the next call, without a signal', async () => {
  const { otherWrite, find, joinOthers } = await open()
  expect(await find('ann')).toBe('1')
  joinOthers()
  expect(await find('ann')).toBe('1')
  await otherWrite((tx) => setName(tx, '2'))
  expect(await find('ann')).toBe('2')
})

const setName = async (tx: Db, name: string) => void (await tx.updateTable('account').set({ name }).execute())

/** One account, whose name is read. `otherWrite` sends no signals here. */
async function open() {
  const { db, write } = await openOwnDatabase()
  await write((tx) =>
    tx.insertInto('account').values({ id: 'ann', name: '1', createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute(),
  )
  let [reads, nowMs, isOther, hasOthers] = [0, 0, false, false]
  const signals = createSignals({ onCommit: (listener) => write.onCommit((changed) => isOther || listener(changed)) })
  const find = cachedRows(
    { signals, servers: { mayOthersAnswer: () => hasOthers } },
    async (id: string) => {
      reads++
      return (await db.selectFrom('account').select('name').where('id', '=', id).executeTakeFirst())?.name
    },
    () => nowMs,
  )
  return {
    write,
    async otherWrite(change: (tx: Db) => Promise<void>) {
      isOther = true
      await write(change)
      isOther = false
    },
    find,
    reads: () => reads,
    joinOthers() {
      hasOthers = true
    },
    passMs(ms: number) {
      nowMs += ms
    },
  }
}
