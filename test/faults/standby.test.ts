import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startBalancer } from '../balancer.ts'
import { createOwner } from '../client.ts'
import { startHaproxy } from '../haproxy.ts'
import { makeLocation } from '../installation-folder.ts'
import { type Cluster, throughSocket } from '../postgres/cluster.ts'
import { makeDatabase, startPostgres } from '../postgres.ts'
import { startReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { startWatchers } from '../servers/watchers.ts'
import { startAnother } from '../several-servers.ts'
import { makeVideo } from '../videos.ts'
import { createViewer, type Viewer } from '../viewer.ts'
import { findLost, startLoad } from './load.ts'

// Two servers on a PostgreSQL with a synchronous standby, which they reach through HAProxy, as docs/operations.md says.

const VIEWERS = 50
const REPLICATED = { wal_level: 'replica', max_wal_senders: '4', hot_standby: 'on' }

/** An owner may expect the service back so soon after a promotion, and after PostgreSQL has started again; tests run on busy machines. */
const BACK_AFTER_MS = { promotion: 15_000, start: 5_000 }
const BUSY = 3

const asAdmin = ({ adminUrl }: Cluster) => ({ dataDir: '', databaseUrl: adminUrl })

/** Both databases, and both servers under owners and viewers. */
async function startAll() {
  const primary = await startPostgres({ settings: REPLICATED })
  const { url = '' } = await makeDatabase({ database: primary })
  const standby = await startPostgres({ settings: REPLICATED, standbyOf: primary })
  changeRows(asAdmin(primary), `alter system set synchronous_standby_names = '*'`)
  changeRows(asAdmin(primary), 'select pg_reload_conf()')
  const states = () => readRows(asAdmin(primary), 'select sync_state from pg_stat_replication')
  await expect.poll(states).toEqual([{ sync_state: 'sync' }])

  const through = await startHaproxy(primary, standby)
  const files = await makeLocation({ database: 'sqlite', storage: 'bucket' })
  const env = { ...files.env, REELGATE_DATABASE_URL: through(url) }
  const left = await startReelgate({ location: { ...files, databaseUrl: url, env } })
  const right = await startAnother(left)
  const balanced = await startBalancer([left.url, right.url])
  const owner = createOwner(balanced, left.owner.apiKey)
  const videoId = await owner.readyVideo(await makeVideo())
  const watchers = await startWatchers(balanced, owner, videoId, VIEWERS, { betweenMs: 500 })
  const load = startLoad(owner, videoId)
  const goOn = () => Promise.all([watchers.goOn(), load.goesOn()])
  await goOn()

  /** @returns how long each server takes, from now, to its first answer to a call that writes and to one that reads, in ms */
  async function untilBack(): Promise<number[]> {
    const sinceMs = performance.now()
    const servers = [left.url, right.url].map((each) => createOwner(each, left.owner.apiKey))
    const calls = servers.flatMap((server) => [
      () => server.call('POST', `/api/videos/${videoId}/otp`, { body: {} }),
      () => server.call('GET', '/api/videos?limit=1'),
    ])
    const waits = calls.map(async (call) => {
      while (!(await call()).ok) await pause(20)
      return Math.round(performance.now() - sinceMs)
    })
    return Promise.all(waits)
  }

  /** @returns the longest that it took */
  async function measure(what: keyof typeof BACK_AFTER_MS): Promise<number> {
    const tookMs = await untilBack()
    process.stderr.write(`after its ${what} both servers answer within ${tookMs} ms\n`)
    await goOn()
    process.stderr.write(`the longest waits of viewers in ms are ${JSON.stringify(watchers.takeLongestWaitsMs())}\n`)
    return Math.max(...tookMs)
  }

  return {
    ...{ primary, standby, owner, videoId, load, goOn, measure },
    newViewer: () => createViewer(balanced),
    async stop() {
      await Promise.all([load.stop(), watchers.stop()])
      return [...load.odd, ...watchers.odd]
    },
    /** What was acknowledged and is not there. */
    lostAt: (where: Cluster) =>
      findLost(
        { ...left, databaseUrl: throughSocket(Object.assign(new URL(url), { port: where.admin.port }).href, where) },
        load,
      ),
  }
}

/** Asks for a key with one proof after the other, until it is stopped. @returns the proofs that were accepted */
function useProofs(viewer: Viewer) {
  const { session } = viewer.state
  const accepted: string[] = []
  let isStopping = false
  const send = (proof: string) => viewer.send('GET', `/play/${session}/key/0`, proof)
  async function use(): Promise<void> {
    while (!isStopping) {
      const proof = viewer.proof({ operation: 'key', session, argument: '0' })
      if ((await send(proof)).ok) accepted.push(proof)
    }
  }
  const using = use()
  const stop = () => {
    isStopping = true
    return using
  }
  onTestFinished(stop)
  return { accepted, send, stop }
}

test('F-318: the primary is killed under two servers and its standby promoted: nothing acknowledged is lost, and no proof works twice', async () => {
  const { primary, standby, owner, videoId, load, goOn, measure, newViewer, stop, lostAt } = await startAll()
  const viewer = newViewer()
  expect((await viewer.redeem(await owner.issueOtp(videoId))).status).toBe(200)
  const otp = await owner.issueOtp(videoId)
  const stopped = newViewer()
  expect((await stopped.redeem(otp)).status).toBe(200)
  const proofs = useProofs(viewer)
  await expect.poll(() => proofs.accepted.length).toBeGreaterThan(50)
  expect((await owner.call('DELETE', `/api/sessions?session=${stopped.state.session}`)).status).toBe(200)
  await primary.crash()
  await load.isRefused()
  await proofs.stop()
  changeRows(asAdmin(standby), 'select pg_promote()')
  expect(await measure('promotion')).toBeLessThan(BUSY * BACK_AFTER_MS.promotion)

  for (const proof of proofs.accepted.slice(-40)) expect((await proofs.send(proof)).ok).toBe(false)
  await expect.poll(async () => (await viewer.key(0)).status).toBe(200)
  for (let n = 0; n < 4; n++) expect((await stopped.key(0)).ok).toBe(false)
  expect((await newViewer().redeem(otp)).playing).toBe(false)
  await goOn()
  expect(await stop()).toEqual([])
  expect(lostAt(standby)).toEqual([])
})

test.each([
  { how: 'restarts', end: 'stop' },
  { how: 'is killed, and starts again', end: 'crash' },
] as const)('F-319: PostgreSQL $how under two servers: they continue with everything that was acknowledged', async ({ end }) => {
  const { primary, load, measure, stop, lostAt } = await startAll()
  await primary[end]()
  await load.isRefused()
  await primary.start()
  expect(await measure('start')).toBeLessThan(BUSY * BACK_AFTER_MS.start)
  expect(await stop()).toEqual([])
  expect(lostAt(primary)).toEqual([])
})
