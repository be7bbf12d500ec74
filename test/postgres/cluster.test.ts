import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeDatabase, startPostgres } from '../postgres.ts'
import { processesWith } from '../processes.ts'
import { changeRows, readRows } from '../rows.ts'

test('values come back from PostgreSQL as they do from SQLite: numbers, texts, bytes', async () => {
  const { url: databaseUrl, remove } = await makeDatabase({ database: 'postgres' })
  const installed = { dataDir: '', databaseUrl }
  changeRows(installed, 'create table made (count bigint, share double precision, name text, bytes bytea)')
  expect(changeRows(installed, "insert into made values (?, ?, 'what?', ?)", 2 ** 40, 0.5, Buffer.from('ab'))).toBe(1)
  expect(readRows(installed, "select *, sum(count) over () as total from made where name = 'what?' and count > ?", 1)).toEqual([
    { count: 2 ** 40, share: 0.5, name: 'what?', bytes: Buffer.from('ab'), total: 2 ** 40 },
  ])
  expect(() => readRows(installed, 'delete from made')).toThrow(/read-only/)
  const { url: copyUrl, remove: removeCopy } = await makeDatabase({ database: 'postgres', copyOf: databaseUrl })
  changeRows(installed, 'delete from made')
  expect(readRows({ dataDir: '', databaseUrl: copyUrl }, 'select count from made')).toEqual([{ count: 2 ** 40 }])
  await Promise.all([remove(), removeCopy()])
})

test('what was committed is there after PostgreSQL was killed, and after it was stopped', async () => {
  const postgres = await startPostgres({ durable: true })
  const { url: databaseUrl } = await makeDatabase({ database: postgres })
  const installed = { dataDir: '', databaseUrl }
  changeRows(installed, 'create table made (number bigint)')
  changeRows(installed, 'insert into made values (1)')
  await postgres.crash()
  expect(() => readRows(installed, 'select 1')).toThrow(/ECONNREFUSED/)
  await postgres.start()
  expect(postgres.output()).toContain('automatic recovery')
  changeRows(installed, 'insert into made values (2)')
  await postgres.stop()
  await postgres.start()
  expect(postgres.output()).not.toContain('automatic recovery')
  expect(readRows(installed, 'select number from made order by 1')).toEqual([{ number: 1 }, { number: 2 }])
})

test('PostgreSQL does not outlive the run that started it, however that one ends', async () => {
  const starter = spawn(process.execPath, ['--input-type=module', '-e', STARTER], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [folder] = await once(starter.stdout, 'data')
  expect(await processesWith(String(folder))).not.toEqual([])
  starter.kill('SIGKILL')
  await expect.poll(() => processesWith(String(folder))).toEqual([])
  await rm(String(folder), { recursive: true })
})

const STARTER = `
  import { openCluster } from ${JSON.stringify(join(import.meta.dirname, 'cluster.ts'))}
  const { folder } = await openCluster()
  process.stdout.write(folder)
  setInterval(() => undefined, 60_000)`
