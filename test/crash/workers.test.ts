import { afterAll, beforeAll, expect, test } from 'vitest'
import { MEDIA_FOLDERS } from '../../src/config/data-paths.ts'
import { countPlannedSegments, hasFolder, listFiles, listSegments, untilFinished } from '../data-folder.ts'
import { type MovableClock, newMovableClock } from '../faults/faked-clock.ts'
import { DATABASE } from '../postgres.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { type FaultProxy, openFaultProxy } from '../s3/fault-proxy.ts'
import { STORAGE } from '../s3.ts'
import { newChance } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { addWorker, startWorker, type WorkerProcess } from '../workers/worker-process.ts'
import { sweepBreaches } from './crash-harness.ts'
import { examine, newMemory } from './inspect-data-folder.ts'

// A server or a worker is killed, or a video deleted, while workers have chunks of it. Whatever it is, and at whatever point: each video ends
// ready or is gone, and no file outlives its video. Each takes half a minute: long runs make them.

/** At which request of a worker, through a proxy: before the server gets it, or after it has answered. */
type Point = { when: 'before' | 'after'; request: RegExp; isOne?: (status: number) => boolean }

const POINTS: Record<string, Point> = {
  'a chunk was claimed': { when: 'after', request: /^POST .*\/claim$/, isOne: (status) => status === 200 },
  'a segment is sent': { when: 'before', request: /^(PUT|POST) .*\/segments\// },
  'a segment was received': { when: 'after', request: /^(PUT|POST) .*\/segments\// },
  'the end of a chunk is reported': { when: 'before', request: /^POST .*\/end$/ },
  'a result is checked': { when: 'after', request: /^POST .*\/end$/ },
}
const PUBLISHED = 'a chunk was published'
/** The point is the first such request, or one of the next. */
const MAX_NTH = 3

const chance = newChance('points of kills with workers')
const memory = newMemory()
let reelgate: Reelgate & { remove(): Promise<void> }
let proxy: FaultProxy
/** Of the server: leases end when it is moved. */
let clock: MovableClock
let aheadS = 0

beforeAll(async () => {
  clock = await newMovableClock('time')
  reelgate = await startSharedReelgate({ env: { REELGATE_ENCODERS: '0', ...clock.env } })
  proxy = await openFaultProxy(reelgate.url)
})
afterAll(async () => {
  await reelgate.remove()
  await proxy.stop()
  await clock.remove()
})

let workers = 0
const newWorker = async () => startWorker(proxy.endpoint, await addWorker(reelgate, `worker-${++workers}`))

/**
 * Waits until a worker's request is at a point.
 * @returns lets it go on
 */
async function reach(name: string, videoId: string): Promise<() => void> {
  const point = POINTS[name]
  if (!point) {
    const published = () => readRows(reelgate, `select 1 from chunk where video_id = ? and state = 'done'`, videoId).length
    await expect.poll(published, { interval: 20 }).toBeGreaterThan(0)
    return () => undefined
  }
  const { when, request, isOne = () => true } = point
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let left = Math.floor(chance.between(1, MAX_NTH + 1))
  proxy.fault = async ({ method, path, pass, reply }) => {
    if (!request.test(`${method} ${path}`)) return false
    const answer = when === 'after' ? await pass() : undefined
    if (isOne(answer?.status ?? 0) && --left === 0) {
      reached.resolve()
      await released.promise
    }
    if (answer) reply.writeHead(answer.status, answer.headers).end(answer.body)
    return answer !== undefined
  }
  await reached.promise
  return () => {
    proxy.fault = undefined
    released.resolve()
  }
}

/** What is done at the point. */
const HAPPENINGS: Record<string, (at: { worker: WorkerProcess; videoId: string }) => Promise<void>> = {
  async 'the server is killed'() {
    await reelgate.kill()
    if (STORAGE === 'folder') expect((await examine(reelgate, memory)).breaches).toEqual([])
    await reelgate.restart()
  },
  async 'its worker is killed'({ worker }) {
    worker.kill()
    await worker.ended
    // Its lease ends. A server whose clock is not that of PostgreSQL answers nothing: there it ends in its own time.
    if (DATABASE === 'sqlite') {
      aheadS += 60
      await clock.set(aheadS)
    }
    await newWorker()
  },
  async 'the video is deleted'({ videoId }) {
    await reelgate.owner.delete([videoId])
  },
}

const ROWS = Object.keys(HAPPENINGS).flatMap((happening) =>
  [...Object.keys(POINTS), PUBLISHED].map((point) => [happening, point] as const),
)

test.each(ROWS)(
  'J48: %s when %s',
  async (happening, point) => {
    const worker = await newWorker()
    const videoId = await reelgate.owner.upload(`A lesson of ${happening}`, await makeVideo({ seconds: 14 }))
    const release = await reach(point, videoId)
    await HAPPENINGS[happening]?.({ worker, videoId })
    release()
    if (happening === 'the video is deleted') {
      await expect.poll(() => filesOf(videoId)).toEqual([])
      // Whatever the worker still does with it is over when it has encoded another one.
      const nextId = await reelgate.owner.upload('The next lesson', await makeVideo({ seconds: 6 }))
      await expectWhole(nextId)
      expect(await filesOf(videoId)).toEqual([])
    } else await expectWhole(videoId)
    await expectNothingLeft()
  },
  600_000,
)

/** The folders that have files of a video. */
async function filesOf(videoId: string): Promise<string[]> {
  const found = await Promise.all(MEDIA_FOLDERS.map((folder) => hasFolder(reelgate, folder, videoId)))
  return MEDIA_FOLDERS.filter((_, n) => found[n])
}

/** It is ready, and each of its segments is there once. */
async function expectWhole(videoId: string): Promise<void> {
  await untilFinished(reelgate, videoId)
  expect(await reelgate.owner.video(videoId)).toMatchObject({ status: 'ready' })
  const segments = listSegments(reelgate, videoId)
  expect(segments.length).toBe(countPlannedSegments(reelgate, videoId))
  const stored = new Set((await listFiles(reelgate, `segments/${videoId}`)).map((name) => `${videoId}/${name}`))
  expect(segments.filter(({ file }) => !stored.has(file))).toEqual([])
}

/** No promise is broken, and what a kill left without a row is swept. */
async function expectNothingLeft(): Promise<void> {
  if (STORAGE === 'bucket') return // both looks are at a folder
  await reelgate.kill()
  const { breaches, orphans } = await examine(reelgate, memory)
  expect(breaches).toEqual([])
  expect(await sweepBreaches(reelgate, memory, orphans)).toEqual([])
}
