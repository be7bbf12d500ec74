import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import type { Db } from '../../src/db/database.ts'
import type { Write } from '../../src/db/write.ts'
import type { Chunk } from '../../src/encode/chunk-plan.ts'
import {
  addChunks,
  type ChunkJob,
  type ChunkQueue,
  claimChunk,
  claimOldestChunk,
  resumeChunks,
} from '../../src/encode/chunk-queue.ts'
import { endRun, type VideoChunk } from '../../src/encode/chunk-store.ts'
import { prioritizeSegment } from '../../src/encode/prioritize-segment.ts'
import { openBossQueue } from '../../src/jobs/boss.ts'
import type { ClaimFilter } from '../../src/jobs/queue.ts'
import { openDatabaseAt } from '../db/database.ts'
import { makePlace } from '../installation-folder.ts'
import { changeRows, readRows } from '../rows.ts'
import { rounds } from '../seeded-random.ts'

// Chunks as jobs of pg-boss, on a PostgreSQL.

const VIDEO = '0123456789abcdef'.repeat(2)
const OTHER = 'fedcba9876543210'.repeat(2)

test('a chunk is queued in the transaction that makes it pending: both happen, or neither', async () => {
  const { write, add, takeAll, installed } = await openChunks()
  const undone = write(async (tx) => {
    await add(tx, VIDEO, [chunkAt(0)])
    throw new Error('the plan is not to be kept')
  })
  await expect(undone).rejects.toThrow('not to be kept')
  expect(readRows(installed, 'select data from pgboss.job')).toEqual([])
  await write((tx) => add(tx, VIDEO, [chunkAt(1)]))
  expect(await takeAll()).toEqual([1])
})

test('videos advance together, and each of two takers gets other chunks', async () => {
  const { write, add, take } = await openChunks()
  await write((tx) => add(tx, VIDEO, [chunkAt(0), chunkAt(1), chunkAt(3)]))
  await write((tx) => add(tx, OTHER, [chunkAt(0), chunkAt(1)]))
  const runs: (VideoChunk | undefined)[] = []
  for (let round = 0; round < 3; round++) runs.push(...(await Promise.all([take(), take()])))
  expect(runs.map((run) => run && [run.videoId, run.firstSegment])).toEqual([
    [VIDEO, 0],
    [OTHER, 0],
    [VIDEO, 1],
    [OTHER, 1],
    [VIDEO, 3],
    undefined,
  ])
})

test('the chunk that a viewer waits for comes before all others, cut for them, and nothing is run twice for it', async () => {
  const { db, write, queue, add, take, takeAll } = await openChunks()
  await write((tx) =>
    add(tx, VIDEO, [
      { ...chunkAt(0), segmentCount: 5 },
      { ...chunkAt(5), segmentCount: 5 },
    ]),
  )
  expect(await prioritizeSegment({ db, write, chunkQueue: queue }, { videoId: VIDEO, generation: 1 }, 'video', 7)).toBe(true)
  expect(await take({ upToPriority: -1 })).toMatchObject({ firstSegment: 7, segmentCount: 2 })
  expect(await take({ upToPriority: -1 })).toBe(undefined)
  expect(await takeAll()).toEqual([0, 5, 9])
})

test('the backlog alone is claimed, in order or the oldest first', async () => {
  const { write, queue, add, take } = await openChunks()
  await write((tx) => add(tx, VIDEO, [chunkAt(0), chunkAt(8)]))
  await write((tx) => add(tx, OTHER, [chunkAt(0), chunkAt(1), chunkAt(3)]))
  expect(await take({ abovePriority: 0 })).toMatchObject({ videoId: OTHER, firstSegment: 1 })
  expect((await claimOldestChunk(write, queue, { except: [OTHER] }))?.run).toMatchObject({ videoId: VIDEO, firstSegment: 0 })
  expect((await claimOldestChunk(write, queue, { except: [] }))?.run).toMatchObject({ videoId: VIDEO, firstSegment: 8 })
  expect(await take({ abovePriority: 0 })).toMatchObject({ videoId: OTHER, firstSegment: 3 })
  expect(await take({ abovePriority: 0 })).toBeUndefined()
  expect(await take()).toMatchObject({ videoId: OTHER, firstSegment: 0 })
})

test('a video that rests is left alone', async () => {
  const { write, add, take, takeAll } = await openChunks()
  await write((tx) => add(tx, VIDEO, [chunkAt(0)]))
  await write((tx) => add(tx, OTHER, [chunkAt(1)]))
  expect(await take({ except: [VIDEO] })).toMatchObject({ videoId: OTHER })
  expect(await take({ except: [VIDEO] })).toBe(undefined)
  expect(await takeAll()).toEqual([0])
})

test('a chunk whose run failed is taken again, whether the run could give it back or not; one that is done is not', async () => {
  const { write, queue, add, takeAll } = await openChunks()
  await write((tx) => add(tx, VIDEO, [chunkAt(0), chunkAt(1), chunkAt(3)]))
  const ends: Record<number, 'pending' | 'done'> = { 0: 'pending', 3: 'done' }
  const claim = () => claimChunk(write, queue, () => ({ upToPriority: undefined, except: [] }))
  for (const taken of [await claim(), await claim(), await claim()]) {
    const failing = taken?.hold(async () => {
      const end = ends[taken.run.firstSegment]
      if (end) await write((tx) => endRun(tx, taken.run, end))
      throw new Error('the disk is full')
    })
    await expect(failing).rejects.toThrow('the disk is full')
  }
  expect(await takeAll()).toEqual([0, 1])
})

test('a start finds what waits or was cut off in a database that pg-boss knows nothing of, and forgets what it knew', async () => {
  const { write, queue, add, take, takeAll, installed } = await openChunks()
  await write((tx) => add(tx, VIDEO, [chunkAt(0), chunkAt(1), chunkAt(3), chunkAt(8)]))
  const [done, cutOff] = [await take(), await take()]
  if (!done || !cutOff) throw new Error('there were two chunks to take')
  await write((tx) => endRun(tx, done, 'done'))
  changeRows(installed, 'delete from pgboss.job')
  await resumeChunks(write, queue)
  expect(await takeAll()).toEqual([1, 3, 8])
})

test('a start queues everything that is pending, in the order in which it is needed, in transactions of bounded size', async () => {
  const { write, queue, add, take, installed } = await openChunks()
  const chunks = Array.from({ length: 3_500 }, (_, i) => ({ ...chunkAt(i), priority: i % 3 }))
  await write((tx) => add(tx, VIDEO, chunks))
  await resumeChunks(write, queue)
  const queued = readRows<{ chunks: number }>(
    installed,
    'select count(*) as chunks from pgboss.job group by xmin::text order by 1',
  )
  expect(queued.map(({ chunks }) => chunks)).toEqual([500, 1_000, 1_000, 1_000])
  const first = [await take(), await take(), await take({ except: [VIDEO] })]
  expect(first).toMatchObject([{ firstSegment: 0 }, { firstSegment: 3 }, undefined])
})

test('F-25: a chunk whose worker was killed or hangs is run by another; the one that wakes up publishes nothing; each is published once', async () => {
  const { write, add, installed } = await openChunks()
  changeRows(installed, 'create table published (first_segment bigint, attempt bigint)')
  const chunks = Array.from({ length: rounds(20, 200) }, (_, i) => chunkAt(i))
  await write((tx) => add(tx, VIDEO, chunks))

  const killed = startWorker(installed.databaseUrl, 'waits')
  await expect.poll(killed.output).toMatch(/^took \d+$/m)
  const hanging = startWorker(installed.databaseUrl, 'waits')
  await expect.poll(hanging.output).toMatch(/^took \d+$/m)
  killed.process.kill('SIGKILL')
  hanging.process.kill('SIGSTOP')
  const lost = [killed, hanging].map(({ output }) => Number(/\d+/.exec(output())))
  for (const other of [1, 2]) startWorker(installed.databaseUrl, `does not wait ${other}`)

  // 15 s are promised; three times that, for a machine that does much else. At pg-boss’s own intervals it takes a minute.
  type Published = { first_segment: number; attempt: number }
  const published = () => readRows<Published>(installed, 'select first_segment, attempt from published order by 1')
  const once = chunks.map(({ firstSegment }) => firstSegment)
  await expect.poll(() => published().map(({ first_segment }) => first_segment)).toEqual(once)
  const taken = published()
  expect(lost.filter((segment) => taken[segment]?.attempt === 1)).toEqual([])

  hanging.process.kill('SIGCONT')
  hanging.process.stdin?.write('publish\n')
  await expect.poll(hanging.output).toMatch(/^refused \d+$/m)
  expect(published()).toEqual(taken)
  await expect.poll(() => readRows(installed, `select 1 from pgboss.job where state < 'completed'`)).toEqual([])
})

test('when its role may not create the schema of pg-boss, the error says what to grant', async () => {
  const { installed } = await openPlace()
  const { username, pathname } = new URL(installed.databaseUrl)
  changeRows(installed, `revoke create on database ${pathname.slice(1)} from ${username}`)
  await expect(openBossQueue({ url: installed.databaseUrl, name: 'chunk', log })).rejects.toThrow('GRANT CREATE ON DATABASE')
})

// --- tools ---

const log = pino({ level: 'silent' })

/** A database with two videos, and what tells of their chunks. */
async function openChunks() {
  const { installed, db, write } = await openPlace()
  await addVideos(write)
  const queue = await openBossQueue<ChunkJob>({ url: installed.databaseUrl, name: 'chunk', log })
  onTestFinished(() => queue.stop())
  const take = takesOf(write, queue)
  return {
    db,
    write,
    queue,
    take,
    add: (tx: Db, videoId: string, chunks: Chunk[]) => addChunks(tx, queue, { videoId, generation: 1 }, chunks),
    /** The first segments of all that is left to take. */
    async takeAll() {
      const taken: number[] = []
      for (let run = await take(); run; run = await take()) taken.push(run.firstSegment)
      return taken
    },
    installed,
  }
}

async function openPlace() {
  const place = await makePlace({ database: 'postgres' })
  onTestFinished(() => place.remove())
  const database = await openDatabaseAt(place)
  onTestFinished(() => database.close())
  return { ...database, installed: { dataDir: place.dataDir, databaseUrl: place.databaseUrl ?? '' } }
}

function takesOf(write: Write, queue: ChunkQueue) {
  return async ({ upToPriority, except = [], ...which }: Partial<ClaimFilter> = {}) => {
    const taken = await claimChunk(write, queue, () => ({ upToPriority, except, ...which }))
    void taken?.hold(() => new Promise(() => undefined)) // for as long as the test lasts
    return taken?.run
  }
}

async function addVideos(write: Write): Promise<void> {
  const video = {
    accountId: 'a',
    title: '',
    description: '',
    fileName: '',
    uploadTimeS: 0,
    status: 'Processing',
    generation: 1,
  } as const
  await write(async (tx) => {
    await tx.insertInto('account').values({ id: 'a', name: 'owner', createdAtS: 0, mayUpload: 1, mayImport: 1 }).execute()
    for (const id of [VIDEO, OTHER])
      await tx
        .insertInto('video')
        .values({ ...video, id })
        .execute()
  })
}

function chunkAt(firstSegment: number): Chunk {
  return { kind: 'video', firstSegment, segmentCount: 1, decodesFromStart: false, priority: firstSegment }
}

type Worker = { process: ChildProcess; output(): string }

function startWorker(url: string, patience: string): Worker {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'chunk-worker.ts'), url, patience], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (text: Buffer) => {
    output += text
  })
  return { process: child, output: () => output }
}
