import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { cleanUpDeleted } from '../../src/catalogue/deletion.ts'
import type { Db } from '../../src/db/database.ts'
import type { Claim, Claims } from '../../src/jobs/claims.ts'
import type { Job } from '../../src/jobs/dispatcher.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { openTestClaims } from '../claims.ts'
import { openDatabaseAt, openOwnDatabase } from '../db/database.ts'
import { makeLocation } from '../installation-folder.ts'
import { changeRows, readRows } from '../rows.ts'
import { rounds } from '../seeded-random.ts'

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  test('F-75: of twenty servers that claim the same work concurrently one gets it, and the next one once that has ended', async () => {
    const work = await openWork(kind)
    const servers = await Promise.all(Array.from({ length: 20 }, () => work.openServer()))
    const jobs = (await Promise.all(servers.map((server) => server.claim()))).filter((job) => job !== undefined)
    expect(jobs).toHaveLength(1)
    const run = jobs[0]?.run(new AbortController().signal)
    expect(await work.claimAll(servers)).toEqual([])
    work.finish()
    await run
    expect(await work.recorded()).toEqual(['done'])
    expect(await work.claimAll(servers)).toEqual([]) // nothing is left to do
  })

  test('F-75: a claim is renewed while its work runs, however long that takes', async () => {
    const work = await openWork(kind)
    const [first, second] = [await work.openServer(), await work.openServer()]
    const job = await first.claim()
    const run = job?.run(new AbortController().signal)
    for (let elapsedS = 0; elapsedS < 60; elapsedS += 5) {
      work.clock.nowS += 5
      await first.maintain()
      await second.maintain()
      expect(await second.claim()).toBeUndefined()
    }
    work.finish()
    await run
    expect(await work.recorded()).toEqual(['done'])
  })

  test('F-76: work whose lease has ended is taken over; who lost it is stopped, and changes nothing any more', async () => {
    const work = await openWork(kind)
    const [stalled, other] = [await work.openServer(), await work.openServer()]
    const job = await stalled.claim()
    const run = job?.run(new AbortController().signal)
    const lost = work.claims.at(-1)
    work.clock.nowS += 20
    await other.maintain()
    const takenOver = await other.claim()
    expect(takenOver).toBeDefined()

    expect(await lost?.claim.settle((tx) => work.record(tx, 'by the one that lost it'))).toBeUndefined()
    expect(await work.write((tx) => lost?.claim.isHeld(tx) ?? Promise.resolve(true))).toBe(false)
    await stalled.maintain()
    expect(lost?.signal.aborted).toBe(true)
    work.finish()
    await run
    expect(await work.recorded()).toEqual([])

    await takenOver?.run(new AbortController().signal)
    expect(await work.recorded()).toEqual(['done'])
  })

  test('F-77: a start takes back what earlier runs of the same server left, and of no other; the only server takes back all', async () => {
    const work = await openWork(kind)
    const killed = await work.openServer({ server: 'one' })
    expect(await killed.claim()).toBeDefined()
    // Its claim stays, as after a kill.

    const other = await work.openServer({ server: 'another' })
    expect(await other.claim()).toBeUndefined()
    const restarted = await work.openServer({ server: 'one' })
    expect(work.released()).toBe(1)
    expect(await restarted.claim()).toBeDefined()

    const moved = await work.openServer({ server: 'on another machine', isOnlyServer: true })
    expect(work.released()).toBe(2)
    expect(await moved.claim()).toBeDefined()
  })

  test('work that throws is free again after some seconds, or when the only server starts again; work that a stop interrupts is free immediately', async () => {
    const work = await openWork(kind)
    const server = await work.openServer()
    const failing = await server.claim()
    const run = failing?.run(new AbortController().signal)
    work.fail(new Error('broken'))
    await expect(run).rejects.toThrow('broken')
    expect(await server.claim()).toBeUndefined()
    const restarted = await work.openServer({ isOnlyServer: true })
    expect(await restarted.claim()).toBeDefined()
    work.clock.nowS += 20
    await server.maintain()
    const interrupted = await server.claim()
    const stopping = new AbortController()
    const stopped = interrupted?.run(stopping.signal)
    stopping.abort(new Error('the server stops'))
    work.fail(new Error('the server stops'))
    await expect(stopped).rejects.toThrow('the server stops')
    expect(await server.claim()).toBeDefined()
  })
})

test('F-143: deleting a video at one server stops the work of another one on it, when that renews its claims, and no other work', async () => {
  const installed = await openChunks(2, (n) => `${n}`.repeat(32))
  const workers = [startWorker(installed.databaseUrl, 'encodes'), startWorker(installed.databaseUrl, 'encodes')]
  for (const { output } of workers) await expect.poll(output).toMatch(/^took \d+$/m)
  const { write } = installed
  const signals = createSignals(write)
  await openTestClaims({ ...installed, nowS: () => Math.floor(Date.now() / 1000), signals })
  await cleanUpDeleted({ signals }, ['0'.repeat(32)])
  for (const { process } of workers) process.stdin?.write('renew\n')
  const stopped = () => workers.map(({ output }) => output().trim().split('\n')).sort()
  await expect.poll(stopped).toEqual([['took 0', 'stopped 0'], ['took 1']])
})

test('F-25: chunks of workers that were killed or hang are encoded by others; one that wakes up publishes nothing; each is published once', async () => {
  const count = rounds(20, 200)
  const installed = await openChunks(count, () => 'v')
  changeRows(installed, 'create table published (first_segment bigint, attempt bigint)')
  const [killed, hanging] = [startWorker(installed.databaseUrl, 'waits'), startWorker(installed.databaseUrl, 'waits')]
  for (const { output } of [killed, hanging]) await expect.poll(output).toMatch(/^took \d+$/m)
  killed.process.kill('SIGKILL')
  hanging.process.kill('SIGSTOP')
  const lost = [killed, hanging].map(({ output }) => Number(/\d+/.exec(output())))
  for (const other of [1, 2]) startWorker(installed.databaseUrl, `does not wait ${other}`)

  type Published = { first_segment: number; attempt: number }
  const published = () => readRows<Published>(installed, 'select first_segment, attempt from published order by 1')
  const segments = () => published().map(({ first_segment }) => first_segment)
  const all = Array.from({ length: count }, (_, n) => n)
  await expect.poll(segments).toEqual(all.filter((segment) => !lost.includes(segment)))
  changeRows(installed, 'update claim set ends_at_s = 0') // time passes
  await expect.poll(segments).toEqual(all)
  const final = published()
  expect(lost.map((segment) => final[segment]?.attempt)).toEqual([2, 2])

  hanging.process.kill('SIGCONT')
  hanging.process.stdin?.write('publish\n')
  await expect.poll(hanging.output).toMatch(/^refused \d+$/m)
  expect(published()).toEqual(final)
  await expect.poll(() => readRows(installed, 'select kind from claim')).toEqual([])
})

// --- tools ---

/** Pending chunks on PostgreSQL, each of the video that `videoOf` says. */
async function openChunks(count: number, videoOf: (n: number) => string) {
  const location = await makeLocation({ database: 'postgres' })
  onTestFinished(() => location.remove())
  const database = await openDatabaseAt(location)
  onTestFinished(() => database.close())
  const installed = { ...database, dataDir: location.dataDir, databaseUrl: location.databaseUrl ?? '' }
  changeRows(installed, `insert into account (id, name, created_at_s, may_upload, may_import) values ('a', 'owner', 0, 1, 1)`)
  for (const videoId of new Set(Array.from({ length: count }, (_, n) => videoOf(n))))
    changeRows(
      installed,
      `insert into video (id, account_id, title, description, file_name, upload_time_s, status, generation)
       values (?, 'a', '', '', '', 0, 'Processing', 1)`,
      videoId,
    )
  for (let n = 0; n < count; n++)
    changeRows(
      installed,
      `insert into chunk (video_id, generation, kind, first_segment, segment_count, decodes_from_start, state, priority, position)
       values (?, 1, 'video', ${n}, 1, 0, 'pending', ${n}, 1)`,
      videoOf(n),
    )
  return installed
}

type OpenClaim = { claim: Claim; signal: AbortSignal }

/** One piece of work, whose row is a setting: it is done when that exists. The clock is the test's. */
async function openWork(kind: 'sqlite' | 'postgres') {
  const { db, write } = await openOwnDatabase(kind)
  const clock = { nowS: 1_000 }
  const claims: OpenClaim[] = []
  let released = 0
  let ending = Promise.withResolvers<void>()

  const recorded = async (read: Db = db) =>
    (await read.selectFrom('setting').select('value').where('name', '=', 'work').execute()).map(({ value }) => value)
  const record = async (tx: Db, value: string) => {
    await tx.insertInto('setting').values({ name: 'work', value }).execute()
    return true
  }

  async function claimWith(server: Claims): Promise<Job | undefined> {
    return server.claimNext({
      kind: 'import',
      find: () => findFree(db, clock.nowS),
      subjectOf: (subject) => subject,
      begin: async (tx, subject) => ((await recorded(tx)).length > 0 ? undefined : subject),
      start: () => async (claim, signal) => {
        claims.push({ claim, signal })
        await ending.promise
        await claim.settle((tx) => record(tx, 'done'))
      },
    })
  }

  async function findFree(read: Db, nowS: number): Promise<string | undefined> {
    if ((await recorded(read)).length > 0) return undefined
    const claimed = await read
      .selectFrom('claim')
      .select('id')
      .where((of) => of.or([of('id', 'is not', null), of('endsAtS', '>', nowS)]))
      .execute()
    return claimed.length > 0 ? undefined : 'the work'
  }

  async function openServer(identity?: Parameters<typeof openTestClaims>[2]) {
    const release = { import: async () => void released++ }
    const server = await openTestClaims({ db, write, nowS: () => clock.nowS }, release, identity)
    await server.stop() // its timer alone: the test says when it maintains its claims
    return { ...server, claim: () => claimWith(server) }
  }

  return {
    ...{ clock, claims, write, record, recorded, openServer },
    released: () => released,
    claimAll: async (servers: { claim(): Promise<Job | undefined> }[]) =>
      (await Promise.all(servers.map((server) => server.claim()))).filter((job) => job !== undefined),
    finish: () => ending.resolve(),
    fail(error: Error) {
      ending.reject(error)
      ending = Promise.withResolvers()
    },
  }
}

type Worker = { process: ChildProcess; output(): string }

function startWorker(url: string, mode: string): Worker {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'chunk-worker.ts'), url, mode], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (text: Buffer) => {
    output += text
  })
  return { process: child, output: () => output }
}
