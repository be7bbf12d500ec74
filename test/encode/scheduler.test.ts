import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { newId } from '../../src/crypto/secret.ts'
import { addChunks, rowQueue } from '../../src/encode/chunk-queue.ts'
import type { EncodeDeps } from '../../src/encode/encode-deps.ts'
import { createSegmentEvents } from '../../src/encode/publication.ts'
import { createEncodeScheduler } from '../../src/encode/scheduler.ts'
import type { Job } from '../../src/jobs/dispatcher.ts'
import { openBlobFolder } from '../../src/storage/folder.ts'
import { openOwnDatabase } from '../db/database.ts'
import { openDefaultSandbox } from './videos.ts'

// An ffmpeg that chooses its threads itself keeps about four cores busy.
const VIDEOS_FOR_ALL_CORES = Math.ceil(availableParallelism() / 4)

test('while the first seconds of new videos keep all cores busy, no other chunk is begun', async () => {
  const { claimAll, listRunning, wake } = await openSchedulerOfNewVideos()
  const [first] = await claimAll()
  expect(await listRunning()).toEqual(Array(VIDEOS_FOR_ALL_CORES).fill(0))

  await first?.run(new AbortController().signal)
  expect(wake).toHaveBeenCalled()
  await claimAll()
  expect(await listRunning()).toContain(1)
})

test('a video whose first seconds take longer than five no longer delays the others', async () => {
  const { claimAll, listRunning, wake } = await openSchedulerOfNewVideos()
  await claimAll()
  vi.advanceTimersByTime(4_999)
  await claimAll()
  expect(await listRunning()).not.toContain(1)

  vi.advanceTimersByTime(1)
  expect(wake).toHaveBeenCalled()
  await claimAll()
  expect(await listRunning()).toContain(1)
})

/** A scheduler with as many new videos as keep all cores busy, each with a short first chunk and a second one. The clock stands still. */
async function openSchedulerOfNewVideos() {
  const deps = await openEncodeDeps()
  const account = { id: newId(), name: 'an owner', createdAtS: 0, mayUpload: 1, mayImport: 1 } as const
  await deps.write((tx) => tx.insertInto('account').values(account).execute())
  for (let n = 0; n < VIDEOS_FOR_ALL_CORES; n++) await addNewVideo(deps, account.id)

  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const wake = vi.fn()
  const { claim } = createEncodeScheduler(deps, wake)
  return {
    wake,
    async claimAll(): Promise<Job[]> {
      const jobs: Job[] = []
      for (let job = await claim(false); job; job = await claim(false)) jobs.push(job)
      return jobs
    },
    /** The first segments of the chunks that are being encoded. */
    async listRunning(): Promise<number[]> {
      const rows = await deps.db.selectFrom('chunk').select('firstSegment').where('state', '=', 'running').execute()
      return rows.map(({ firstSegment }) => firstSegment)
    },
  }
}

async function openEncodeDeps(): Promise<EncodeDeps> {
  const { db, write } = await openOwnDatabase()
  const root = await mkdtemp(join(tmpdir(), 'scheduler-'))
  onTestFinished(() => rm(root, { recursive: true }))
  const folder = await openBlobFolder(join(root, 'blobs'), join(root, 'tmp'))
  return {
    db,
    slowQueryDb: db,
    write,
    wallNowS: () => 0,
    masterKey: parseMasterKey(Buffer.alloc(32, 7)),
    sandbox: await openDefaultSandbox(),
    folders: { sources: folder, segments: folder, posters: folder, files: folder },
    chunkQueue: rowQueue,
    segmentEvents: createSegmentEvents(),
    counters: { segments: 0, failures: 0 },
    log: pino({ level: 'silent' }),
    sessions: { end: async () => undefined, endInMemory: () => undefined },
    stopJobs: async () => undefined,
    hasRoom: async () => true,
    findDemoVideoId: async () => undefined,
  }
}

async function addNewVideo({ write }: EncodeDeps, accountId: string): Promise<void> {
  const video = { id: newId(), accountId, title: '', description: '', fileName: '', uploadTimeS: 0 }
  const chunk = { kind: 'video', decodesFromStart: false } as const
  await write(async (tx) => {
    await tx
      .insertInto('video')
      .values({ ...video, status: 'Processing', generation: 1 })
      .execute()
    await addChunks(tx, rowQueue, { videoId: video.id, generation: 1 }, [
      { ...chunk, firstSegment: 0, segmentCount: 1, priority: 0 },
      { ...chunk, firstSegment: 1, segmentCount: 2, priority: 1 },
    ])
  })
}
