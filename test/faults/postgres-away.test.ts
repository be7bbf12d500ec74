import { expect, test } from 'vitest'
import { makeFilm } from '../films.ts'
import { startPostgres } from '../postgres.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { findLost, startLoad } from './load.ts'

const ENDS = [
  { how: 'stopped', end: 'stop' },
  { how: 'killed (kill -9)', end: 'crash' },
] as const

test.each(ENDS)(
  'F-10: while PostgreSQL is $how calls are told to come again, nothing acknowledged is lost, and all goes on when it is back',
  async ({ end }) => {
    const postgres = await startPostgres({ durable: true })
    const reelgate = await startReelgate({ database: postgres })
    const { owner } = reelgate
    const playing = await owner.readyVideo(await makeFilm())
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

test('F-10: connections that an administrator ends under load are made anew, and nothing acknowledged is lost', async () => {
  const postgres = await startPostgres()
  const reelgate = await startReelgate({ database: postgres })
  const { owner } = reelgate
  const load = startLoad(owner, await owner.readyVideo(await makeFilm()))
  for (let times = 0; times < 10; times++) {
    await load.goesOn(50)
    changeRows(reelgate, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'reelgate'")
  }
  await load.goesOn()
  await load.stop()
  expect(load.odd).toEqual([])
  expect(findLost(reelgate, load)).toEqual([])
})

async function statusesOf({ url }: Reelgate) {
  const [healthz, readyz] = await Promise.all(['healthz', 'readyz'].map(async (path) => (await fetch(`${url}/${path}`)).status))
  return { healthz, readyz }
}

/** A player goes on with what it may have; what it may not have now, it is told to ask for again. */
function isRefusalOrKey({ status, headers }: Response): boolean {
  return status === 200 || (status === 503 && headers.has('retry-after'))
}
