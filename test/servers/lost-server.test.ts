import { afterAll, beforeAll, expect } from 'vitest'
import { createOwner } from '../client.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { findLost, startLoad } from '../faults/load.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { createViewer } from '../viewer.ts'
import { startTwoServers } from './two-servers.ts'
import { startWatchers } from './watchers.ts'

// Two servers on machines of their own behind nginx, which takes turns as docs/operations.md says, and what befalls one of them.

const { test, draw } = sampledTests('a server of several is lost', 1)

let cluster: Cluster

beforeAll(async () => {
  cluster = await startTwoServers()
})
afterAll(() => cluster.end())

const listed = () =>
  readRows<{ name: string }>(cluster.server('right'), 'select name from server order by name').map(({ name }) => name)

/** Calls through the proxy, whose connections to a lost server it tries elsewhere. @returns statuses that were not 200 */
async function callMany(count: number): Promise<number[]> {
  const { owner } = cluster.server('right')
  const statuses: number[] = []
  for (let n = 0; n < count; n++) {
    const headers = { Authorization: `Apisecret ${owner.apiKey}` }
    statuses.push((await fetch(`${cluster.url}/api/videos`, { headers })).status)
  }
  return statuses.filter((status) => status !== 200)
}

test('F-289: a server is ended by kill -9: the proxy reaches the other, which has its row and work removed, and it comes back', async () => {
  expect(await callMany(4)).toEqual([])
  expect(listed()).toEqual(['left', 'right'])
  await cluster.program('left').kill()
  expect(await callMany(10)).toEqual([])
  await expect.poll(listed, { timeout: 60_000 }).toEqual(['right'])
  await cluster.program('left').start()
  await expect.poll(listed).toEqual(['left', 'right'])
  expect(await callMany(4)).toEqual([])
})

test('F-290: a server is suspended until the other takes it for dead, and wakes up: it starts again with nothing in memory', async () => {
  const left = cluster.program('left')
  left.setFrozen(true)
  await expect.poll(listed, { timeout: 60_000 }).toEqual(['right'])
  left.setFrozen(false)
  await expect.poll(() => left.output(), { timeout: 60_000 }).toContain('released by the other server; restarting')
  await expect.poll(listed, { timeout: 60_000 }).toEqual(['left', 'right'])
  await expect.poll(() => callMany(4)).toEqual([])
})

// Owners call, and viewers play, while one server loses its way to one of the others.
for (const { number, from } of [
  { number: 'F-305', from: 'database' },
  { number: 'F-306', from: 'proxy' },
  { number: 'F-307', from: 'store' },
]) {
  test(`${number}: a server is cut off from the ${from} alone: viewers play on, and nothing that was acknowledged is lost`, async () => {
    const owner = createOwner(cluster.url, cluster.server('right').owner.apiKey)
    const videoId = await owner.readyVideo(await makeVideo())
    const watchers = await startWatchers(cluster.url, owner, videoId, 4)
    const stopped = createViewer(cluster.url)
    expect((await stopped.redeem(await owner.issueOtp(videoId))).status).toBe(200)
    const load = startLoad(owner, videoId, 4)
    const goOn = () => Promise.all([watchers.goOn(), load.goesOn()])
    await goOn()

    await cluster.setCut('left', from, true)
    await goOn()
    const stop = () => owner.call('DELETE', `/api/sessions?session=${stopped.state.session}`)
    await expect.poll(async () => (await stop()).status).toBe(200)
    const keys = await Promise.all([0, 0, 0, 0].map((window) => stopped.key(window)))
    expect(keys.filter(({ ok }) => ok)).toEqual([])
    await cluster.setCut('left', from, false)
    await goOn()

    await Promise.all([load.stop(), watchers.stop()])
    expect([...load.odd, ...watchers.odd]).toEqual([])
    expect(findLost(cluster.server('right'), load)).toEqual([])
  })
}

draw()
