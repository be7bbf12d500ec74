import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, onTestFinished } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { MoveStatus } from '../../src/installation/file-move.ts'
import { addFile, SRT } from '../assets/sample-files.ts'
import type { Owner, UploadCredentials } from '../client.ts'
import { filesOf, getStoredSource, listSegments, type StoredSegment } from '../data-folder.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { makeLocation } from '../installation-folder.ts'
import { goldenWith, type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { type FaultProxy, startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, newBucketOf, storeEndpoint } from '../s3.ts'
import { sampledTests } from '../sample.ts'
import { isLong } from '../seeded-random.ts'
import { makeLargeVideo, makeVideo } from '../videos.ts'
import { examineBucket } from './examine-bucket.ts'

// kill -9 before and after each request of a server to its bucket. An owner's program repeats what was not acknowledged, until all is done.

/** A server whose bucket is reached through a proxy, with a finished video, and the empty bucket that its files can move to. */
type Tested = {
  reelgate: Reelgate
  proxy: FaultProxy
  video: Buffer<ArrayBuffer>
  other: Awaited<ReturnType<typeof bucketEnvironment>>
  done: Done
  /** Killed, and not started again. */
  isKilled: boolean
  wasKilled: boolean
}

/** What was acknowledged so far. */
type Done = Partial<{
  videoId: string
  upload: UploadCredentials
  address: string
  captions: boolean
  lost: StoredSegment
  isLost: boolean
}>

/** Each resolves when all that it is about has happened, and is called again after a kill. `requests`: as many as it makes. */
const SCENARIOS: Record<string, { requests: number; run(tested: Tested): Promise<void> }> = {
  'adding and removing captions': {
    requests: 10,
    async run({ reelgate: { owner, videoId }, done }) {
      if (!done.captions) expect((await addFile(owner, videoId, SRT, 'en')).status).toBe(200)
      done.captions = true
      const captions = await listCaptions(owner, videoId)
      for (const id of captions)
        expect([200, 404]).toContain((await owner.call('DELETE', `/api/videos/${videoId}/files/${id}`)).status)
    },
  },
  'an upload in parts, and its encode': {
    requests: 58,
    async run(tested) {
      const { reelgate, video, done } = tested
      done.upload ??= await reelgate.owner.credentials('Uploaded')
      const { videoId } = done.upload
      if (done.videoId === undefined) expect((await reelgate.owner.send(done.upload, new Blob([video]))).status).toBe(201)
      done.videoId = videoId
      await becomesReady(tested, videoId)
    },
  },
  // Its encode is that of the one before.
  'a resumable upload': {
    requests: 36,
    async run({ reelgate, video, done }) {
      const tus = createTusClient(reelgate.owner)
      if (done.address === undefined) {
        const { address, videoId } = await tus.create(video.length)
        Object.assign(done, { address, videoId })
      }
      for (let at = await tus.offset(done.address ?? ''); at < video.length; ) {
        const end = Math.min(video.length, at + 5 * 2 ** 20)
        expect((await tus.patch(done.address ?? '', at, video.subarray(at, end))).status).toBe(204)
        at = end
      }
      expect((await getStoredSource(reelgate, done.videoId ?? '').clear()).equals(video)).toBe(true)
    },
  },
  'a repair': {
    requests: 40,
    async run(tested) {
      const { reelgate, done } = tested
      const { segments } = filesOf(reelgate)
      done.lost ??= listSegments(reelgate, reelgate.videoId)[1] ?? expect.fail('it has no segments')
      if (!done.isLost) await segments.remove(done.lost.file)
      done.isLost = true
      await reelgate.cli('doctor', '--media')
      const { file, size_bytes } = done.lost
      await until(tested, async () => (await segments.stat(file))?.sizeBytes === size_bytes)
    },
  },
  'a deletion': {
    requests: 18,
    async run(tested) {
      const { reelgate } = tested
      await reelgate.owner.delete([reelgate.videoId])
      await until(tested, () => readRows(reelgate, 'select id from video').length === 0)
    },
  },
  'a move to another bucket': {
    requests: 30,
    async run(tested) {
      const { reelgate, other } = tested
      const { controlSocket } = dataPaths(reelgate.dataDir)
      await sendCommand(controlSocket, 'storage move', { to: other.env.REELGATE_STORAGE_URL })
      const status = () => sendCommand(controlSocket, 'storage status', {}) as Promise<MoveStatus>
      await until(tested, async () => (await status()).state === 'done')
    },
  },
}

describe('F-260: a server that is killed before or after a request to its bucket loses nothing acknowledged, and leaves no object without a row', () => {
  const { test, draw } = sampledTests('kills of servers at a bucket', 1)
  for (const [scenario, { requests, run }] of Object.entries(SCENARIOS)) {
    const points = Array.from({ length: requests }, (_, request) => [
      `before request ${request}`,
      `after request ${request}`,
    ]).flat()
    const progress = { points: 0, kills: 0 }
    test.each(points)(`${scenario}, killed %s`, async (point) => {
      const tested = await startTested()
      const { reelgate, proxy } = tested
      const restartIfKilled = killServerAt(tested, point)
      await run(tested).catch(async (error: unknown) => {
        if (!(await restartIfKilled())) throw error
        await run(tested)
      })
      await restartIfKilled()
      proxy.fault = undefined
      await reelgate.stop()
      await expectNothingLostOrLeft(tested)
      progress.points++
      if (tested.wasKilled) progress.kills++
      if (isLong) process.stderr.write(`${scenario}: ${progress.points} of ${points.length}, ${progress.kills} were reached\n`)
    })
  }
  draw()
})

/** A finished video in a bucket, to which a proxy leads. */
async function startTested(): Promise<Tested> {
  const golden = await goldenWith(await makeVideo({ seconds: 2, dark: true }), 'bucket')
  const location = await makeLocation({ copyOf: golden })
  const [proxy, other] = [await startFaultProxy(await storeEndpoint()), await bucketEnvironment()]
  const url = location.env.REELGATE_STORAGE_URL?.replace(/endpoint=.*/, `endpoint=${proxy.endpoint}`) ?? ''
  const env = { REELGATE_STORAGE_URL: url, REELGATE_STORAGE_OTHER_URL: other.env.REELGATE_STORAGE_URL }
  const reelgate = await startSharedReelgate({ location, copyOf: golden, env })
  onTestFinished(() => reelgate.remove())
  return {
    reelgate,
    proxy,
    video: await makeLargeVideo({ seconds: 2, size: '64x64', rate: 10 }),
    other,
    done: {},
    isKilled: false,
    wasKilled: false,
  }
}

/** @returns starts the server again if it was killed since: whether it was */
function killServerAt(tested: Tested, point: string): () => Promise<boolean> {
  const { reelgate, proxy } = tested
  const [when, , at] = point.split(' ')
  let requests = 0
  let killing: Promise<void> | undefined
  proxy.fault = async ({ pass, reply }) => {
    if (killing === undefined && requests++ !== Number(at)) return false
    if (killing === undefined && when === 'after') await pass()
    tested.isKilled = tested.wasKilled = true
    killing ??= reelgate.kill()
    await killing
    reply.destroy()
    return true
  }
  return async () => {
    if (killing === undefined || proxy.fault === undefined) return false
    await killing
    proxy.fault = undefined
    await reelgate.restart()
    tested.isKilled = false
    return true
  }
}

/** Waits, as long as the server lives: rows of a killed one do not change any more. */
async function until(tested: Tested, look: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await look())) {
    if (tested.isKilled) throw new Error('the server was killed')
    await pause(50)
  }
}

async function becomesReady(tested: Tested, videoId: string): Promise<void> {
  const { reelgate, video } = tested
  const isMade = `select 1 from generation where video_id = ? and finished_at_s is not null and storyboard_made_at_s is not null`
  await until(tested, () => readRows(reelgate, isMade, videoId).length > 0)
  expect((await reelgate.owner.video(videoId)).status).toBe('ready')
  expect((await getStoredSource(reelgate, videoId).clear()).equals(video)).toBe(true)
}

async function listCaptions(owner: Owner, videoId: string): Promise<number[]> {
  const files = (await (await owner.call('GET', `/api/videos/${videoId}/files`)).json()) as { id: number; type: string }[]
  return files.filter(({ type }) => type === 'caption').map(({ id }) => id)
}

/** Of a stopped server: its rows and their objects are whole, and eight days later there is nothing else. */
async function expectNothingLostOrLeft({ reelgate, other }: Tested): Promise<void> {
  const hasMoved = readRows(reelgate, `select 1 from setting where name = 'storage-moved'`).length > 0
  const { breaches, kept, named } = await examineBucket(reelgate, hasMoved ? other.bucket : newBucketOf(reelgate))
  expect(breaches).toEqual([])
  expect(kept).toEqual(named)
}
