import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { makeDatabase, startPostgres } from '../postgres.ts'
import { timeEnd } from '../processes.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import type { Viewer } from '../viewer.ts'
import { findLost, startLoad } from './load.ts'
import { type Network, startProxy } from './proxy.ts'

const { test, draw } = sampledTests('PostgreSQL behind a broken network', 1)

/** A server that reaches its database through a network of the test's own. */
async function startBehindProxy(): Promise<{ reelgate: Reelgate; proxy: Network }> {
  const { url = '' } = await makeDatabase({ database: await startPostgres() })
  const proxy = await startProxy(url)
  const reelgate = await startReelgate({ database: 'sqlite', env: { REELGATE_DATABASE_URL: proxy.through(url) } })
  // The tests look past the proxy.
  return { reelgate: Object.assign(reelgate, { databaseUrl: url }), proxy }
}

test('F-10: a database that is cut off, does not respond or refuses connections is reported as such in bounded time; nothing acknowledged is lost, and work continues afterwards', async () => {
  const { reelgate, proxy } = await startBehindProxy()
  const load = startLoad(reelgate.owner, await reelgate.owner.readyVideo(await makeVideo()))
  for (const cut of [proxy.reset, proxy.refuse, proxy.blackHole]) {
    await load.goesOn()
    cut()
    if (cut !== proxy.reset) await load.isRefused()
    proxy.forward()
  }
  await load.goesOn()
  await load.stop()
  expect(load.odd).toEqual([])
  expect(findLost(reelgate, load)).toEqual([])
})

test('F-10: a call whose commit got no response says that the change may have been saved, and the change is visible if it was', async () => {
  const { reelgate, proxy } = await startBehindProxy()
  const { owner } = reelgate
  const { videoId } = await owner.credentials('before')
  expect((await owner.list()).rows.map(({ title }) => title)).toEqual(['before'])
  const isSwallowed = proxy.swallowAnswer('COMMIT', 'called otherwise')
  const answer = await owner.call('POST', `/api/videos/${videoId}`, { body: { title: 'called otherwise' } })
  await isSwallowed
  expect([answer.status, answer.headers.has('retry-after'), await answer.json()]).toMatchObject([
    503,
    true,
    { message: expect.stringContaining('it may or may not have been saved') },
  ])
  await expect.poll(async () => (await owner.list()).rows.map(({ title }) => title)).toEqual(['called otherwise'])
})

test('F-10: a video whose deletion got no answer, and was kept, is watched no further, and its files go', async () => {
  const { reelgate, proxy } = await startBehindProxy()
  const { videoId, viewer } = await startWatching(reelgate)
  const isSwallowed = proxy.swallowAnswer('COMMIT', 'set "deleted_at_s"')
  const answer = await reelgate.owner.call('DELETE', `/api/videos?videos=${videoId}`)
  await isSwallowed
  expect(answer.status).toBe(503)
  expect((await viewer.key(0)).status).toBe(403)
  await expect.poll(() => readRows(reelgate, 'select id from video')).toEqual([])
  expect(existsSync(join(reelgate.dataDir, 'segments', videoId))).toBe(false)
})

test('F-10: the videos of an account whose disabling got no answer, and was kept, are watched no further', async () => {
  const { reelgate, proxy } = await startBehindProxy()
  const { viewer } = await startWatching(reelgate)
  const isSwallowed = proxy.swallowAnswer('COMMIT', 'set "disabled"')
  const { code, stderr } = await reelgate.cli('account', 'disable', 'owner')
  await isSwallowed
  expect([code, stderr]).toEqual([1, expect.stringContaining('it may or may not have been saved')])
  expect((await viewer.key(0)).status).toBe(403)
})

async function startWatching({ owner, newViewer }: Reelgate): Promise<{ videoId: string; viewer: Viewer }> {
  const videoId = await owner.readyVideo(await makeVideo())
  const viewer = newViewer()
  await viewer.redeem(await owner.issueOtp(videoId))
  expect((await viewer.key(0)).status).toBe(200)
  return { videoId, viewer }
}

test('F-09: a stop while the database says nothing ends within 10 s, with exit code 0', async () => {
  const { reelgate, proxy } = await startBehindProxy()
  const playing = await reelgate.owner.readyVideo(await makeVideo())
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(playing))
  expect((await viewer.key(0)).status).toBe(200)
  proxy.blackHole()
  const asked = reelgate.owner.call('POST', `/api/videos/${playing}/otp`, { body: {} }).catch(() => undefined)
  const { code, tookS } = await timeEnd(reelgate.pid, reelgate.stop())
  await asked
  expect(code).toBe(0)
  expect(tookS).toBeLessThan(10)
})

test('F-10: a standby that replaces a killed PostgreSQL continues with everything that was acknowledged', async () => {
  const postgres = await startPostgres({ settings: REPLICATED })
  const { url = '' } = await makeDatabase({ database: postgres })
  const standby = await startPostgres({ settings: REPLICATED, standbyOf: postgres })
  const admin = { dataDir: '', databaseUrl: postgres.adminUrl }
  changeRows(admin, `alter system set synchronous_standby_names = '*'`)
  changeRows(admin, 'select pg_reload_conf()')
  await expect.poll(() => readRows(admin, 'select sync_state from pg_stat_replication')).toEqual([{ sync_state: 'sync' }])
  const proxy = await startProxy(url)
  const reelgate = await startReelgate({ database: 'sqlite', env: { REELGATE_DATABASE_URL: proxy.through(url) } })
  const load = startLoad(reelgate.owner, await reelgate.owner.readyVideo(await makeVideo()))
  await load.goesOn()
  await postgres.crash()
  await load.isRefused()
  proxy.forward(standby.url)
  await load.isRefused() // it takes no changes yet
  changeRows({ dataDir: '', databaseUrl: standby.adminUrl }, 'select pg_promote()')
  await load.goesOn()
  await load.stop()
  expect(load.odd).toEqual([])
  const there = new URL(url)
  there.port = new URL(standby.url).port
  expect(findLost({ ...reelgate, databaseUrl: there.href }, load)).toEqual([])
})

const REPLICATED = { wal_level: 'replica', max_wal_senders: '4', hot_standby: 'on' }

draw()
