import { mkdir, readFile, rename, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { expect } from 'vitest'
import { addFile, makeImage } from '../assets/sample-files.ts'
import type { Owner } from '../client.ts'
import { findEncoders, listFiles, untilFinished } from '../data-folder.ts'
import { formBody, post, uploadParts } from '../ingest/raw-form.ts'
import { downloadVideo } from '../pipeline/videos.ts'
import { startPostgres } from '../postgres.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { mountSmallDisk } from './small-disk.ts'

const { test, draw } = sampledTests('full disks', 1)

const MIB = 2 ** 20

test('F-13: a nearly full disk rejects uploads first; playback, lists, OTPs and deletions continue, encodes wait, and everything continues when there is space', async () => {
  const disk = await mountSmallDisk(64)
  const reelgate = await startReelgate({ within: disk.path })
  const { owner } = reelgate
  const ready = await owner.upload('ready', await makeVideo())
  await untilFinished(reelgate, ready)
  const doomed = await owner.upload('doomed', await makeVideo())
  await untilFinished(reelgate, doomed)
  const early = await owner.credentials('early')
  const waiting = await owner.upload('waiting', await makeVideo({ seconds: 20, size: '320x240' }))
  await reelgate.kill()
  await disk.leave(2 * MIB)
  await reelgate.restart()

  await expect.poll(() => reelgate.output()).toContain('the disk is nearly full')
  await expect.poll(() => readiness(reelgate)).toMatchObject({ status: 200, body: { status: 'ready', checks: { space: 'low' } } })
  const late = await owner.credentials('late')
  for (const upload of [early, late]) {
    const refused = await owner.send(upload, new Blob(['a video']))
    expect(refused.status).toBe(503)
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(await refused.text()).toMatch(/<Error><Code>ServiceUnavailable<\/Code><Message>The disk of this server has no room/)
  }
  expect((await owner.list()).count).toBe(5)
  expect((await downloadVideo(reelgate, ready)).length).toBeGreaterThan(1)
  expect((await owner.delete([doomed])).message).toBe('Successfully deleted 1 videos')
  await expect.poll(() => listFiles(reelgate)).not.toContainEqual(expect.stringContaining(doomed))
  expect(await findEncoders(reelgate)).toEqual([])
  expect(readRows(reelgate, `select 1 from chunk where state = 'running'`)).toEqual([])

  await disk.makeRoom()
  await untilFinished(reelgate, waiting)
  expect((await owner.send(early, new Blob(['a video']))).status).toBe(201)
  await expect.poll(async () => (await readiness(reelgate)).body).toMatchObject({ checks: { space: 'ok' } })
})

test('F-13: an upload that says how large it is is refused before its body when it would not fit', async () => {
  const disk = await mountSmallDisk(24)
  const { owner } = await startReelgate({ within: disk.path })
  const upload = await owner.credentials('too large for this disk')
  // Also before the server has taken its reserve; 1 MiB counts as the form.
  const answer = await post(`${owner.url}/upload`, formBody(uploadParts(upload, Buffer.alloc(24 * MIB))))
  expect(answer?.status).toBe(503)
  expect(answer?.text).toContain('no room for this file')
})

test('F-13: a nearly full disk takes no poster, keeps nothing of one, and takes it when there is space', async () => {
  const disk = await mountSmallDisk(64)
  const reelgate = await startReelgate({ within: disk.path })
  const { videoId } = await reelgate.owner.credentials('It will come')
  const videoTrack = await makeImage('640x360')
  await disk.leave(4 * MIB)
  const refused = await addFile(reelgate.owner, videoId, videoTrack)
  expect([refused.status, refused.headers.has('retry-after'), await refused.json()]).toMatchObject([
    503,
    true,
    { message: 'The disk of this server has no room for this image. Try again when there is space.' },
  ])
  expect([await listFiles(reelgate, 'tmp'), await listFiles(reelgate, 'posters')]).toEqual([[], []])
  await disk.makeRoom()
  expect((await addFile(reelgate.owner, videoId, videoTrack)).status).toBe(200)
})

test('F-11: an upload that fills the disk is rejected with a sentence and leaves nothing; reads and deletions continue, and later uploads do', async () => {
  const disk = await mountSmallDisk(22) // full between two looks at its room, which come every 8 MiB
  const reelgate = await startReelgate({ within: disk.path })
  const { owner } = reelgate
  const doomed = await owner.upload('doomed', await makeVideo())
  await untilFinished(reelgate, doomed)
  const upload = await owner.credentials('larger than the disk')
  const form = formBody(uploadParts(upload, Buffer.alloc(30 * MIB, 'x')))
  const answer = await post(`${owner.url}/upload`, form, { chunkBytes: MIB })
  expect(answer?.status).toBe(503)
  expect(answer?.text).toMatch(/<Error><Code>ServiceUnavailable<\/Code><Message>The disk of this server is full/)
  expect(reelgate.output()).toContain('ENOSPC')
  expect(reelgate.output()).not.toContain('"stack"')
  expect(await listFiles(reelgate, 'tmp')).toEqual([])
  expect((await listFiles(reelgate, 'sources')).filter((name) => name.includes(upload.videoId))).toEqual([])
  expect((await owner.video(upload.videoId)).status).toBe('PRE-Upload')
  expect((await owner.delete([doomed])).message).toBe('Successfully deleted 1 videos')
  expect((await owner.send(upload, new Blob(['a video']))).status).toBe(201)
})

test('F-12: a disk that is full in mid-encode only delays the video', async () => {
  const disk = await mountSmallDisk(64)
  const reelgate = await startReelgate({ within: disk.path, env: { REELGATE_ENCODERS: '1' } })
  const videoId = await reelgate.owner.upload('A video', await makeVideo({ seconds: 30, size: '320x240' }))
  await reelgate.owner.until(videoId, 'ready')
  await disk.leave(0)
  await expect.poll(() => reelgate.output()).toMatch(/ENOSPC|SQLITE_FULL|nearly full/)
  await expect.poll(() => findEncoders(reelgate)).toEqual([])
  await disk.makeRoom()
  await untilFinished(reelgate, videoId)
  expect((await reelgate.owner.video(videoId)).status).toBe('ready')
})

test('F-12: a database whose disk is full rejects writes with a sentence and stays intact; reads continue, and writes do when there is space', async () => {
  const disk = await mountSmallDisk(8)
  const { path: elsewhere } = await mountSmallDisk(64)
  // The database has the small disk to itself.
  const dataDir = join(disk.path, 'data')
  await mkdir(dataDir)
  for (const name of ['sources', 'segments', 'posters', 'tmp']) {
    await mkdir(join(elsewhere, name))
    await symlink(join(elsewhere, name), join(dataDir, name))
  }
  const reelgate = await startReelgate({ database: 'sqlite', env: { REELGATE_DATA: dataDir } })
  const { owner } = reelgate
  const video = await owner.readyVideo(await makeVideo())
  await disk.leave(64 * 1024)
  const { acknowledged, refusals } = await addVideosUntilRefused(owner)
  expect(new Set(refusals)).toEqual(new Set([expect.stringContaining('The disk is full: nothing was changed')]))
  expect((await owner.list()).count).toBe(acknowledged.length + 1)
  await disk.makeRoom()
  expect(await owner.issueOtp(video)).toHaveLength(64)
  await reelgate.kill()
  expect(integrityOf(join(dataDir, 'reelgate.db'))).toBe('ok')
  await reelgate.restart()
  expect((await owner.list()).count).toBe(acknowledged.length + 1)
})

test('F-12: a PostgreSQL whose disk is full rejects writes and loses nothing that was acknowledged; everything continues when there is space', async () => {
  const disk = await mountSmallDisk(256)
  const postgres = await startPostgres({ durable: true, within: disk.path })
  const reelgate = await startReelgate({ database: postgres })
  const { owner } = reelgate
  await disk.leave(64 * 1024)
  const { acknowledged, refusals } = await addVideosUntilRefused(owner)
  // It ends itself when its log has no room, and starts again as soon as it can.
  for (const sentence of refusals)
    expect(sentence).toMatch(/^The (disk of the database is full|database (cannot be reached|did not say))/)
  await disk.makeRoom()
  await postgres.start()
  await expect.poll(async () => (await owner.call('PUT', '/api/videos?title=again')).status).toBe(200)
  const titles = readRows<{ title: string }>(reelgate, 'select title from video').map(({ title }) => title)
  expect(titles).toEqual(expect.arrayContaining([...acknowledged, 'again']))
})

/** Through the log's room, its checkpoints and on: each call is either done or refused, whole. @returns titles, and what refusals say */
async function addVideosUntilRefused(owner: Owner): Promise<{ acknowledged: string[]; refusals: string[] }> {
  const acknowledged: string[] = []
  const refusals: string[] = []
  for (let i = 0; refusals.length < 3; i++) {
    if (i === 2_000) throw new Error('the database’s disk never was full')
    const title = `${i} ${'x'.repeat(200)}`
    const answer = await owner.call('PUT', `/api/videos?title=${encodeURIComponent(title)}`)
    if (answer.status === 200) acknowledged.push(title)
    else {
      expect(answer.status).toBe(503)
      expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
      refusals.push(((await answer.json()) as { message: string }).message)
    }
  }
  return { acknowledged, refusals }
}

test('F-12: a log that cannot be written stops nothing, and continues when there is space', async () => {
  const disk = await mountSmallDisk(1)
  const log = join(disk.path, 'log')
  const logTo = ['sh', '-c', `exec "$@" 2>>${log}`, 'sh']
  await disk.leave(0)
  const reelgate = await startReelgate({ wrapper: logTo })
  const posters = join(reelgate.dataDir, 'posters')
  const loseFolder = async () => {
    await rename(posters, `${posters}.away`)
    await expect.poll(() => readiness(reelgate)).toMatchObject({ status: 503, body: { checks: { storage: 'failed' } } }) // and logs why
  }
  await loseFolder()
  expect(await readFile(log, 'utf8')).toBe('')
  await disk.makeRoom()
  await rename(`${posters}.away`, posters)
  await expect.poll(async () => (await readiness(reelgate)).status).toBe(200)
  await loseFolder()
  await expect.poll(() => readFile(log, 'utf8')).toMatch(/^(\{.*"msg":"health: check failed"\}\n)+$/)
  expect(await reelgate.stop()).toBe(0)
})

function integrityOf(path: string): unknown {
  const database = new SqliteDatabase(path)
  try {
    return database.pragma('integrity_check', { simple: true })
  } finally {
    database.close()
  }
}

async function readiness({ url }: Reelgate): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/readyz`)
  return { status: response.status, body: await response.json() }
}

draw()
