import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createOwner, type Owner } from '../client.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { findLost, startLoad } from '../faults/load.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { startTwoServers } from './two-servers.ts'
import { startWatchers } from './watchers.ts'

// What befalls one of two servers behind nginx, under many viewers, owners and uploads: how long a viewer waits. Only in long runs.

const VIEWERS = 200
/** Each asks for something this long after its last answer: twice as often as a player does. */
const BETWEEN_MS = 2_000
/** An owner may expect 5 s; tests run on busy machines. */
const MAX_WAIT_MS = 10_000

let cluster: Cluster

beforeAll(async () => {
  cluster = await startTwoServers()
})
afterAll(() => cluster.end())

const left = () => cluster.program('left')
const cutOff = (from: string) => ({
  lose: () => cluster.setCut('left', from, true),
  mend: () => cluster.setCut('left', from, false),
})
const isServing = () =>
  readRows(cluster.server('right'), "select 1 from server where name = 'left' and state = 'serving'").length > 0

const LOSSES: { what: string; forMs: number; lose(): unknown; mend(): unknown }[] = [
  { what: 'is ended by kill -9', forMs: 15_000, lose: () => left().kill(), mend: () => left().start() },
  {
    what: 'is suspended for a minute',
    forMs: 60_000,
    lose: () => left().setFrozen(true),
    mend: () => left().setFrozen(false),
  },
  ...['database', 'proxy', 'store'].map((from) => ({
    what: `is cut off from the ${from} alone`,
    forMs: 20_000,
    ...cutOff(from),
  })),
]

/** An owner whose uploads are each tried until one is acknowledged. @returns stops it, and what was acknowledged */
function startUploads(owner: Owner, path: string) {
  let isStopping = false
  const videoIds: string[] = []
  const uploading = (async () => {
    while (!isStopping) {
      await owner.upload('uploaded meanwhile', path).then(
        (videoId) => videoIds.push(videoId),
        () => pause(500),
      )
      await pause(1_000)
    }
  })()
  const stop = async () => {
    isStopping = true
    await uploading
    return videoIds
  }
  onTestFinished(async () => void (await stop()))
  return stop
}

test.each(LOSSES)(
  `F-343: a server $what, under ${VIEWERS} viewers: none waits long, and nothing acknowledged is lost`,
  async (loss) => {
    const owner = createOwner(cluster.url, cluster.server('right').owner.apiKey)
    const video = await makeVideo()
    const videoId = await owner.readyVideo(video)
    const watchers = await startWatchers(cluster.url, owner, videoId, VIEWERS, { betweenMs: BETWEEN_MS })
    const load = startLoad(owner, videoId, 2)
    const stopUploads = startUploads(owner, video)
    const goOn = () => Promise.all([watchers.goOn(), load.goesOn(20)])
    await goOn()
    const report = (when: string) => {
      const waits = watchers.takeLongestWaitsMs()
      process.stderr.write(`a server ${loss.what}, ${when}: the longest waits in ms are ${JSON.stringify(waits)}\n`)
      return Math.max(...Object.values(waits))
    }
    report('before')

    await loss.lose()
    const away = pause(loss.forMs)
    await goOn()
    await away
    const waitedMs = [report('while it is away')]
    await loss.mend()
    await expect.poll(isServing, { timeout: 60_000 }).toBe(true)
    await goOn()
    waitedMs.push(report('when it is back'))

    const uploaded = await stopUploads()
    await Promise.all([load.stop(), watchers.stop()])
    expect([...load.odd, ...watchers.odd]).toEqual([])
    expect(findLost(cluster.server('right'), load)).toEqual([])
    for (const id of uploaded) await owner.until(id, 'ready')
    expect(Math.max(...waitedMs)).toBeLessThan(MAX_WAIT_MS)
  },
)
