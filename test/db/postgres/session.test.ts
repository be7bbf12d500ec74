import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { openConnection } from '../../../src/db/postgres/connection.ts'
import { openPostgres } from '../../../src/db/postgres/database.ts'
import { makeDatabase, startPostgres } from '../../postgres.ts'
import { isLong } from '../../seeded-random.ts'
import { connectTo, openOwnPostgres } from './database.ts'
import { startPooler } from './pooler.ts'

test('a session has the settings that it needs, whatever the URL says; other settings in the URL apply', async () => {
  const { url } = await openOwnPostgres()
  const said = new URL(url)
  said.searchParams.set(
    'options',
    '-c synchronous_commit=off -c default_transaction_read_only=off -c work_mem=8MB -c search_path=elsewhere',
  )
  said.searchParams.set('statement_timeout', '1000')
  const reader = connectTo(said.href, { default_transaction_read_only: 'on' })
  const names = ['synchronous_commit', 'statement_timeout', 'default_transaction_read_only', 'work_mem', 'search_path']
  const { rows } = await sql<{ name: string; value: string }>`
    select name, current_setting(name) as value from unnest(${names}::text[]) as name`.execute(reader)
  expect(Object.fromEntries(rows.map(({ name, value }) => [name, value]))).toEqual({
    synchronous_commit: 'on',
    statement_timeout: '0',
    default_transaction_read_only: 'on',
    work_mem: '8MB',
    search_path: 'public, pg_temp',
  })
})

test('F-10: after a failover reads go to the new server, also on a connection that was being opened', async () => {
  const { url } = await openOwnPostgres()
  const made: number[] = []
  const reader = openConnection({
    url,
    async setUp(client) {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      made.push(...rows.map(({ pid }) => pid))
      if (made.length === 1) reader.reconnect() // the one that writes has found the other server
    },
  })
  onTestFinished(() => reader.close())
  const { rows } = await reader.execute({ sql: 'select pg_backend_pid() as pid', parameters: [] })
  expect([made.length, rows]).toEqual([2, [{ pid: made[1] }]])
})

if (isLong) {
  test.each([false, true])(
    'F-308: behind PgBouncer with a session for each client a database is used; with others: %s',
    async (withOthers) => {
      const { url = '' } = await makeDatabase({ database: await startPostgres() })
      const database = await openPostgres(await startPooler(url, 'session'), withOthers)
      expect(await database.db.selectFrom('account').select('id').execute()).toEqual([])
      await database.close()
    },
  )

  test('F-308: behind PgBouncer with sessions that clients share a database is refused in words, and stays free', async () => {
    const { url = '' } = await makeDatabase({ database: await startPostgres() })
    await expect(openPostgres(await startPooler(url, 'transaction'))).rejects.toThrow('PgBouncer needs pool_mode = session')
    await (await openPostgres(url)).close()
  })
}
