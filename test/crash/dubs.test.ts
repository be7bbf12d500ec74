import { openAsBlob } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findEncoders, untilFinished } from '../data-folder.ts'
import { audioOf, makeDub } from '../pipeline/dubs.ts'
import { play } from '../pipeline/replaced.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { sweepBreaches } from './crash-harness.ts'
import { examine, type Memory, newMemory } from './inspect-data-folder.ts'
import { type CrashPoint, killAt, watch } from './strace.ts'

// An audio track is added to a video, and removed, by a server that is killed before each of its system calls: the video has it whole or
// not at all, and its own sound and picture are the same bytes.

let reelgate: Reelgate & { remove(): Promise<void> }
let memory: Memory
let dub: Blob
const chance = newChance('crash points of added audio tracks')

beforeAll(async () => {
  // One thread for files, so that the n-th call is the same call each time.
  reelgate = await startSharedReelgate({ env: { UV_THREADPOOL_SIZE: '1' }, video: await makeVideo({ seconds: 2 }) })
  await untilFinished(reelgate, reelgate.videoId)
  dub = await openAsBlob(await makeDub({ fromS: 0.5, toS: 1, seconds: 2 }))
  memory = newMemory()
})
afterAll(() => reelgate?.remove())

const audio = () => audioOf(reelgate)
const addedIds = async () => (await audio().list()).filter(({ added }) => added).map(({ id }) => id)

const SCENARIOS = [
  { name: 'an added audio track, until it can be played', prepare: removeAdded, call: () => audio().send(dub, 'language=fr') },
  {
    name: 'the removal of an added audio track',
    prepare: haveAdded,
    call: async () => audio().remove((await addedIds())[0] ?? 0),
  },
]

for (const { name, prepare, call } of sampleOf('crash scenarios of added audio tracks', SCENARIOS, 1)) {
  test(`T-16: ${name}, survives kill -9 before each of its system calls, and the video is as before or as wanted`, async () => {
    await prepare()
    const watched = await watch(reelgate.pid, join(reelgate.dataDir, '..', 'places'))
    await call()
    await untilQuiet()
    const all = await watched.points()
    for (const point of choose(all)) {
      const where = `killed before ${point.syscall} ${point.nth}`
      await prepare()
      const before = { added: await addedIds(), own: await ownSegments() }
      const attached = await killAt(reelgate.pid, point)
      const isAnswered = await call().then(
        ({ ok }) => ok,
        () => false,
      )
      await untilQuiet()
      await attached.detach()
      await reelgate.kill()
      await expect.poll(() => findEncoders(reelgate)).toEqual([])
      expect((await examine(reelgate, memory)).breaches, where).toEqual([])
      await reelgate.restart()
      await expect.poll(isBusy).toBe(false)
      const tracks = (await audio().list()).filter(({ added }) => added)
      expect(
        tracks.every(({ state }) => state === 'ready'),
        where,
      ).toBe(true)
      if (isAnswered) expect(tracks.length, where).toBe(before.added.length === 0 ? 1 : 0)
      expect(await ownSegments(), where).toEqual(before.own)
      for (const { id } of tracks) expect((await (await play(reelgate)).download(String(id))).segments, where).toHaveLength(1)
    }
    await reelgate.kill()
    const { breaches, orphans } = await examine(reelgate, memory)
    expect([...breaches, ...(await sweepBreaches(reelgate, memory, orphans))]).toEqual([])
  }, 3_600_000)
}

/** All, or two: of any system call as likely as of another. */
function choose(points: readonly CrashPoint[]): readonly CrashPoint[] {
  if (rounds(0, 1)) return points
  const pick = <T>(from: readonly T[]): T[] => [...from].splice(Math.floor(chance.between(0, from.length)), 1)
  const kinds = [...Map.groupBy(points, ({ syscall }) => syscall).values()]
  return [...pick(pick(kinds).flat()), ...pick(pick(kinds).flat())]
}

async function removeAdded(): Promise<void> {
  for (const id of await addedIds()) expect((await audio().remove(id)).status).toBe(200)
}

async function haveAdded(): Promise<void> {
  if ((await addedIds()).length > 0) return
  expect((await audio().send(dub, 'language=fr')).status).toBe(200)
  await expect.poll(isBusy).toBe(false)
}

const isBusy = () => readRows(reelgate, 'select 1 from dub where encoded = 0 and problem is null').length > 0

/** Waits until the call has had all its consequences, or has lost its server. */
async function untilQuiet(): Promise<void> {
  while (isBusy() && (await isServing())) await pause(20)
}

async function isServing(): Promise<boolean> {
  return fetch(`${reelgate.url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** What is in the video's own file. */
async function ownSegments(): Promise<Buffer[]> {
  const viewer = await play(reelgate)
  return [...(await viewer.download('1')).segments, ...(await viewer.download('2')).segments]
}
