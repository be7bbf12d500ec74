import { expect } from 'vitest'
import { startPostgres } from '../postgres.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { findLost, startLoad } from './load.ts'

const { test, draw } = sampledTests('PostgreSQL that goes away', 1)

const ENDS = [
  { how: 'stopped', end: 'stop' },
  { how: 'killed (kill -9)', end: 'crash' },
] as const

test.each(ENDS)(
  'F-10: while PostgreSQL is $how calls get 503 with Retry-After, nothing acknowledged is lost, and all resumes when it is back',
  async ({ end }) => {
    const postgres = await startPostgres({ durable: true })
    const reelgate = await startReelgate({ database: postgres })
    const { owner } = reelgate
    const playing = await owner.readyVideo(await makeVideo())
    const viewer = reelgate.newViewer()
    await viewer.redeem(await owner.issueOtp(playing))
    const load = startLoad(owner, playing)
    await load.goesOn()
    await postgres[end]()
    await load.isRefused()
    expect(await statusesOf(reelgate)).toEqual({ healthz: 200, readyz: 503 })
    expect(isRefusalOrKey(await viewer.key(0))).toBe(true)
    await postgres.start()
    await load.goesOn()
    await load.stop()
    await expect.poll(() => statusesOf(reelgate)).toEqual({ healthz: 200, readyz: 200 })
    expect((await viewer.key(0)).status).toBe(200)
    expect(load.odd).toEqual([])
    expect(findLost(reelgate, load)).toEqual([])
  },
)

test('F-10: connections that an administrator terminates under load are reopened, and nothing acknowledged is lost', async () => {
  const postgres = await startPostgres()
  const reelgate = await startReelgate({ database: postgres })
  const { owner } = reelgate
  const load = startLoad(owner, await owner.readyVideo(await makeVideo()))
  for (let times = 0; times < rounds(3, 10); times++) {
    await load.goesOn(50)
    changeRows(reelgate, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'reelgate'")
  }
  await load.goesOn()
  await load.stop()
  expect(load.odd).toEqual([])
  expect(findLost(reelgate, load)).toEqual([])
})

test('F-10: the log says that PostgreSQL is away and why, and that it is back; it does not fill with those who meet it', async () => {
  const postgres = await startPostgres()
  const reelgate = await startReelgate({ database: postgres, env: { REELGATE_LOG_LEVEL: 'debug' } })
  const { owner } = reelgate
  expect((await owner.list()).rows).toEqual([])
  const { length } = linesOf(reelgate)
  const since = () => linesOf(reelgate).slice(length)
  const whispered = () => since().filter(({ level }) => level === DEBUG)
  const logged = () => since().filter(({ level }) => level > DEBUG)
  await postgres.stop()
  for (let calls = 0; calls < 10; calls++) {
    expect((await owner.call('GET', '/api/videos?q=away')).status).toBe(503)
    expect((await owner.call('PUT', '/api/videos?title=away')).status).toBe(503)
  }
  expect(await statusesOf(reelgate)).toEqual({ healthz: 200, readyz: 503 })
  await expect.poll(() => MET_BY.isSubsetOf(wordsOf(whispered()))).toBe(true)
  await expect.poll(() => whispered().length).toBeGreaterThan(50)
  await postgres.start()
  await expect.poll(() => OUTAGE.isSubsetOf(wordsOf(logged()))).toBe(true)
  // Next to it there may be a commit that was on its way and got no answer.
  expect(logged().length).toBeLessThan(25)
  expect(logged().map(({ why }) => why)).toContain('it does not answer')
})

const OUTAGE = new Set(['database: unavailable; rejecting calls until it is back', 'database: available again'])
const MET_BY = new Set(['request: refused', 'health: check failed', 'jobs: claim failed, retrying'])
const DEBUG = 20

type Line = { level: number; msg: string; why?: string }

const wordsOf = (lines: readonly Line[]) => new Set(lines.map(({ msg }) => msg))

function linesOf(reelgate: Reelgate): Line[] {
  return reelgate
    .output()
    .split('\n')
    .slice(0, -1) // what is not whole yet
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
}

async function statusesOf({ url }: Reelgate) {
  const [healthz, readyz] = await Promise.all(['healthz', 'readyz'].map(async (path) => (await fetch(`${url}/${path}`)).status))
  return { healthz, readyz }
}

/** A player continues with what it may have; what it may not have now, it asks for again. */
function isRefusalOrKey({ status, headers }: Response): boolean {
  return status === 200 || (status === 503 && headers.has('retry-after'))
}

draw()
