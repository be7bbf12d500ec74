import { truncate } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect } from 'vitest'
import { getStoredSource, listFiles } from '../data-folder.ts'
import { mountSmallDisk } from '../faults/small-disk.ts'
import { startReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { openSharedWorld, openWorld } from '../ssrf/network-namespace.ts'
import { beginImport, hostsIn, makeLargeVideo, type NewHost, sendFile, untilDecided } from './import-host.ts'

const { test, draw } = sampledTests('imports that are cut off', 1)

// Imports that are cut off: by this server's end, by the host, by a name server that is gone, by a full disk.

let world: Awaited<ReturnType<typeof openSharedWorld>>
let video: Buffer
let other: Buffer
let newSite: NewHost

beforeAll(async () => {
  world = await openSharedWorld()
  newSite = hostsIn(world, '8.8.4')
  video = await makeLargeVideo(30e6)
  other = await makeLargeVideo(30e6)
})
afterAll(async () => world?.end())

const STEP_BYTES = 8 * 2 ** 20
/** So much is sent before a break: two steps and a part of the third. */
const SENT_BYTES = 20e6

type Host = { url: string; asked: { range: string | undefined; ifRange: string | undefined }[] }

/** @param listener gets how often the host was asked before */
async function newHost(listener: (turn: number, ...exchange: Parameters<RequestListener>) => void): Promise<Host> {
  const asked: Host['asked'] = []
  const host = await newSite((request, response) => {
    const { range, 'if-range': ifRange } = request.headers
    asked.push({ range, ifRange: ifRange?.toString() })
    listener(asked.length - 1, request, response)
  })
  return { url: `${host}/video.mp4`, asked }
}

function receivedBytes(reelgate: { dataDir: string; masterKeyFile: string }, id: string): number | undefined {
  return readRows<{ bytes: number }>(reelgate, 'select received_bytes as bytes from import where video_id = ?', id)[0]?.bytes
}

test.each(['kill -9', 'SIGTERM'])(
  'F-07: after %s in the middle an import resumes where it was durable, or from its beginning where it may not',
  async (end) => {
    const reelgate = await startReelgate(await world.around())
    const { owner } = reelgate
    const sentBytes = SENT_BYTES
    const hosts = {
      strong: await newHost((turn, ...exchange) =>
        sendFile(...exchange, video, { etag: '"1"', ...(turn === 0 && { sentBytes }) }),
      ),
      weak: await newHost((turn, ...exchange) =>
        sendFile(...exchange, video, { etag: 'W/"1"', ...(turn === 0 && { sentBytes }) }),
      ),
      changed: await newHost((turn, ...exchange) =>
        turn === 0 ? sendFile(...exchange, video, { etag: '"1"', sentBytes }) : sendFile(...exchange, other, { etag: '"2"' }),
      ),
      lost: await newHost((turn, ...exchange) => sendFile(...exchange, video, { etag: '"1"', ...(turn === 0 && { sentBytes }) })),
    }
    const ids = await Promise.all(Object.values(hosts).map(({ url }) => beginImport(owner, url)))
    const [strong = '', weak = '', changed = '', lost = ''] = ids
    for (const id of ids) await expect.poll(() => receivedBytes(reelgate, id)).toBe(2 * STEP_BYTES)
    if (end === 'kill -9') await reelgate.kill()
    else expect(await reelgate.stop()).toBe(0)
    await truncate(join(reelgate.dataDir, 'sources', await partOf(lost)), 2 * STEP_BYTES - 1)
    await reelgate.restart()
    for (const id of ids) await owner.until(id, 'ready')
    const rest = { range: `bytes=${2 * STEP_BYTES}-`, ifRange: '"1"' }
    const whole = { range: undefined, ifRange: undefined }
    expect(hosts.strong.asked).toEqual([whole, rest])
    expect(hosts.weak.asked).toEqual([whole, whole])
    expect(hosts.changed.asked).toEqual([whole, rest])
    expect(hosts.lost.asked).toEqual([whole, whole])
    for (const [id, bytes] of [
      [strong, video],
      [weak, video],
      [changed, other],
      [lost, video],
    ] as const)
      expect((await getStoredSource(reelgate, id).clear()).equals(bytes)).toBe(true)
    // One sealed file for each, and nothing else (I8).
    const sealed = async () => (await listFiles(reelgate, 'sources')).filter((name) => name.endsWith('.sealed'))
    await expect.poll(sealed).toHaveLength(4)
    expect(readRows(reelgate, 'select video_id from import')).toEqual([])

    async function partOf(id: string): Promise<string> {
      return (await listFiles(reelgate, 'sources')).find((name) => name.startsWith(`${id}/`) && name.endsWith('.sealed')) ?? ''
    }
  },
  180_000,
)

test('F-07: a connection that breaks is taken up again by itself; one that never gets further is given up after six tries', async () => {
  const reelgate = await startReelgate(await world.around())
  const { owner } = reelgate
  let better = '' // the server may fetch it before it answers with its id
  // Breaks in its middle each time, once another step of it is durable.
  const breaking = await newHost((turn, request, response) => {
    sendFile(request, response, video, { etag: '"1"', ...(turn < 2 && { sentBytes: 10e6 }) })
    if (turn < 2) void untilReceived((turn + 1) * STEP_BYTES).then(() => response.destroy())
  })
  const hopeless = await newHost((_turn, request) => request.socket.destroy())
  better = await beginImport(owner, breaking.url)
  const worse = await beginImport(owner, hopeless.url)
  await owner.until(better, 'ready')
  expect(breaking.asked.map(({ range }) => range)).toEqual([undefined, `bytes=${STEP_BYTES}-`, `bytes=${2 * STEP_BYTES}-`])
  expect((await getStoredSource(reelgate, better).clear()).equals(video)).toBe(true)
  await expect.poll(() => hopeless.asked.length).toBeGreaterThanOrEqual(2)
  await reelgate.kill()
  // An hour later: its tries so far have been five.
  changeRows(reelgate, 'update import set attempts = 5 where video_id = ?', worse)
  await reelgate.restart()
  const { status, statusReason } = await untilDecided(owner, worse)
  expect(`${status}: ${statusReason}`).toBe(
    `Encoding error: ${hopeless.url} was not fetched: the connection failed. It was tried 6 times.`,
  )
  expect(readRows(reelgate, 'select video_id from import')).toEqual([])

  async function untilReceived(bytes: number): Promise<void> {
    while (receivedBytes(reelgate, better) !== bytes) await pause(20)
  }
})

test('F-34: while no name can be looked up, imports wait and the API responds; then they continue by themselves', async () => {
  const reelgate = await startReelgate(await world.around())
  const { owner } = reelgate
  const host = await newHost((_turn, ...exchange) => sendFile(...exchange, video))
  await world.nameServer.stop()
  const id = await beginImport(owner, host.url)
  await expect.poll(() => reelgate.output()).toContain('its host name cannot be looked up now')
  expect(await owner.video(id)).toMatchObject({ status: 'Queued' })
  expect((await owner.list()).count).toBe(1)
  await world.nameServer.start()
  await owner.until(id, 'ready')
})

test('F-13: an import that has no room on the disk waits, and comes when there is some', async () => {
  const disk = await mountSmallDisk(300)
  const sees = await openWorld() // a world sees what was mounted before it began
  sees.names.set('host.example', ['8.8.4.99'])
  await sees.site('8.8.4.99', (request, response) => sendFile(request, response, video))
  const reelgate = await startReelgate({ ...(await sees.around()), within: disk.path })
  const { owner } = reelgate
  await disk.leave(30e6)
  const id = await beginImport(owner, 'http://host.example/video.mp4')
  await expect.poll(() => reelgate.output()).toContain('The disk of this server has no room for this video')
  expect(await owner.video(id)).toMatchObject({ status: 'Queued' })
  await disk.makeRoom()
  await owner.until(id, 'ready')
  expect(readRows(reelgate, 'select video_id from import')).toEqual([])
})

draw()
