import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { migrateOnSingleConnection } from '../../src/db/postgres/database.ts'
import { startReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { makeInstallation020 } from './installation-0.2.0.ts'

// Servers of two versions on one PostgreSQL: each version only adds to the tables, and the next one removes what nothing uses any more.

test('F-315: servers that start concurrently on a database of the version before migrate it once', async () => {
  const before = await makeInstallation020('postgres')
  const { databaseUrl = '' } = before
  await Promise.all(Array.from({ length: 5 }, () => migrateOnSingleConnection(databaseUrl)))
  expect(readRows(before, 'select name from kysely_migration order by name')).toEqual([
    { name: '0001-tables' },
    { name: expect.stringMatching(/^0002-/) },
  ])
  expect(readRows(before, 'select count(*)::int as n from video')).toEqual([{ n: 1 }])
})

test('F-342: a migration and a transaction of the version before lock the same tables in opposite orders: both are done', async () => {
  const before = await makeInstallation020('postgres')
  const { databaseUrl = '' } = before
  const other = new pg.Client({ connectionString: databaseUrl })
  await other.connect()
  onTestFinished(() => other.end())
  await other.query('begin')
  await other.query('select from segment') // the migration changes it late
  const migrating = migrateOnSingleConnection(databaseUrl)
  const waiting = () => readRows(before, "select 1 as n from pg_locks where not granted and relation = 'segment'::regclass")
  await expect.poll(waiting).toHaveLength(1)
  await other.query('select from playback_session') // it has changed this one
  await other.query('commit')
  await migrating
  expect(readRows(before, 'select count(*)::int as n from kysely_migration')).toEqual([{ n: 2 }])
})

test('F-316: a running server continues to serve after the next version has added a column to each of its tables', async () => {
  const reelgate = await startReelgate({ database: 'postgres' })
  await useEverything()
  const tables = readRows<{ name: string }>(
    reelgate,
    "select table_name as name from information_schema.tables where table_schema = 'public' and table_name not like 'kysely%'",
  )
  expect(tables.length).toBeGreaterThan(40)
  for (const { name } of tables) changeRows(reelgate, `alter table "${name}" add column of_next_version text default 'new'`)
  changeRows(reelgate, 'create table of_next_version (id text primary key)')
  changeRows(reelgate, "insert into kysely_migration (name, timestamp) values ('0003-next', '2027-01-01T00:00:00.000Z')")
  await useEverything()
  expect(reelgate.output()).not.toMatch(/"level":[56]0/)

  async function useEverything() {
    const { owner } = reelgate
    const videoId = await owner.upload('A lesson', await makeVideo({ seconds: 5 }))
    await owner.until(videoId, 'ready')
    expect((await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['one'] } })).status).toBe(200)
    expect((await owner.list('?q=lesson')).rows).toMatchObject([{ id: videoId, tags: ['one'] }])
    for (const path of ['account', 'hooks', 'folders', 'audit-log', 'quality', 'usage', `videos/${videoId}`])
      expect((await owner.call('GET', `/api/${path}`)).status, path).toBeLessThan(500)
    const viewer = reelgate.newViewer()
    expect(await viewer.redeem(await owner.issueOtp(videoId, { userId: 'ann' }))).toMatchObject({ playing: true })
    expect((await viewer.key(0)).status).toBe(200)
    expect((await viewer.call('leave', undefined, '{}')).status).toBe(200)
    expect((await owner.call('DELETE', `/api/videos?videos=${videoId}`)).status).toBe(200)
  }
})
