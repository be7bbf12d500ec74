import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { MasterKey } from '../../src/crypto/master-key.ts'
import { type CrashPoint, killAt, watch } from '../crash/strace.ts'
import { getMasterKey } from '../data-folder.ts'
import { readTrace } from '../pipeline/trace.ts'
import { DATABASE } from '../postgres.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { addVideoKeys, expectOnlyCurrentOpens, masterKeysOf } from './secrets.ts'

// A rotation of the master key that is cut off: kill -9 before one of the system calls that it makes.

const VIDEOS = rounds(2_000, 100_000)
const KILLS = rounds(1, 30)
const MAX_TRIES = 100

test('F-39: after kill -9 at any moment of a rotation the next start plays immediately, and finishes it', async () => {
  const chance = newChance('killed rotations')
  // One thread for files, so that the n-th call is the same call each time.
  const reelgate = await startReelgate({ video: await makeVideo(), env: { UV_THREADPOOL_SIZE: '1' } })
  await reelgate.stop()
  await addVideoKeys(reelgate, VIDEOS)
  await reelgate.restart()
  const earlier: MasterKey[] = [getMasterKey(reelgate)]
  const watched = await watch(reelgate.pid, join(reelgate.dataDir, '..', 'places'))
  await rotate(reelgate)
  const points = await watched.points()
  expect(expectOnlyCurrentOpens(reelgate, earlier)).toBeGreaterThan(2 * VIDEOS)

  let [kills, tries] = [0, 0]
  for (; kills < KILLS && tries < MAX_TRIES; tries++) {
    const point = pickPoint(points, chance) // not reached where another thread makes the call
    const key = getMasterKey(reelgate)
    const attached = await killAt(reelgate.pid, point)
    kills += await rotate(reelgate).then(
      () => 0,
      () => 1,
    )
    await attached.detach()
    await reelgate.kill()
    const moment = `killed before ${point.syscall} ${point.nth}`
    const { ids, inFile } = masterKeysOf(reelgate)
    expect(inFile, moment).toEqual(expect.arrayContaining(ids))
    await reelgate.restart()
    expect(await plays(reelgate), moment).toBe(true)
    await untilRotated(reelgate)
    expect(await plays(reelgate), moment).toBe(true)
    const current = getMasterKey(reelgate)
    if (!current.bytes.equals(key.bytes)) earlier.push(key)
    expectOnlyCurrentOpens(reelgate, earlier.slice(-1))
  }
  expectOnlyCurrentOpens(reelgate, earlier)
  process.stderr.write(`${points.length} places, ${tries} tried, ${kills} kills\n`)
  expect(kills).toBe(KILLS)
  expect(earlier.length).toBeGreaterThan(rounds(0, 1)) // not all kills came before anything was written
}, 3_600_000)

/** How the setting is written, with its value: into SQLite's log, or to PostgreSQL. */
const BOUND =
  DATABASE === 'sqlite' ? /^pwrite64\(\d+<.*reelgate\.db-wal>.*master-key-id/ : /^writev?\(.*master-key-id[^"]{0,24}[0-9a-f]{8}/

test('F-29: both keys are durable in the file before the database names them, and the old one leaves it only after the new one is named alone', async () => {
  const reelgate = await startReelgate()
  await reelgate.stop()
  const trace = join(reelgate.dataDir, '..', 'calls')
  const filter = 'trace=fsync,rename,pwrite64,write,writev'
  const main = join(import.meta.dirname, '../../bin/main.js')
  const strace = [
    '-D',
    '-f',
    '-qq',
    '-y',
    '-s',
    '4096',
    '-e',
    filter,
    '-o',
    trace,
    process.execPath,
    main,
    'key',
    'rotate-master',
  ]
  await promisify(execFile)('strace', strace, { env: { PATH: process.env.PATH ?? '', ...reelgate.env } })
  const calls = readTrace(await readFile(trace, 'utf8'))
  let at = -1
  const next = (pattern: RegExp) => {
    const found = calls.find(({ text, start }) => start > at && pattern.test(text))
    expect({ pattern, found: found !== undefined }).toEqual({ pattern, found: true })
    at = found?.end ?? at
  }
  const folder = new RegExp(`^fsync\\(\\d+<${join(reelgate.dataDir, '..')}>`)
  const replaceFile = () => {
    next(/^fsync\(\d+<.*data\.key\.new>/)
    next(/^rename\(".*data\.key\.new", ".*data\.key"\)/)
    next(folder)
  }
  replaceFile()
  next(BOUND)
  next(BOUND)
  replaceFile()
})

function pickPoint(points: readonly CrashPoint[], chance: ReturnType<typeof newChance>): CrashPoint {
  const kinds = [...Map.groupBy(points, ({ syscall }) => syscall).values()]
  const pick = <T>(from: readonly T[]): T | undefined => from[Math.floor(chance.between(0, from.length))]
  const point = pick(pick(kinds) ?? [])
  if (!point) throw new Error('the rotation made no system call')
  return point
}

function rotate({ dataDir }: Reelgate): Promise<unknown> {
  return sendCommand(dataPaths(dataDir).controlSocket, 'key rotate-master', {})
}

async function plays(reelgate: Reelgate): Promise<boolean> {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))
  return (await viewer.key(0)).status === 200
}

/** Waits until the database and the file have the same single key. */
async function untilRotated(reelgate: Reelgate): Promise<void> {
  for (;;) {
    const { ids, inFile } = masterKeysOf(reelgate)
    if (ids.length === 1 && inFile.length === 1 && ids[0] === inFile[0]) return
    await pause(20)
  }
}
