import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { openPostgres } from '../../src/db/postgres/database.ts'
import { createSignals, type SignalData, type SignalName } from '../../src/signals/signals.ts'
import { makeDatabase } from '../postgres.ts'

/** The signals of two servers on one database. */
async function makeTwo() {
  const { url = '', remove } = await makeDatabase({ database: 'postgres' })
  onTestFinished(remove)
  const open = async () => {
    const database = await openPostgres(url, true)
    await database.channel?.unlockStart()
    const signals = createSignals(database.write, database.channel)
    await database.channel?.clockS() // the connection that answers has begun to listen before
    onTestFinished(async () => {
      await signals.stop()
      await database.close()
    })
    const received: unknown[] = []
    const record = <Name extends SignalName>(name: Name) =>
      signals.on(name, (data: SignalData[Name], origin) => received.push([name, data, origin]))
    return { database, signals, received, record }
  }
  return { url, first: await open(), second: await open() }
}

test('F-287: a signal reaches the other servers once, and its sender does not get it back', async () => {
  const { first, second } = await makeTwo()
  for (const each of [first, second]) for (const name of ['work-queued', 'keys-destroyed'] as const) each.record(name)
  await first.signals.send('keys-destroyed', undefined) // of this server alone
  await first.signals.send('work-queued', 'mp4')
  await expect.poll(() => second.received).toEqual([['work-queued', 'mp4', 'elsewhere']])
  await second.signals.send('work-queued', 'encode')
  await expect.poll(() => first.received.at(-1)).toEqual(['work-queued', 'encode', 'elsewhere'])
  expect(first.received).toHaveLength(3)
})

test('F-287: a list too long for one notification goes in parts', async () => {
  const { first, second } = await makeTwo()
  const videoIds = Array.from({ length: 450 }, (_, n) => n.toString(16).padStart(32, '0'))
  const got: string[] = []
  second.signals.on('work-cancelled', (data) => got.push(...data.videoIds))
  await first.signals.send('work-cancelled', { videoIds })
  await expect.poll(() => got.toSorted()).toEqual(videoIds)
})

test('F-288: a server that lost its listening connection clears what it has cached when it has another', async () => {
  const { url, first, second } = await makeTwo()
  for (const name of ['account-changed', 'bans-changed', 'session-ended'] as const) second.record(name)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where query like '%clock_timestamp%' and pid <> pg_backend_pid() and datname = current_database()`,
  )
  await expect
    .poll(async () => {
      await second.database.channel?.clockS().catch(() => undefined) // a beat, which comes once a second
      return second.received.map((each) => (each as unknown[])[0])
    })
    .toEqual(['account-changed', 'bans-changed', 'session-ended'])
  await first.database.channel?.clockS()
  await first.signals.send('bans-changed', undefined)
  await expect.poll(() => second.received.at(-1)).toEqual(['bans-changed', undefined, 'elsewhere'])
})
