import { existsSync } from 'node:fs'
import { mkdir, readFile, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { deriveWindowKey } from '../../src/crypto/content-key.ts'
import type { Owner, VideoBody } from '../client.ts'
import { findEncoders, getContentKey, listFiles } from '../data-folder.ts'
import { makeLesson } from '../pipeline/lesson.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { type Chance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { Clients, seenOf } from './clients.ts'
import { type Op, openHistory, type Seen } from './history.ts'
import { examine, type Memory, newMemory } from './inspect-data-folder.ts'
import { judge, newWorld, type Observation, remember } from './invariants.ts'
import { createWorkload, TAGS } from './workload.ts'

export type CrashTest = Awaited<ReturnType<typeof newCrashTest>>

export const CLIENTS = 8

const HISTORIES = join(import.meta.dirname, '../../.cache/crash')

/** What a server logs of a database or a bucket that it does not reach, and of what others that were lost have locked. */
const AWAY =
  /database: unavailable|the database (cannot be reached now|did not say)|does not reach its database|bucket .*does not answer|(held|in use) by another (server|program)/i

/** Videos so small that they are encoded in an instant, yet of more than one chunk. The first one has languages, captions and a chapter. */
const makeVideos = () => [
  makeLesson('mp4', 2),
  makeVideo({ seconds: 2, size: '160x90', audioTrack: false }),
  makeVideo({ seconds: 5, size: '64x64', rate: 10 }),
]

/** A server of this test alone, with its clients; see `newCrashTest`. */
export const startCrashTest = async (chance: Chance, name: string) => newCrashTest(await startReelgate(), chance, name)

/** A server with its clients, their history, and what is known to be there; what breaks it calls `afterwards`. */
export async function newCrashTest(reelgate: Reelgate, chance: Chance, name: string) {
  const videos = await Promise.all(makeVideos().map(async (made) => readFile(await made)))
  // Kept, to find out how it came to a breach.
  await mkdir(HISTORIES, { recursive: true })
  const history = openHistory(join(HISTORIES, `${name}.jsonl`))
  const clients = new Clients(reelgate, history)
  const { run: runClients } = createWorkload(clients, chance, videos)
  await addSilentWebhook(reelgate.owner)
  const world = newWorld()
  const memory = newMemory()
  /** Calls that nothing has been compared with yet. */
  const received: Op[] = []

  /** Of a server that is down: what its folder holds, then what the next start makes of it. No hand mends anything. */
  async function afterwards(): Promise<string[]> {
    await expect.poll(() => findEncoders(reelgate)).toEqual([])
    const { breaches } = await examine(reelgate, memory)
    await reelgate.restart()
    return [...breaches, ...(await goOn())]
  }

  /** Of a server that answers again. */
  async function goOn(): Promise<string[]> {
    await expect.poll(answersAll).toBe(true)
    await askAgain()
    return compare()
  }

  /** Sends enough requests concurrently to use each of its connections to the database: they may be opened again one after another. */
  async function answersAll(): Promise<boolean> {
    const pages = Array.from({ length: 20 }, (_, i) => `/api/videos?limit=${i + 1}&page=1`)
    const answers = await Promise.all(pages.map((page) => reelgate.owner.call('GET', page)))
    return answers.every(({ status }) => status === 200)
  }

  /** A client without an answer asks again, as any would: the browser its redeem, the owner's site its upload. */
  async function askAgain(): Promise<void> {
    const ops = history.take()
    await inBatches(ops, async (op) => {
      if (op.outcome !== 'info') return
      if (op.kind === 'redeem') await clients.redeem(op.client, op, op.viewer)
      if (op.kind === 'upload') await clients.uploadAgain(op.client, op.videoId)
    })
    received.push(...ops, ...history.take())
  }

  /** Compares what the clients received with what is there. No client calls meanwhile. */
  async function compare(): Promise<string[]> {
    const ops = [...received.splice(0), ...history.take()]
    const observed = await observe(reelgate, [...world.gone, ...ops.flatMap((op) => (op.kind === 'delete' ? op.videoIds : []))], {
      ...Object.fromEntries(Array.from(world.keys, ([keyId, { secret }]) => [keyId, secret])),
      ...Object.fromEntries(ops.flatMap((op) => (op.kind === 'make-key' && op.keyId ? [[op.keyId, op.secret ?? '']] : []))),
    })
    const breaches = judge(world, ops, observed)
    remember(world, ops, observed)
    clients.learn(observed)
    return [...breaches, ...(await listBreaches(reelgate.owner, observed)), ...errorsLogged()]
  }

  /** Nothing that a killed server leaves is an error to the next one; that its database or bucket was away may be one. */
  function errorsLogged(): string[] {
    const lines = reelgate.output().split('\n')
    return lines.filter((line) => /"level":[56]0/.test(line) && !AWAY.test(line))
  }

  /** Videos that are being made or removed, with what there is still to do. */
  function listOpen() {
    return readRows(
      reelgate,
      `select id, status, deleted_at_s, (select count(*) from source where source.video_id = id) as sources,
        (select min(state) from chunk where chunk.video_id = id and state <> 'done') as chunks
      from video left join generation on video_id = id and number = generation
      where deleted_at_s is not null or status in ('Queued', 'Processing') or (status = 'ready' and finished_at_s is null)
        or id in (select video_id from file where type = 'caption' and blob is null and problem is null)`,
    )
  }

  /** Whether no video is being made, and none is being removed. */
  const isQuiet = () => listOpen().length === 0

  /** Waits until no video is being made any more: each has become what it had to become. */
  async function finished(): Promise<string[]> {
    await expect.poll(listOpen, { interval: 200 }).toEqual([])
    const breaches = await compare()
    for (const [id, { isVideo, rank }] of world.videos) {
      if (isVideo && rank !== 3) breaches.push(`the video ${id} did not become ready`)
      if (isVideo === false && rank !== 4) breaches.push(`what is no video became ${rank}: ${id}`)
    }
    return breaches
  }

  /** Likewise, and nothing is left over. */
  async function settled(): Promise<string[]> {
    const breaches = await finished()
    await reelgate.kill()
    const { breaches: found, orphans } = await examine(reelgate, memory)
    breaches.push(...found, ...(await sweepBreaches(reelgate, memory, orphans)))
    // What is there for a moment is being written by the server that has just started, such as a poster.
    await expect.poll(() => listFiles(reelgate, 'tmp')).toEqual([])
    return breaches
  }

  return { reelgate, clients, runClients, history, world, videos, isQuiet, afterwards, goOn, compare, finished, settled }
}

/** Of a server that is down, two days later: what no row names is gone, all else is as it was. It runs afterwards. */
export async function sweepBreaches(reelgate: Reelgate, memory: Memory, orphans: readonly string[]): Promise<string[]> {
  const then = Date.now() / 1000 - 2 * 24 * 3600
  for (const name of await listFiles(reelgate))
    if (/\.(sealed|m4s)$/.test(name)) await utimes(join(reelgate.dataDir, name), then, then)
  await reelgate.restart()
  if (orphans.length === 0) return []
  await expect.poll(() => orphans.filter((path) => existsSync(path))).toEqual([])
  await reelgate.kill()
  const { breaches, orphans: left } = await examine(reelgate, memory)
  await reelgate.restart()
  return [...breaches, ...left.map((path) => `${path} is left although no row names it`)]
}

/** Up to some hundred calls on, and a little later still: inside any of them, or between two. */
export async function untilBusy({ history }: CrashTest, chance: Chance): Promise<void> {
  await history.after(Math.floor(chance.between(20, rounds(200, 600))))
  await pause(chance.between(0, 30))
}

/** Two videos that play, so that OTPs have something to open. */
export async function haveSomeReady({ clients, videos, compare }: CrashTest): Promise<void> {
  for (const video of videos.slice(0, 2)) {
    // A busy machine may not answer in the time that a proxy waits.
    const upload = async (): Promise<string | undefined> => {
      const { videoId } = await clients.create(0)
      const sent = videoId === undefined ? undefined : await clients.upload(0, videoId, { clear: video, isVideo: true })
      return sent?.outcome === 'ok' ? videoId : undefined
    }
    let videoId: string | undefined
    while (videoId === undefined) videoId = await upload()
    await expect.poll(async () => (await clients.readOne(0, videoId)).seen?.[0]?.status, { timeout: 60_000 }).toBe('ready')
  }
  expect(await compare()).toEqual([])
}

/** It is off: what it should have been sent is listed, and nothing is requested. */
async function addSilentWebhook(owner: Owner): Promise<void> {
  const headers = { 'Idempotency-Key': 'silent' }
  const add = () => owner.call('POST', '/api/hooks', { body: { value: 'https://8.8.8.8/', status: 0 }, headers })
  await expect.poll(async () => (await add()).status).toBe(200)
}

/** Asks until there is an answer: a proxy does not wait long for a busy machine. */
async function ask(owner: Owner, path: string, headers: Record<string, string> = {}): Promise<Response> {
  for (;;) {
    const answer = await owner.call('GET', path, { headers })
    if (answer.status !== 503) return answer
    await pause(500)
  }
}

/** Every page of a list, put together. */
async function listAll(owner: Owner, query: string): Promise<{ count: number; videos: Map<string, Seen> }> {
  const videos = new Map<string, Seen>()
  for (let page = 1; ; page++) {
    const answer = await ask(owner, `/api/videos?limit=40&page=${page}${query}`)
    const { count, rows } = (await answer.json()) as { count: number; rows: VideoBody[] }
    for (const row of rows) videos.set(row.id, seenOf(row))
    if (rows.length < 40) return { count, videos }
  }
}

/** The filtered lists, whose counters and index are kept apart, say the same as the whole one. */
async function listBreaches(owner: Owner, { videos }: Observation): Promise<string[]> {
  const breaches: string[] = []
  const compare = async (query: string, belongs: (video: Seen) => boolean) => {
    const found = await listAll(owner, `&${query}`)
    const wanted = [...videos.values()].filter(belongs).map(({ id }) => id)
    const isSame = found.count === wanted.length && wanted.every((id) => found.videos.has(id))
    if (!isSame) breaches.push(`${query} finds ${found.count} videos instead of ${wanted.length}`)
  }
  for (const tag of TAGS) await compare(`tag=${encodeURIComponent(tag)}`, ({ tags }) => tags.includes(tag))
  for (const { title } of [...videos.values()].slice(0, 3))
    await compare(`q=${encodeURIComponent(title)}`, (video) => video.title.includes(title))
  const { rows: names } = (await (await ask(owner, '/api/videos/tags')).json()) as { rows: string[] }
  const carried = new Set([...videos.values()].flatMap(({ tags }) => tags))
  if (names.toSorted().join() !== [...carried].toSorted().join())
    breaches.push(`the tags are ${names}, carried are ${[...carried]}`)
  return breaches
}

/** What the public API says of everything, and the few rows that it does not show. */
export async function observe(
  reelgate: Reelgate,
  deleted: readonly string[],
  keys: Record<string, string>,
): Promise<Observation> {
  const { owner } = reelgate
  const { count, videos } = await listAll(owner, '')
  const answers = await inBatches([...new Set(deleted)], async (id) => {
    const { status } = await ask(owner, `/api/videos/${id}`)
    return { id, status }
  })
  const answeredFor = answers.filter(({ id, status }) => status !== 404 && !videos.has(id)).map(({ id }) => id)
  const working = await inBatches(Object.entries(keys), async ([keyId, secret]) => {
    const { status } = await ask(owner, '/api/videos?limit=1', { Authorization: `Apisecret ${secret}` })
    return status === 200 ? [keyId] : []
  })
  const sources = readRows<{ video_id: string; sha256: Buffer }>(reelgate, 'select video_id, sha256 from source')
  const arriving = readRows<{ video_id: string; received_bytes: number }>(
    reelgate,
    'select video_id, received_bytes from resumable_upload where finished_at_s is null',
  )
  const sessions = readRows<{ id: string; otp_hash: Buffer }>(reelgate, 'select id, otp_hash from playback_session')
  const otps = readRows<{ hash: Buffer }>(reelgate, 'select hash from otp')
  const ready = [...videos.values()].filter(({ status }) => status === 'ready')
  return {
    count,
    videos,
    answeredFor,
    arrivedBytes: new Map(arriving.map(({ video_id, received_bytes }) => [video_id, received_bytes])),
    sources: new Map(sources.map(({ video_id, sha256 }) => [video_id, sha256.toString('hex')])),
    sessions: new Map(
      [...Map.groupBy(sessions, ({ otp_hash }) => otp_hash.toString('hex'))].map(([hash, rows]) => [
        hash,
        rows.map(({ id }) => id),
      ]),
    ),
    otpHashes: new Set(otps.map(({ hash }) => hash.toString('hex'))),
    windowKeys: new Map(ready.map(({ id }) => [id, deriveWindowKey(getContentKey(reelgate, id), 0).toString('hex')])),
    workingKeys: new Set(working.flat()),
  }
}

/** Concurrent calls, but never so many that the server closes connections of this address, however long a test has run. */
const BATCH = 50

async function inBatches<From, To>(all: readonly From[], call: (one: From) => Promise<To>): Promise<To[]> {
  const results: To[] = []
  for (let at = 0; at < all.length; at += BATCH) results.push(...(await Promise.all(all.slice(at, at + BATCH).map(call))))
  return results
}
