import { availableParallelism } from 'node:os'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { VideoStatus } from '../../src/catalogue/status.ts'
import { newId } from '../../src/crypto/secret.ts'
import type { Db } from '../../src/db/database.ts'
import { findStuckKinds } from '../../src/encode/capacity.ts'
import type { ChunkKind } from '../../src/encode/chunk-plan.ts'
import { endRun, insertChunks, releaseRun, type VideoChunk } from '../../src/encode/chunk-store.ts'
import { encoderFingerprint } from '../../src/encode/encoder.ts'
import { createEncodeScheduler, type EncodeSchedulerDeps, type EncodeWork } from '../../src/encode/scheduler.ts'
import type { Job } from '../../src/jobs/dispatcher.ts'
import { createCapacityWatch } from '../../src/workers/watch-capacity.ts'
import { openTestClaims } from '../claims.ts'
import { openOwnDatabase } from '../db/database.ts'

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

test('F-60: a video whose chunks are all done is finished next, however many uploads wait', async () => {
  const deps = await openSchedulerDeps()
  const accountId = await addAccount(deps)
  for (let n = 0; n < 5; n++) {
    await addUpload(deps, accountId)
    await addNewVideo(deps, accountId)
  }
  const complete = await addCompleteVideo(deps, accountId)
  const { claim } = createEncodeScheduler(deps, () => undefined)
  expect((await claim(false))?.key).toBe(complete)
  expect((await claim(false))?.key).not.toBe(complete)
})

test('F-61: while every kind of work keeps arriving, each gets a share: finishing, examining, first seconds and the rest', async () => {
  const deps = await openSchedulerDeps()
  const accountId = await addAccount(deps)
  const kinds = new Map<string, string>()
  const { claim } = createEncodeScheduler(deps, () => undefined)
  const claims = 20 * VIDEOS_FOR_ALL_CORES
  const shares: string[] = []
  for (let n = 0; n < claims; n++) {
    kinds.set(await addCompleteVideo(deps, accountId), 'finishing')
    kinds.set(await addUpload(deps, accountId), 'examining')
    kinds.set(await addNewVideo(deps, accountId), 'encoding')
    shares.push(kinds.get((await claim(false))?.key ?? '') ?? 'nothing')
  }
  const running = await deps.db.selectFrom('chunk').select('firstSegment').where('state', '=', 'running').execute()
  const firstSegments = running.map(({ firstSegment }) => firstSegment)
  expect(shares).not.toContain('nothing')
  for (const kind of ['finishing', 'examining']) expect(shares.filter((share) => share === kind).length).toBeGreaterThan(1)
  for (const segment of [0, 1]) expect(firstSegments.filter((number) => number === segment).length).toBeGreaterThan(1)
})

test('F-78: failures of a video are counted together by all servers, and the third ends it', async () => {
  const failed: string[] = []
  const deps = await openSchedulerDeps({
    examine: async () => {
      throw new Error('the probe crashed')
    },
    fail: async (videoId) => void failed.push(videoId),
  })
  const videoId = await addUpload(deps, await addAccount(deps))
  const servers = [deps, { ...deps, claims: await openTestClaims(deps) }]
  for (let attempt = 0; attempt < 3; attempt++) {
    for (const server of servers) {
      const job = await createEncodeScheduler(server, () => undefined).claim(false)
      await job?.run(new AbortController().signal)
    }
    expect(failed).toEqual(attempt < 2 ? [] : [videoId])
    deps.clock.nowS += 30
  }
})

/** A scheduler with as many new videos as keep all cores busy, each with a short first chunk and a second one. The clock stands still. */
async function openSchedulerOfNewVideos() {
  const deps = await openSchedulerDeps()
  const accountId = await addAccount(deps)
  for (let n = 0; n < VIDEOS_FOR_ALL_CORES; n++) await addNewVideo(deps, accountId)

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

/** @param work what the jobs do instead of nothing */
async function openSchedulerDeps(work: Partial<EncodeWork> = {}): Promise<EncodeSchedulerDeps & { clock: { nowS: number } }> {
  const { db, write } = await openOwnDatabase()
  const clock = { nowS: 1_000 }
  const nowS = () => clock.nowS
  const noWork = async () => undefined
  const encode = async (chunk: VideoChunk) => void (await write((tx) => endRun(tx, chunk, 'done')))
  const allWork = { examine: noWork, finish: noWork, encode, isLost: async () => false, fail: noWork, ...work }
  return {
    ...{ db, write, clock, nowS, log: pino({ level: 'silent' }) },
    claims: await openTestClaims({ db, write, nowS }, { chunk: releaseRun }),
    hasRoom: async () => true,
    ...{ sandbox: { ffmpegVersion: '5' }, encoderSlots: 2 },
    findPermitted: async () => ({ work: allWork }),
  }
}

const ALL = ['video', 'audio'] as const
const VIDEO = ['video'] as const

test('J33: a chunk goes to encoders of its generation alone, and to any once none of them was seen for ten minutes', async () => {
  const { deps, own, claim, seen, addChunk } = await openSchedulerOfWorkers()
  await seen('a', 'other')
  await seen('b', 'third')
  for (const encoder of [own, 'other']) await addChunk(encoder)
  expect(await claim('third', VIDEO)).toBe(undefined)
  expect(await claim(own, ALL)).toBe(`video of ${own}`)
  expect(await claim('other', VIDEO)).toBe('video of other')
  deps.clock.nowS += 601
  await seen('b', 'third')
  expect(await claim('third', VIDEO)).toBe('video of other')
})

test('J41: chunks of a kind that no encoder of their generation takes go to one that encodes all of the video', async () => {
  const { own, claim, seen, addChunk } = await openSchedulerOfWorkers()
  await seen('a', 'other', 'video')
  await addChunk('other', ...ALL)
  expect(await claim('other', VIDEO)).toBe('video of other')
  expect(await claim(own, ALL)).toBe('audio of other')
  await seen('b', 'third', 'audio')
  expect(await claim('third', ['audio'])).toBe(undefined)
  await seen('c', 'third', 'video')
  expect(await claim('third', ['audio'])).toBe('audio of other')
  await seen('d', 'other', 'audio')
  expect(await claim(own, ALL)).toBe(undefined)
})

test('J42: an encoder of one kind begins nothing again that has another; else it would do so for ever', async () => {
  const { claim, seen, addChunk } = await openSchedulerOfWorkers(0)
  await seen('a', 'other', 'video')
  await addChunk('gone', ...ALL)
  expect(await claim('other', VIDEO)).toBe(undefined)
  await addChunk('gone too', 'video')
  expect(await claim('other', VIDEO)).toBe('video of gone too')
})

test('J49: chunks that wait for an encoder which is not there, and for none that takes all of their video, raise an alert, once', async () => {
  const { own, seen, addChunk, ...scheduled } = await openSchedulerOfWorkers(0)
  const deps = { ...scheduled.deps, slowQueryDb: scheduled.deps.db }
  const stuck = () => findStuckKinds(deps)
  const watch = createCapacityWatch(deps)
  const alerts = () => deps.db.selectFrom('alert').select(['cause', 'numbers', 'occurrenceCount']).execute()
  await watch()
  expect([await stuck(), await alerts()]).toEqual([[], []])
  await addChunk(own, ...ALL)
  expect(await stuck()).toEqual(ALL)
  await seen('a', own, 'video')
  expect(await stuck()).toEqual(['audio'])
  await seen('b', 'other', 'audio') // it encodes the sound of other videos
  await addChunk('gone', 'video') // without sound, and encoded by the first as its next generation
  expect(await stuck()).toEqual(['audio'])
  for (let minute = 0; minute < 2; minute++) await watch()
  expect(await alerts()).toEqual([{ cause: 'encoder-missing', numbers: '{"kinds":"audio"}', occurrenceCount: 1 }])
  await seen('c', 'another', 'video,audio')
  expect(await stuck()).toEqual([])
  expect(await findStuckKinds({ ...deps, encoderSlots: 1 })).toEqual([])
})

/** A scheduler, and workers that claim one chunk at a time, which is pending again after that. */
async function openSchedulerOfWorkers(encoderSlots = 2) {
  const deps = { ...(await openSchedulerDeps()), encoderSlots }
  const accountId = await addAccount(deps)
  const own = encoderFingerprint(deps.sandbox)
  const scheduler = createEncodeScheduler(deps, () => undefined)
  return {
    ...{ deps, own },
    async addChunk(encoder: string, ...kinds: ChunkKind[]): Promise<void> {
      const id = newId()
      const chunk = { decodesFromStart: false, segmentCount: 5, priority: 9, firstSegment: 10 } as const
      await deps.write(async (tx) => {
        await insertVideo(tx, { id, accountId, status: 'ready', generation: 1 })
        await tx.insertInto('generation').values({ videoId: id, number: 1, plan: '{}', encoder, createdAtS: 0 }).execute()
        const chunks = (kinds.length > 0 ? kinds : VIDEO).map((kind) => ({ ...chunk, kind }))
        await insertChunks(tx, { videoId: id, generation: 1 }, chunks)
      })
    },
    async seen(name: string, encoder: string, kinds?: string): Promise<void> {
      const worker = {
        id: name,
        name,
        hash: Buffer.from(name),
        createdAtS: 0,
        lastSeenAtS: deps.clock.nowS,
        encoder,
        ...(kinds && { kinds }),
      }
      await deps.write(async (tx) => {
        await tx.deleteFrom('worker').where('name', '=', name).execute()
        await tx.insertInto('worker').values(worker).execute()
      })
    },
    /** The kind of the chunk that this encoder gets, and which encoder its generation has. */
    async claim(by: string, kinds: readonly ChunkKind[]): Promise<string | undefined> {
      const remote = { workerId: by, encoder: by, encode: async () => true }
      await (by === own ? scheduler.claim(false) : scheduler.claimForRemote(remote, kinds))
      const running = await deps.db
        .selectFrom('chunk')
        .innerJoin('generation', 'generation.videoId', 'chunk.videoId')
        .select(['chunk.kind', 'generation.encoder'])
        .where('chunk.state', '=', 'running')
        .executeTakeFirst()
      await deps.write(async (tx) => {
        await tx.updateTable('chunk').set({ state: 'pending' }).execute()
        await tx.deleteFrom('claim').execute()
      })
      return running && `${running.kind} of ${running.encoder}`
    },
  }
}

async function addAccount({ write }: EncodeSchedulerDeps): Promise<string> {
  const account = { id: newId(), name: 'an owner', createdAtS: 0, mayUpload: 1, mayImport: 1 } as const
  await write((tx) => tx.insertInto('account').values(account).execute())
  return account.id
}

/** A video that is encoded, with a short first chunk and a second one. */
async function addNewVideo({ write }: EncodeSchedulerDeps, accountId: string): Promise<string> {
  const id = newId()
  const chunk = { kind: 'video', decodesFromStart: false } as const
  await write(async (tx) => {
    await insertVideo(tx, { id, accountId, status: 'Processing', generation: 1 })
    await insertChunks(tx, { videoId: id, generation: 1 }, [
      { ...chunk, firstSegment: 0, segmentCount: 1, priority: 0 },
      { ...chunk, firstSegment: 1, segmentCount: 2, priority: 1 },
    ])
  })
  return id
}

/** A video whose file has arrived. */
async function addUpload({ write }: EncodeSchedulerDeps, accountId: string): Promise<string> {
  const id = newId()
  await write((tx) => insertVideo(tx, { id, accountId, status: 'Queued', hasSource: 1 }))
  return id
}

/** A video whose chunks are all done. */
async function addCompleteVideo({ write }: EncodeSchedulerDeps, accountId: string): Promise<string> {
  const id = newId()
  await write(async (tx) => {
    await insertVideo(tx, { id, accountId, status: 'ready', generation: 1 })
    const generation = { videoId: id, number: 1, plan: '{}', encoder: '', createdAtS: 0 }
    await tx.insertInto('generation').values(generation).execute()
  })
  return id
}

type NewVideo = { id: string; accountId: string; status: VideoStatus; generation?: number; hasSource?: 1 }

async function insertVideo(tx: Db, video: NewVideo): Promise<void> {
  const text = { title: '', description: '', fileName: '', uploadTimeS: 0 }
  await tx
    .insertInto('video')
    .values({ ...text, ...video })
    .execute()
}
