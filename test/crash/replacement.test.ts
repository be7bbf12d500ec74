import { openAsBlob } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { NoAnswer, type UploadCredentials } from '../client.ts'
import { findEncoders, listFiles, untilFinished, untilStoryboardMade } from '../data-folder.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { makeLesson } from '../pipeline/lesson.ts'
import { play } from '../pipeline/replaced.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { readNames, type Viewer } from '../viewer.ts'
import { sweepBreaches } from './crash-harness.ts'
import { examine, type Memory, newMemory } from './inspect-data-folder.ts'
import { type CrashPoint, killAt, watch } from './strace.ts'

// A video whose file is replaced, which is trimmed, and for which both are undone, by a server that is killed before each of its system
// calls: it plays the one or the other, whole, sessions of the former continue, and captions and chapters stay.

/** What plays, what is kept, the one that was kept last first, and how often another came to play. */
type State = { generation: number; kept: number[]; exchanges: number }

type Scenario = {
  rows: string
  name: string
  /** What is there before. */
  prepare(): Promise<unknown>
  call(): Promise<Response>
  /** How the video must be when the call was answered and all is done, and how it may be otherwise. */
  outcomes(before: State, now: State): { done: State; undone: State }
}

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
let memory: Memory
let longer: Blob
let issued: UploadCredentials
let lastPart: () => Promise<Response>
let attached: unknown[]
const chance = newChance('crash points of replacements')

beforeAll(async () => {
  // One thread for files, so that the n-th call is the same call each time.
  reelgate = await startSharedReelgate({ env: { UV_THREADPOOL_SIZE: '1' } })
  const { owner } = reelgate
  await owner.call('POST', '/api/hooks', { body: { value: 'https://8.8.8.8/', status: 0 } })
  videoId = await owner.upload('A video', await makeLesson('mkv', 2))
  longer = await openAsBlob(await makeVideo({ seconds: 3, size: '96x64' }))
  await untilFinished(reelgate, videoId)
  while (listAttached().some((row) => 'blob' in row && row.blob === null)) await pause(20)
  attached = listAttached()
  expect(attached).toHaveLength(3)
  memory = newMemory()
})
afterAll(() => reelgate.remove())

const exchanged = (before: State, now: State): State => ({
  generation: Math.max(now.generation, before.generation + 1),
  kept: [before.generation, ...before.kept],
  exchanges: before.exchanges + 1,
})

const SCENARIOS: readonly Scenario[] = [
  {
    ...{ rows: 'X35', name: 'a file that replaces another, to the exchange', prepare: askToReplace },
    call: () => reelgate.owner.send(issued, longer),
    outcomes: (before, now) => ({ done: exchanged(before, now), undone: before }),
  },
  {
    ...{
      rows: 'X35, X55',
      name: 'the last part of a file that replaces another, by a token, to the exchange',
      prepare: sendMostByToken,
    },
    call: () => lastPart(),
    outcomes: (before, now) => ({ done: exchanged(before, now), undone: before }),
  },
  {
    ...{ rows: 'X35', name: 'a trim, to the exchange', prepare: keepFew },
    call: () => trim(),
    outcomes: (before, now) => ({ done: exchanged(before, now), undone: before }),
  },
  {
    ...{ rows: 'X35', name: 'an undo', prepare: haveKept },
    call: () => api('POST', '/undo'),
    outcomes: (before) => {
      const [generation = 0, ...others] = before.kept
      const done = { generation, kept: [before.generation, ...others], exchanges: before.exchanges + 1 }
      return { done, undone: before }
    },
  },
  {
    ...{ rows: 'X35', name: 'the deletion of what is kept', prepare: haveKept },
    call: () => api('DELETE', '/kept'),
    outcomes: (before) => ({ done: { ...before, kept: [] }, undone: before }),
  },
  {
    ...{ rows: 'X35', name: 'a trim that is cancelled', prepare: beginTrim },
    call: () => api('DELETE', '/replacement'),
    outcomes: (before, now) => ({ done: before, undone: exchanged(before, now) }),
  },
]

for (const { rows, name, prepare, call, outcomes } of sampleOf('crash scenarios of replacements', SCENARIOS, 1)) {
  test(
    `${rows}: ${name} survives kill -9 before each of its system calls, and its viewers continue`,
    async () => {
      await prepare()
      const watched = await watch(reelgate.pid, join(reelgate.dataDir, '..', 'places'))
      await call()
      await untilQuiet()
      const all = await watched.points()
      const points = choose(all)
      let kills = 0
      for (const point of points) {
        const where = `killed before ${point.syscall} ${point.nth}`
        await expect.poll(isBusy).toBe(false)
        await untilStoryboardMade(reelgate, videoId) // one that three kills interrupt is given up, with an error
        await prepare()
        const [before, viewer] = [stateOf(), await play({ ...reelgate, videoId })]
        const former = await segmentsOf(viewer)
        const tracer = await killAt(reelgate.pid, point)
        const isAnswered = await call().then(({ ok }) => ok, unlessNoAnswer)
        await untilQuiet()
        await tracer.detach()
        kills += Number(!(await isServing()))
        await reelgate.kill()
        await expect.poll(() => findEncoders(reelgate)).toEqual([])
        expect((await examine(reelgate, memory)).breaches, where).toEqual([])
        await reelgate.restart()
        await expect.poll(isBusy).toBe(false)

        const { done, undone } = outcomes(before, stateOf())
        if (isAnswered) expect(stateOf(), where).toEqual(done)
        else expect([done, undone], where).toContainEqual(stateOf())
        await viewer.openPage()
        viewer.newPage()
        await viewer.reopen()
        expect(await segmentsOf(viewer), where).toEqual(former)
        const newcomer = await segmentsOf(await play({ ...reelgate, videoId }))
        if (stateOf().generation === before.generation) expect(newcomer, where).toEqual(former)
        else expect(newcomer.length, where).toBeGreaterThan(0) // of the same file perhaps, with the same bytes
        expect(listAttached(), where).toEqual(attached)
        expect(reelgate.output(), where).not.toMatch(/"level":[56]0/)
      }
      await reelgate.kill()
      const { breaches, orphans } = await examine(reelgate, memory)
      expect([...breaches, ...(await sweepBreaches(reelgate, memory, orphans))]).toEqual([])
      await expect.poll(() => listFiles(reelgate, 'tmp')).toEqual([])
      process.stderr.write(`${name}: ${all.length} places, ${points.length} tried, ${kills} kills\n`)
    },
    4 * 3_600_000,
  )
}

/** All, or one: of any system call as likely as of another. */
function choose(points: readonly CrashPoint[]): readonly CrashPoint[] {
  if (rounds(0, 1)) return points
  const pick = <T>(from: readonly T[]): T[] => [...from].splice(Math.floor(chance.between(0, from.length)), 1)
  const [sameCalls = []] = pick([...Map.groupBy(points, ({ syscall }) => syscall).values()])
  return pick(sameCalls)
}

function api(method: string, path: string, body?: object): Promise<Response> {
  return reelgate.owner.call(method, `/api/videos/${videoId}${path}`, body && { body })
}

/** Another of 80 parts each time, by whole frames, ten a second: kills before it begins leave what plays, which must not be asked for again. */
function trim(): Promise<Response> {
  const [start, end] = [trims % 10, Math.floor(trims / 10) % 8]
  trims++
  return api('PUT', '/trim', { startS: (1 + start) / 10, endS: (12 + end) / 10 })
}
let trims = 0

/** What is kept of many rounds would only take time. */
async function keepFew(): Promise<void> {
  if (stateOf().kept.length > 2) expect((await api('DELETE', '/kept')).status).toBe(200)
}

async function askToReplace(): Promise<void> {
  await keepFew()
  issued = (await (await api('PUT', '')).json()) as UploadCredentials
}

const PAGE = 'https://school.example'
const LAST_PART_BYTES = 1000

/** All but the last part of a file, from a page with a token for this video. */
async function sendMostByToken(): Promise<void> {
  await keepFew()
  const made = await reelgate.owner.call('POST', '/api/upload-tokens', { body: { origin: PAGE, videoId } })
  const { token } = (await made.json()) as { token: string }
  const page = createTusClient(reelgate.owner, `Bearer ${token}`, { Origin: PAGE })
  const bytes = Buffer.from(await longer.arrayBuffer())
  const at = bytes.length - LAST_PART_BYTES
  const { address } = await page.create(bytes.length, { videoId })
  expect((await page.patch(address, 0, bytes.subarray(0, at))).status).toBe(204)
  lastPart = () => page.patch(address, at, bytes.subarray(at))
}

async function haveKept(): Promise<void> {
  if (stateOf().kept.length > 0) return
  expect((await trim()).status).toBe(200)
  await expect.poll(isBusy).toBe(false)
}

async function beginTrim(): Promise<void> {
  await keepFew()
  expect((await trim()).status).toBe(200)
}

function stateOf(): State {
  const [video] = readRows<{ generation: number }>(reelgate, 'select generation from video where id = ?', videoId)
  const kept = readRows<{ number: number }>(
    reelgate,
    'select number from generation where video_id = ? and kept_until_s is not null order by kept_until_s desc, created_at_s desc',
    videoId,
  )
  const events = readRows(reelgate, "select 1 from delivery where event = 'video:replaced'")
  return { generation: video?.generation ?? 0, kept: kept.map(({ number }) => number), exchanges: events.length }
}

const isBusy = () =>
  readRows(
    reelgate,
    'select 1 from replacement where problem is null union all select 1 from generation where finished_at_s is null',
  ).length > 0

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

function unlessNoAnswer(error: unknown): false {
  if (error instanceof NoAnswer) throw error
  return false
}

/** Of the picture and of each language. */
async function segmentsOf(viewer: Viewer): Promise<Buffer[]> {
  const segments: Buffer[] = []
  for (const name of readNames(await viewer.playlist('main'))) segments.push(...(await viewer.download(name)).segments)
  return segments
}

/** Captions and chapters, which belong to the video whatever it plays. */
const listAttached = () => [
  ...readRows(reelgate, `select id, language, hidden, blob from file where type = 'caption' and video_id = ?`, videoId),
  ...readRows(reelgate, 'select list from chapters where video_id = ?', videoId),
]
