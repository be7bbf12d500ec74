import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readlink, stat } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { getStoredSource, listFiles, untilFinished } from '../data-folder.ts'
import { BOUNDARY, formBody, uploadParts } from '../ingest/raw-form.ts'
import { timeEnd } from '../processes.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'

const { test, draw } = sampledTests('starts after kills', 1)

const UNLIMITED = { REELGATE_LIMITS: 'off' }
const KILLS = rounds(2, 50)
/** An upload is written in blocks of this size (src/crypto/sealed-file.ts). */
const SEALED_BLOCK_BYTES = 2 ** 20

test(`F-01: kill -9 in mid-upload leaves nothing half, and the same form goes through afterwards (${KILLS} random places)`, async () => {
  const reelgate = await startReelgate({ env: UNLIMITED })
  const chance = newChance('kill -9 in mid-upload')
  const video = Buffer.from('A pattern that is known, byte by byte. '.repeat(100_000))
  for (let round = 0; round < KILLS; round++) {
    const upload = await reelgate.owner.credentials(`killed ${round}`)
    const form = formBody(uploadParts(upload, video))
    const offset = Math.floor(chance.between(form.length - video.length, form.length - 100))
    const socket = connect(Number(new URL(reelgate.url).port), '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(headOf(form.length))
    socket.write(form.subarray(0, offset))
    await expect.poll(() => unfinishedBytes(reelgate)).toBeGreaterThan(Math.max(-1, offset - 2 * SEALED_BLOCK_BYTES))
    await reelgate.kill()
    socket.destroy()
    await reelgate.restart()
    expect(await listFiles(reelgate, 'tmp')).toEqual([])
    expect(await listFiles(reelgate, 'sources')).not.toContainEqual(expect.stringContaining(upload.videoId))
    expect((await reelgate.owner.video(upload.videoId)).status).toBe('PRE-Upload')
    expect((await reelgate.owner.send(upload, new Blob([video]))).status).toBe(201)
    expect((await getStoredSource(reelgate, upload.videoId).clear()).equals(video)).toBe(true)
  }
}, 600_000)

test('F-33: a server that runs out of memory loses nothing that was acknowledged, and starts again by itself', async () => {
  const reelgate = await startReelgate({ env: UNLIMITED })
  const { owner } = reelgate
  const video = await owner.upload('A video', await makeVideo({ seconds: 6 }))
  const before = await owner.credentials('before')
  // From here on the kernel gives it no more memory.
  await promisify(execFile)('prlimit', ['--pid', String(reelgate.pid), '--data=1'])
  const acknowledged = [video, before.videoId]
  for (let i = 0; i < 5_000 && isAlive(reelgate.pid); i++) {
    const answers = Array.from({ length: 20 }, (_, n) => owner.credentials(`while it lasts ${i} ${n}`).catch(() => undefined))
    for (const made of await Promise.all(answers)) if (made) acknowledged.push(made.videoId)
  }
  expect(isAlive(reelgate.pid)).toBe(false)
  await reelgate.restart()
  const present = new Set(readRows<{ id: string }>(reelgate, 'select id from video').map(({ id }) => id))
  expect(acknowledged.filter((id) => !present.has(id))).toEqual([])
  await untilFinished(reelgate, video)
  expect((await owner.send(before, new Blob(['a video']))).status).toBe(201)
})

test('F-09: SIGTERM under 200 clients and two encodes: what is in flight is answered, nothing acknowledged is lost, and it ends with 0 within 10 s', async () => {
  const reelgate = await startReelgate({ video: await makeVideo(), env: { ...UNLIMITED, REELGATE_ENCODERS: '2' } })
  const { owner, videoId: ready } = reelgate
  const video = await makeVideo({ seconds: 60, size: '320x240' })
  const videos = [await owner.upload('one', video), await owner.upload('two', video)]
  let isStopping = false
  let issued = 0
  const odd: number[] = []
  const clients = Array.from({ length: 200 }, async () => {
    for (;;) {
      const answer = await owner.call('POST', `/api/videos/${ready}/otp`, { body: {} }).catch(() => undefined)
      if (answer?.status === 200) issued += 1
      else if (answer) odd.push(answer.status)
      if (!answer || isStopping) return
    }
  })
  await expect.poll(() => issued).toBeGreaterThan(400)
  isStopping = true
  const { code, tookS } = await timeEnd(reelgate.pid, reelgate.stop())
  await Promise.all(clients)
  expect(code).toBe(0)
  expect(tookS).toBeLessThan(10)
  expect(odd.filter((status) => status !== 503)).toEqual([])
  await expect(fetch(`${reelgate.url}/healthz`)).rejects.toThrow()
  expect(readRows(reelgate, `select 1 from chunk where state = 'running'`)).toEqual([])
  expect(readRows(reelgate, 'select 1 from otp').length).toBeGreaterThanOrEqual(issued)
  await reelgate.restart()
  for (const id of videos) await owner.until(id, 'ready')
})

test('E03: at its limit of open files the server refuses what needs one, serves what does not, and recovers', async () => {
  const reelgate = await startReelgate({ wrapper: ['prlimit', '--nofile=256:256'], env: UNLIMITED })
  const { owner } = reelgate
  const upload = await owner.credentials('A video')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const idle: Socket[] = []
  onTestFinished(() => {
    agent.destroy()
    for (const socket of idle) socket.destroy()
  })
  const ask = (method: string, path: string, body?: Buffer) => call(agent, reelgate.url, method, path, owner.apiKey, body)
  expect((await ask('GET', '/api/videos')).status).toBe(200)
  await expect
    .poll(async () => {
      for (let i = 0; i < 20; i++)
        idle.push(connect(Number(new URL(reelgate.url).port), '127.0.0.1').on('error', () => undefined))
      return (await readdir(`/proc/${reelgate.pid}/fd`)).length
    })
    .toBeGreaterThanOrEqual(255)
  // On the connection that it has.
  expect((await ask('GET', '/api/videos')).status).toBe(200)
  const refused = await ask('POST', '/upload', formBody(uploadParts(upload, 'a video')))
  expect(refused.status).toBe(503)
  expect(refused.text).toContain('too many files open')
  for (const socket of idle) socket.destroy()
  await expect.poll(() => owner.send(upload, new Blob(['a video'])).then(({ status }) => status, String)).toBe(201)
})

function headOf(length: number): string {
  return `POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: ${length}\r\n\r\n`
}

/** The size of the largest file that the server has open and that has no lasting name; -1: none is open. */
async function unfinishedBytes({ pid, dataDir }: { pid: number; dataDir: string }): Promise<number> {
  const folder = `/proc/${pid}/fd`
  const sizes = (await readdir(folder)).map(async (name) => {
    const path = await readlink(join(folder, name)).catch(() => '')
    const isUnfinished = path.startsWith(join(dataDir, 'tmp')) || (path.startsWith(dataDir) && path.endsWith(' (deleted)'))
    return isUnfinished ? (await stat(join(folder, name))).size : -1
  })
  return Math.max(-1, ...(await Promise.all(sizes)))
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}/fd/0`)
}

function call(agent: Agent, url: string, method: string, path: string, apiKey: string, body?: Buffer) {
  const headers = {
    Authorization: `Apisecret ${apiKey}`,
    ...(body && { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}`, 'Content-Length': body.length }),
  }
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const asked = request(`${url}${path}`, { agent, method, headers }, async (response) => {
      let text = ''
      for await (const part of response) text += part
      resolve({ status: response.statusCode ?? 0, text })
    })
    asked.on('error', reject).end(body)
  })
}

draw()
