import { sql } from 'kysely'
import { expect, test } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import { createSignals, type SignalData, type SignalName } from '../../src/signals/signals.ts'
import { openOwnDatabase } from '../db/database.ts'

test('F-86: every table whose change alters what keys, sign-ins and lists are answered with sends account-changed, also through triggers', async () => {
  const { db } = await openOwnDatabase('sqlite') // whose triggers say so as text; PostgreSQL has the same ones
  const { rows } = await sql<{ table: string; body: string }>`
    select tbl_name as "table", sql as body from sqlite_master where type = 'trigger'`.execute(db)
  const changes = rows.map(({ table, body }) => ({
    table,
    targets: [...body.matchAll(/\b(?:update|insert into|delete from) (\w+)\b/g)].map(([, target]) => target),
  }))
  const affecting = new Set(['account', 'api_key', 'console_user', 'sign_in', 'video'])
  for (let size = 0; size < affecting.size; ) {
    size = affecting.size
    for (const { table, targets } of changes)
      if (targets.some((target) => target !== undefined && affecting.has(target))) affecting.add(table)
  }
  expect(affecting.size).toBeGreaterThan(6)
  const silent = [...affecting].filter((table) => !sentBy(table).includes('account-changed'))
  expect(silent).toEqual([])
})

/** The signals that a commit sends which changes a table. */
function sentBy(table: string): SignalName[] {
  let commit = (_: ReadonlySet<string>): void => undefined
  const signals = createSignals({
    onCommit(listener) {
      commit = listener
    },
  })
  const sent: SignalName[] = []
  for (const name of ['account-changed', 'work-queued'] as const) signals.on(name, () => sent.push(name))
  commit(new Set([table]))
  return sent
}

test.each([
  ['a row that is added', (tx: Db) => addAccount(tx, 'ben')],
  ['a row that is changed', (tx: Db) => tx.updateTable('account').set({ name: 'Anna' }).execute()],
  ['a row that is removed', (tx: Db) => tx.deleteFrom('signIn').execute()],
  [
    'a row of a statement that is written as text',
    (tx: Db) =>
      sql`
    insert into account (id, name, created_at_s, may_upload, may_import) values ('ben', 'ben', 1, 1, 1)`.execute(tx),
  ],
  ['a row that an append adds', (tx: Db) => addAccount(tx, 'ben'), 'append'],
])('%s is signalled before its call resolves', async (_, change, kind = 'write') => {
  const { write } = await openOwnDatabase()
  await write((tx) => addAccount(tx, 'ann'))
  const sent: string[] = []
  createSignals(write).on('account-changed', () => sent.push('signal'))
  await (kind === 'append' ? write.append<unknown>(change) : write<unknown>(change))
  sent.push('resolved')
  expect(sent).toEqual(['signal', 'resolved'])
})

test('a change that no account depends on is not signalled', async () => {
  const { write } = await openOwnDatabase()
  await write((tx) => addAccount(tx, 'ann')) // with it goes what the migration changed
  let count = 0
  createSignals(write).on('account-changed', () => count++)
  await write((tx) => tx.insertInto('setting').values({ name: 'a', value: '1' }).execute())
  expect(count).toBe(0)
})

test('the sender resolves when what the listeners started has ended, and one that has stopped listening gets nothing', async () => {
  const { write } = await openOwnDatabase()
  const signals = createSignals(write)
  const ended: SignalData['work-cancelled'][] = []
  const stop = signals.on('work-cancelled', async (work) => {
    await write(async () => undefined)
    ended.push(work)
  })
  await signals.send('work-cancelled', { videoIds: ['a'] })
  expect(ended).toEqual([{ videoIds: ['a'] }])
  stop()
  await signals.send('work-cancelled', { videoIds: ['b'] })
  expect(ended).toHaveLength(1)
})

const addAccount = (tx: Db, id: string) =>
  tx.insertInto('account').values({ id, name: id, createdAtS: 1, mayUpload: 1, mayImport: 1 }).execute()
