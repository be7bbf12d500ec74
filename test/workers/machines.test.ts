import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { type Cluster, startCluster, type WorkerOptions } from '../cluster/cluster.ts'
import { examine, newMemory } from '../crash/inspect-data-folder.ts'
import { countPlannedSegments, listFiles, listSegments, untilFinished } from '../data-folder.ts'
import { type MovableClock, newMovableClock, shiftedClock } from '../faults/faked-clock.ts'
import { mountSmallDisk } from '../faults/small-disk.ts'
import type { Reached } from '../postgres/cluster.ts'
import { askForShared, DATABASE } from '../postgres.ts'
import { readRows } from '../rows.ts'
import type { ReachedStore } from '../s3/radosgw.ts'
import { STORAGE } from '../s3.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'

// Workers on machines of their own, which reach the server's port over HTTPS and nothing else, and what befalls them in the middle of a
// chunk. Whatever it is, the video ends ready, with each segment once and no file that no row names.

const { test, draw } = sampledTests('workers on other machines', 1)

/** A chunk of it takes a while. */
const LESSON = { seconds: 24, size: '640x360' } as const

let cluster: Cluster
/** Of the server: leases end when it is moved. */
let clock: MovableClock
let aheadS = 0

beforeAll(async () => {
  clock = await newMovableClock('time')
  const database =
    DATABASE === 'postgres'
      ? [{ kind: 'database', name: 'database', of: await askForShared<Reached>('postgresSocket') } as const]
      : []
  const store =
    STORAGE === 'bucket'
      ? [{ kind: 'store', name: 'store', of: await askForShared<ReachedStore>('objectStoreSocket') } as const]
      : []
  cluster = await startCluster([
    ...database,
    ...store,
    { kind: 'server', name: 'server', env: { REELGATE_ENCODERS: '0', ...clock.env } },
    { kind: 'proxy', name: 'proxy' },
  ])
})
afterAll(async () => {
  await cluster.end()
  await clock.remove()
})

/** Until the test has finished. */
async function startWorker(name: string, options: WorkerOptions = {}): Promise<void> {
  await cluster.add({ kind: 'worker', name, ...options })
  onTestFinished(() => cluster.program(name).kill())
}

/** All tasks of workers end that have not sent a request since. With a clock that is not PostgreSQL's a server answers nothing: there in their own time. */
async function passLease(): Promise<void> {
  if (DATABASE === 'postgres') return
  aheadS += 60
  await clock.set(aheadS)
}

async function tasksOf(name: string): Promise<string[]> {
  const { dataDir } = cluster.server()
  const workers = (await sendCommand(dataPaths(dataDir).controlSocket, 'worker list', {})) as {
    name: string
    encodes: string[]
  }[]
  return workers.find((worker) => worker.name === name)?.encodes ?? []
}

/** Uploads a video that takes a while, and waits until a worker is encoding a chunk of it. */
async function uploadFor(name: string): Promise<string> {
  const videoId = await cluster.server().owner.upload(`A lesson for ${name}`, await makeVideo(LESSON))
  await expect.poll(() => tasksOf(name)).not.toEqual([])
  return videoId
}

async function expectWhole(videoId: string): Promise<void> {
  const server = cluster.server()
  await untilFinished(server, videoId)
  expect(await server.owner.video(videoId)).toMatchObject({ status: 'ready' })
  const segments = listSegments(server, videoId)
  expect(segments.length).toBe(countPlannedSegments(server, videoId))
  expect(new Set(segments.map(({ rendition_id, number }) => `${rendition_id} ${number}`)).size).toBe(segments.length)
  const stored = (await listFiles(server, `segments/${videoId}`)).filter((name) => !name.endsWith('/'))
  expect(stored.map((name) => `${videoId}/${name}`).sort()).toEqual(segments.map(({ file }) => file).sort())
  if (STORAGE === 'bucket') return // the crash suites examine a folder
  const { breaches, orphans } = await examine(server, newMemory())
  expect({ breaches, orphans }).toEqual({ breaches: [], orphans: [] })
}

test('J14: a worker on another machine reaches the proxy’s port over TLS and nothing else, and encodes a video with another', async () => {
  await startWorker('one')
  await startWorker('two')
  const videoId = await uploadFor('one')
  const reach = async (host: string, port: string) => {
    const connect = `require('node:net').connect(${port}, '${host}').on('connect', () => process.exit(0)).on('error', () => process.exit(1)).setTimeout(1000, () => process.exit(2))`
    const [command = '', ...args] = [...cluster.machine('one').wrapper, process.execPath, '-e', connect]
    return promisify(execFile)(command, args).then(
      () => true,
      () => false,
    )
  }
  const [server, proxy] = [cluster.machine('server'), cluster.machine('proxy')]
  expect(await reach(proxy.addressOn('outside'), '443')).toBe(true)
  for (const [host, port] of [
    [proxy.addressOn('outside'), new URL(cluster.url).port],
    [server.addressOn('inside'), new URL(cluster.server().url).port],
    [proxy.addressOn('inside'), '443'],
    [cluster.machine('two').addressOn('outside'), '22'],
  ] as const)
    expect(await reach(host, port)).toBe(false)
  await expectWhole(videoId)
  const by = readRows(cluster.server(), 'select distinct worker_id from chunk where video_id = ?', videoId)
  expect(by.length).toBe(2)
})

test('J15: a worker is ended by kill -9 in the middle of a chunk, and another encodes it once the lease has ended', async () => {
  await startWorker('killed')
  const videoId = await uploadFor('killed')
  await cluster.program('killed').kill()
  await startWorker('after-kill')
  await passLease()
  await expectWhole(videoId)
})

test('J16: a worker is suspended past its lease and wakes: what it sends is refused, and it continues with other chunks', async () => {
  await startWorker('frozen')
  const videoId = await uploadFor('frozen')
  cluster.program('frozen').setFrozen(true)
  await passLease()
  await expect.poll(() => tasksOf('frozen')).toEqual([])
  await startWorker('meanwhile')
  await expect.poll(() => tasksOf('meanwhile')).not.toEqual([])
  cluster.program('frozen').setFrozen(false)
  await expect.poll(() => cluster.program('frozen').output()).toContain('taken back')
  await expectWhole(videoId)
})

test('J17: a worker that is stopped gives its chunks back, and another has them immediately', async () => {
  await startWorker('stopped')
  const videoId = await uploadFor('stopped')
  cluster.program('stopped').signal('SIGTERM')
  cluster.program('stopped').signal('SIGTERM')
  expect(await cluster.program('stopped').ended()).toBe(0)
  expect(await tasksOf('stopped')).toEqual([])
  await startWorker('after-stop')
  await expectWhole(videoId)
})

test('F-26, J18: the way to a worker is cut in the middle of a chunk until its lease has ended, and is there again', async () => {
  await startWorker('far')
  const videoId = await uploadFor('far')
  await cluster.machine('far').setLinked(false)
  await passLease()
  await expect.poll(() => tasksOf('far')).toEqual([])
  await cluster.machine('far').setLinked(true)
  await expectWhole(videoId)
})

test('J19: the disk of a worker is full: it returns the chunk, says why, and encodes it when there is room', async () => {
  const disk = await mountSmallDisk(1)
  await startWorker('full', { cacheFolder: join(disk.path, 'cache') })
  await disk.fill()
  const videoId = await cluster.server().owner.upload('A lesson for a full disk', await makeVideo(LESSON))
  await expect.poll(() => cluster.program('full').output()).toMatch(/ENOSPC|no space/i)
  await disk.makeRoom()
  await passLease()
  await startWorker('roomy')
  await expectWhole(videoId)
})

test('J20: the token of a worker is removed in the middle of a chunk: it ends, and another encodes the chunk', async () => {
  await startWorker('removed')
  const videoId = await uploadFor('removed')
  await cluster.server().cli('worker', 'remove', 'removed')
  expect(await cluster.program('removed').ended()).toBe(1)
  await expect.poll(() => cluster.program('removed').output()).toContain('it was removed')
  await startWorker('after-removal')
  await expectWhole(videoId)
})

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'J21: the server is restarted in the middle of a chunk, ended by %s',
  async (signal) => {
    await startWorker(`patient-${signal}`)
    const videoId = await uploadFor(`patient-${signal}`)
    const { program } = cluster.server()
    program.signal(signal)
    await program.ended()
    await expect.poll(() => cluster.program(`patient-${signal}`).output()).toContain('the server cannot be reached')
    await program.start()
    await expectWhole(videoId)
  },
)

test.each([
  ['ahead', '+1h'],
  ['behind', '-1h'],
] as const)('J22: the clock of a worker is an hour %s', async ([name, shift]) => {
  await startWorker(name, { env: shiftedClock(shift) })
  await expectWhole(await uploadFor(name))
})

draw()
