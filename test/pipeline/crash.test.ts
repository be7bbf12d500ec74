import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import { findEncoders, listFiles, listSegments, untilFinished } from '../data-folder.ts'
import { footage } from '../footage.ts'
import { startPostgres } from '../postgres.ts'
import { timeEnd } from '../processes.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { expectWhole, makeCountedVideo } from './counted-video.ts'
import { findChanged, lookAtSegments, type Sightings } from './segment-snapshots.ts'

const { test, draw } = sampledTests('kills and deletions in mid-encode', 1)

const ROUNDS = rounds(2, 30)

let reelgate: Reelgate & { remove(): Promise<void> }
let video: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  video = await makeCountedVideo(join(reelgate.dataDir, '..', 'video.mp4'))
})
afterAll(() => reelgate.remove())

test(`F-03, F-04: a video survives kill -9 of the server at any moment of its encode (${ROUNDS} of them)`, async () => {
  const chance = newChance('kill -9 in mid-encode')
  const encodeMs = await timeEncode()
  for (let round = 0; round < ROUNDS; round++) {
    const videoId = await reelgate.owner.upload(`killed ${round}`, video)
    const seen: Sightings = new Map()
    const moments = Array.from({ length: round % 2 ? 2 : 1 }, () => chance.between(0, encodeMs * 0.9))
    for (const [i, moment] of moments.entries()) {
      await pause(moment / (i + 1))
      await lookAtSegments(reelgate, videoId, seen)
      await reelgate.kill()
      await expect.poll(() => findEncoders(reelgate)).toEqual([])
      await reelgate.restart()
    }
    await reelgate.owner.until(videoId, 'ready')
    await untilFinished(reelgate, videoId)
    expect(await findChanged(reelgate, videoId, seen)).toEqual([])
    await expectWhole(reelgate, videoId)
    expect(await listFiles(reelgate, 'tmp')).toEqual([])
  }
}, 1_800_000)

test(`F-35: a deletion wins over the encode, whenever it comes (${ROUNDS} moments), and nothing comes back after a restart`, async () => {
  const chance = newChance('delete in mid-encode')
  const encodeMs = await timeEncode()
  const deleted: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const videoId = await reelgate.owner.upload(`deleted ${round}`, video)
    await pause(chance.between(0, encodeMs))
    expect((await reelgate.owner.delete([videoId])).message).toBe('Successfully deleted 1 videos')
    expect((await reelgate.owner.list()).rows.map(({ id }) => id)).not.toContain(videoId)
    expect((await reelgate.owner.call('GET', `/api/videos/${videoId}`)).status).toBe(404)
    await expectGone(videoId)
    deleted.push(videoId)
  }
  expect(await findEncoders(reelgate)).toEqual([])
  // The last deletion is cut short as well, and is finished by the next start.
  const last = await reelgate.owner.upload('deleted and killed', video)
  await pause(encodeMs / 3)
  await reelgate.owner.delete([last])
  await reelgate.kill()
  await reelgate.restart()
  for (const videoId of [...deleted, last]) await expectGone(videoId)
  expect((await reelgate.owner.list('?limit=40')).rows.filter(({ title }) => title.startsWith('deleted'))).toEqual([])
}, 600_000)

test('F-35: videos deleted at the same moment, each in mid-encode, leave nothing, not even a folder', async () => {
  const videoIds = await Promise.all(['a', 'b', 'c'].map((title) => reelgate.owner.upload(`deleted ${title}`, video)))
  await Promise.all(videoIds.map((id) => reelgate.owner.until(id, 'ready')))
  await Promise.all(videoIds.map((id) => reelgate.owner.delete([id])))
  for (const videoId of videoIds) await expectGone(videoId)
  expect(await findEncoders(reelgate)).toEqual([])
  for (const videoId of videoIds) await expectGone(videoId)
})

test('F-09: SIGTERM during an encode and an upload ends with 0 within 10 s; the encode continues after the next start', async () => {
  const videoId = await reelgate.owner.upload('stopped', video)
  const upload = await reelgate.owner.credentials('cut off')
  const endless = new ReadableStream({
    async pull(controller) {
      controller.enqueue(Buffer.alloc(65_536, 'x'))
      await pause(20)
    },
  })
  const headers = { 'Content-Type': 'multipart/form-data; boundary=b' }
  const sending = fetch(upload.clientPayload.uploadLink, {
    method: 'POST',
    headers,
    body: withForm(upload.clientPayload, endless),
    duplex: 'half',
  } as RequestInit)
  await expect.poll(() => listFiles(reelgate, 'tmp')).not.toEqual([])
  await reelgate.owner.until(videoId, 'ready')
  const seen: Sightings = new Map()
  await lookAtSegments(reelgate, videoId, seen)
  const stopped = timeEnd(reelgate.pid, reelgate.stop())
  await expect(sending).rejects.toThrow()
  const { code, tookS } = await stopped
  expect(code).toBe(0)
  expect(tookS).toBeLessThan(10)
  expect(await findEncoders(reelgate)).toEqual([])
  expect(await listFiles(reelgate, 'tmp')).toEqual([])
  expect(readRows(reelgate, `select 1 from chunk where state = 'running'`)).toEqual([])
  await reelgate.restart()
  await untilFinished(reelgate, videoId)
  expect(await findChanged(reelgate, videoId, seen)).toEqual([])
  await expectWhole(reelgate, videoId)
  expect((await reelgate.owner.send(upload, new Blob(['no video']))).status).toBe(201)
})

test('F-35: a video deleted while its file is being sent leaves nothing of the file', async () => {
  const upload = await reelgate.owner.credentials('deleted early')
  const gate = Promise.withResolvers<void>()
  const file = new ReadableStream({
    async start(controller) {
      controller.enqueue(Buffer.alloc(300_000, 'x'))
      await gate.promise
      controller.close()
    },
  })
  const headers = { 'Content-Type': 'multipart/form-data; boundary=b' }
  const sending = fetch(upload.clientPayload.uploadLink, {
    method: 'POST',
    headers,
    body: withForm(upload.clientPayload, file),
    duplex: 'half',
  } as RequestInit)
  await expect.poll(() => listFiles(reelgate, 'tmp')).not.toEqual([])
  await reelgate.owner.delete([upload.videoId])
  await expectGone(upload.videoId)
  gate.resolve()
  expect((await sending).status).toBe(409)
  await expectGone(upload.videoId)
  expect(await listFiles(reelgate, 'tmp')).toEqual([])
})

test('F-04: when encoders run for certain, kill -9 of the server ends them too', async () => {
  const own = await startReelgate({ env: { REELGATE_ENCODERS: '2' } })
  const videoId = await own.owner.upload('A video', footage.wannaworktogether)
  await own.owner.until(videoId, 'ready')
  await expect.poll(() => findEncoders(own)).not.toEqual([])
  await own.kill()
  await expect.poll(() => findEncoders(own)).toEqual([])
})

test('F-03: a video on PostgreSQL is encoded whole although the server is killed in the middle, and then PostgreSQL', async () => {
  const postgres = await startPostgres()
  const own = await startReelgate({ database: postgres })
  const videoId = await own.owner.upload('A video', video)
  await own.owner.until(videoId, 'ready')
  const seen: Sightings = new Map()
  await lookAtSegments(own, videoId, seen)
  await own.kill()
  await expect.poll(() => findEncoders(own)).toEqual([])
  await own.restart()

  await lookAtSegments(own, videoId, seen)
  const published = listSegments(own, videoId).length
  await expect.poll(() => listSegments(own, videoId).length).toBeGreaterThan(published)
  await postgres.crash()
  await postgres.start()
  await untilFinished(own, videoId)
  expect(await findChanged(own, videoId, seen)).toEqual([])
  await expectWhole(own, videoId)
})

/** How long an encode takes that nothing disturbs. */
async function timeEncode(): Promise<number> {
  const startedMs = Date.now()
  await untilFinished(reelgate, await reelgate.owner.upload('undisturbed', video))
  return Date.now() - startedMs
}

async function expectGone(videoId: string): Promise<void> {
  const left = async () => [...(await listFiles(reelgate)).filter((name) => name.includes(videoId)), ...tablesThatName(videoId)]
  await expect.poll(left).toEqual([])
}

function tablesThatName(videoId: string): string[] {
  const tables = ['source', 'generation', 'rendition', 'chunk', 'segment', 'file', 'upload_policy']
  const locations = [['video', 'id'], ...tables.map((table) => [table, 'video_id'])]
  return locations.flatMap(([table, column]) =>
    readRows(reelgate, `select 1 from ${table} where ${column} = ?`, videoId).map(() => `${table}`),
  )
}

/** A form around a file that is still being made. */
function withForm(payload: Record<string, string>, file: ReadableStream<Buffer>): ReadableStream<Buffer> {
  const { uploadLink: _, ...fields } = payload
  const parts = Object.entries(fields).map(
    ([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const before = `${parts.join('')}--b\r\nContent-Disposition: form-data; name="file"; filename="video.mp4"\r\n\r\n`
  return ReadableStream.from(
    (async function* () {
      yield Buffer.from(before)
      yield* file
      yield Buffer.from('\r\n--b--\r\n')
    })(),
  )
}

draw()
