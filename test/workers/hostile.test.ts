import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { TaskBody } from '../../src/workers/protocol.ts'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { STORAGE } from '../s3.ts'
import { makeVideo } from '../videos.ts'
import { addWorker, startWorker } from './worker-process.ts'

// What a program sends that has the token of a worker, or has not. Nothing of it is published.

let reelgate: Reelgate & { remove(): Promise<void> }
let token: string
let videoId: string
let task: TaskBody

beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_ENCODERS: '0', REELGATE_METRICS_PORT: '0' } })
  token = await addWorker(reelgate, 'rented')
  videoId = await reelgate.owner.upload('The title of a lesson', await makeVideo({ seconds: 14 }))
  task = await claim(token, 'video')
})
afterAll(() => reelgate.remove())

type Asked = { as?: string; method?: string; json?: unknown; bytes?: Uint8Array; headers?: Record<string, string> }

function ask(path: string, { as = token, method = 'POST', json, bytes, headers = {} }: Asked = {}): Promise<Response> {
  const type = bytes ? { 'Content-Type': 'application/octet-stream' } : json ? { 'Content-Type': 'application/json' } : undefined
  const sent = { Authorization: `Bearer ${as}`, 'Reelgate-Worker-Protocol': '1', ...type, ...headers }
  return fetch(`${reelgate.url}/worker${path}`, {
    method,
    headers: sent,
    body: bytes ? Buffer.from(bytes) : json ? JSON.stringify(json) : null,
  })
}

const ENCODER = { encoder: '' }

/** Waits for a chunk of a kind, as a worker does. */
async function claim(as: string, kind: 'video' | 'audio'): Promise<TaskBody> {
  ENCODER.encoder ||= await encoderOfServer()
  for (;;) {
    const response = await ask('/claim', { as, json: { ...ENCODER, kinds: [kind] } })
    if (response.status === 200) return (await response.json()) as TaskBody
    if (response.status !== 204) throw new Error(await response.text())
  }
}

/** As in the row of the video that is encoded. */
async function encoderOfServer(): Promise<string> {
  const find = () => readRows<{ encoder: string }>(reelgate, 'select encoder from generation')[0]?.encoder
  return vi.waitUntil(find, { timeout: 60_000 })
}

const segmentsOf = ({ plan, chunk }: TaskBody) =>
  (plan.videoTrack?.renditions ?? []).flatMap(({ id }) =>
    Array.from({ length: chunk.segmentCount }, (_, n) => `segments/${id}/${chunk.firstSegment + n}`),
  )

const status = async (path: string, asked?: Asked) => (await ask(path, asked)).status

test('J02: a task opens to the worker that has it, and to no other token', async () => {
  const other = await addWorker(reelgate, 'another')
  expect(await status(`/tasks/${task.id}/heartbeat`)).toBe(204)
  expect(await status(`/tasks/${task.id}/heartbeat`, { as: other })).toBe(404)
  expect(await status(`/tasks/${task.id}/source`, { as: other, method: 'GET' })).toBe(404)
  expect(await status(`/tasks/${task.id}/end`, { as: other, json: { outcome: 'returned' } })).toBe(404)
  for (const as of [`worker_${'x'.repeat(64)}`, reelgate.owner.apiKey, ''])
    expect(await status(`/tasks/${task.id}/heartbeat`, { as })).toBe(401)
  await reelgate.cli('worker', 'remove', 'another')
  expect(await status('/claim', { as: other, json: { ...ENCODER, kinds: ['video'] } })).toBe(401)
})

test('J03: a task has the plan and the source of its chunk, and no title, no name of a track, no other key', async () => {
  const text = JSON.stringify(task)
  expect(text).not.toContain('lesson')
  expect(text).not.toContain(videoId)
  const hexes = new Set([...text.matchAll(/"([0-9a-f]{32})"/g)].map(([, hex]) => hex))
  // With a bucket it may put its own segments there.
  const ofSegments = (task.segmentKeys ?? []).flatMap(({ keyHex, ivHex }) => [keyHex, ivHex])
  expect(task.segmentKeys?.length ?? 0).toBe(STORAGE === 'bucket' ? segmentsOf(task).length : 0)
  expect(hexes).toEqual(new Set([task.id, task.source.keyHex, task.source.ivHex, ...ofSegments]))
  const { segmentKeys: _, ...others } = task
  expect(Object.keys(others).toSorted()).toEqual(['chunk', 'gains', 'id', 'plan', 'source', 'threads'])
})

test('J04: segments of another rendition or number, larger ones and other bytes for the same one are refused', async () => {
  const [rendition] = task.plan.videoTrack?.renditions ?? []
  const { firstSegment, segmentCount } = task.chunk
  const put = (path: string, bytes: Uint8Array) => status(`/tasks/${task.id}/${path}`, { method: 'PUT', bytes })
  expect(await put(`segments/99/${firstSegment}`, new Uint8Array(8))).toBe(400)
  expect(await put(`segments/${rendition?.id}/${firstSegment + segmentCount}`, new Uint8Array(8))).toBe(400)
  expect(await put(`init/99`, new Uint8Array(8))).toBe(400)
  expect(await put(`init/${rendition?.id}`, new Uint8Array(2 ** 20))).toBe(400)
  expect(await put(`segments/${rendition?.id}/${firstSegment}`, new Uint8Array(64))).toBe(204)
  expect(await put(`segments/${rendition?.id}/${firstSegment}`, new Uint8Array(64))).toBe(204)
  expect(await put(`segments/${rendition?.id}/${firstSegment}`, new Uint8Array(64).fill(1))).toBe(409)
  expect(await status(`/tasks/${task.id}/end`, { json: { outcome: 'done' } })).toBe(400)
})

test('J05: a task fetches no more of the source than it may, in ranges of a bounded length', async () => {
  const { allowedBytes, sealedBytes } = task.source
  expect(allowedBytes).toBeLessThanOrEqual(sealedBytes)
  const range = (text: string) => ask(`/tasks/${task.id}/source`, { method: 'GET', headers: { Range: text } })
  const whole = await range(`bytes=0-${allowedBytes - 1}`)
  expect([whole.status, (await whole.arrayBuffer()).byteLength]).toEqual([206, allowedBytes])
  const more = await range('bytes=0-15')
  expect([more.status, ((await more.json()) as { code: string }).code]).toEqual([403, 'forbidden'])
})

test('J06: another version of the protocol gets nothing and is answered what to do', async () => {
  const json = { ...ENCODER, kinds: ['video'] }
  for (const version of ['2', '0', '']) {
    const response = await ask('/claim', { json, headers: { 'Reelgate-Worker-Protocol': version } })
    expect([response.status, await response.text()]).toEqual([409, expect.stringContaining('Install the server')])
  }
})

test('J07, J08: garbage suspends its sender and is not published; its task is over, and an honest worker encodes the video', async () => {
  const others = segmentsOf(task).concat((task.plan.videoTrack?.renditions ?? []).map(({ id }) => `init/${id}`))
  for (const path of others) await ask(`/tasks/${task.id}/${path}`, { method: 'PUT', bytes: new Uint8Array(64) })
  expect(await status(`/tasks/${task.id}/end`, { json: { outcome: 'done' } })).toBe(202)
  await expect.poll(() => status('/claim', { json: { ...ENCODER, kinds: ['video'] } })).toBe(403)
  const [row] = JSON.parse((await reelgate.cli('worker', 'list', '--json')).stdout) as { suspendedReason: string }[]
  expect(row?.suspendedReason).toMatch(/init segment|segment/)
  expect(readRows(reelgate, 'select 1 from segment')).toEqual([])
  expect(readRows(reelgate, `select 1 from alert where cause = 'worker-suspended'`)).toHaveLength(1)
  const [, metrics = ''] = /"url":"(http:[^"]+\/metrics)"/.exec(reelgate.output()) ?? []
  expect(await (await fetch(metrics)).text()).toContain('reelgate_workers{state="suspended"} 1')
  // What was recorded of the task is worth nothing any more.
  expect(await status(`/tasks/${task.id}/end`, { json: { outcome: 'done' } })).toBe(404)
  expect(await status(`/tasks/${task.id}/source`, { method: 'GET' })).toBe(404)

  startWorker(reelgate.url, await addWorker(reelgate, 'honest'))
  await untilFinished(reelgate, videoId)
  expect((await reelgate.owner.video(videoId)).status).toBe('ready')
})
