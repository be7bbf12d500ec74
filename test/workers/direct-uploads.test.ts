import { createHash, randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { encryptSegment } from '../../src/crypto/content-key.ts'
import type { Bucket } from '../../src/storage/s3/bucket.ts'
import { listObjects, readBody } from '../../src/storage/s3/objects.ts'
import { honorsPresignedPuts } from '../../src/storage/s3/presigned-put.ts'
import { openDirectUploads } from '../../src/workers/direct-uploads.ts'
import type { AddressReply, TaskBody } from '../../src/workers/protocol.ts'
import { listSegments, untilFinished } from '../data-folder.ts'
import { openOwnDatabase } from '../db/database.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { type FaultProxy, openFaultProxy, type Passing } from '../s3/fault-proxy.ts'
import { bucketEnvironment, contentsOf, newBucket, openStore, storeEndpoint } from '../s3.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { addWorker, startWorker } from './worker-process.ts'

// Segments that workers put into the server's bucket by presigned addresses, and what else these may be used for.

const sampled = sampledTests('segments that workers put into the bucket', 1)

let reelgate: Reelgate & { remove(): Promise<void> }
let proxy: FaultProxy
let bucket: Bucket
/** Whether the bucket lets workers in. */
let isOpen = true
const puts: Pick<Passing, 'path' | 'headers'>[] = []

const isPresigned = ({ method, path }: Pick<Passing, 'method' | 'path'>) => method === 'PUT' && path.includes('X-Amz-Signature=')
const isSegment = ({ method, path }: Pick<Passing, 'method' | 'path'>) => method === 'PUT' && path.includes('/segments/')

beforeAll(async () => {
  proxy = await openFaultProxy(await storeEndpoint())
  proxy.fault = ({ method, path, headers, reply }) => {
    if (isSegment({ method, path })) puts.push({ path, headers })
    if (isOpen || !isPresigned({ method, path }) || !isSegment({ method, path })) return false // what the server tries passes
    reply.destroy()
    return true
  }
  const { env, bucket: ofServer } = await bucketEnvironment(proxy.endpoint)
  bucket = ofServer
  reelgate = await startSharedReelgate({ env: { ...env, REELGATE_ENCODERS: '0', REELGATE_DEMO: 'off' } })
})
afterAll(async () => {
  await reelgate.remove()
  await proxy.stop()
})

type Asked = { method?: string; json?: unknown; bytes?: Uint8Array }

function ask(token: string, path: string, { method = 'POST', json, bytes }: Asked = {}): Promise<Response> {
  const type = bytes ? { 'Content-Type': 'application/octet-stream' } : json ? { 'Content-Type': 'application/json' } : undefined
  const headers = { Authorization: `Bearer ${token}`, 'Reelgate-Worker-Protocol': '1', ...type }
  const body = bytes ? Buffer.from(bytes) : json ? JSON.stringify(json) : null
  return fetch(`${reelgate.url}/worker${path}`, { method, headers, body })
}

async function claim(token: string): Promise<TaskBody> {
  const find = () => readRows<{ encoder: string }>(reelgate, 'select encoder from generation')[0]?.encoder
  const encoder = await vi.waitUntil(find, { timeout: 60_000 })
  for (;;) {
    const response = await ask(token, '/claim', { json: { encoder, kinds: ['video'] } })
    if (response.status === 200) return (await response.json()) as TaskBody
    if (response.status !== 204) throw new Error(await response.text())
  }
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

async function put({ url, headers }: AddressReply, bytes: Buffer): Promise<number> {
  return (await fetch(url, { method: 'PUT', headers, body: new Uint8Array(bytes) })).status
}

const segmentsKey = (name: string) => `${bucket.address.prefix}segments/${name}`
const readSegment = (name: string) => bucket.ask({ method: 'GET', key: segmentsKey(name) }, readBody)
/** The names of a video's segments in the bucket. */
async function objectsOf(videoId: string): Promise<string[]> {
  const objects = await Array.fromAsync(listObjects(bucket, segmentsKey(`${videoId}/`)))
  return objects.map(({ key }) => key.slice(segmentsKey('').length))
}

sampled.test('J43: a worker puts its segments into the bucket, which plays; an address used again changes nothing', async () => {
  const worker = startWorker(reelgate.url, await addWorker(reelgate, 'office'))
  puts.length = 0
  const videoId = await reelgate.owner.upload('A lesson', await makeVideo({ seconds: 14 }))
  await untilFinished(reelgate, videoId)
  expect(await reelgate.owner.video(videoId)).toMatchObject({ status: 'ready' })
  const files = listSegments(reelgate, videoId).map(({ file }) => file)
  expect(puts.map(({ path }) => path.includes('X-Amz-Signature='))).toEqual(files.map(() => true))
  expect((await objectsOf(videoId)).sort()).toEqual(files.sort())
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await reelgate.owner.issueOtp(videoId))).toMatchObject({ playing: true })

  const [used] = puts
  const [, name = ''] = /\/segments\/([^?]+)/.exec(used?.path ?? '') ?? []
  const stored = await readSegment(name)
  const signed = ['cache-control', 'if-none-match', 'x-amz-content-sha256']
  const headers = Object.fromEntries(signed.map((header) => [header, String(used?.headers[header])]))
  const address = { url: `${proxy.endpoint}${used?.path}`, headers }
  expect(await put(address, stored)).toBe(412)
  expect(await put(address, randomBytes(stored.length))).toBeGreaterThanOrEqual(400)
  expect((await readSegment(name)).equals(stored)).toBe(true)
  worker.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
})

sampled.test(
  'J44: an address takes only the announced bytes, of a segment of the task; what a refused or returned result left is removed',
  async () => {
    const token = await addWorker(reelgate, 'rented')
    const videoId = await reelgate.owner.upload('Another lesson', await makeVideo({ seconds: 14, size: '640x360' }))
    const task = await claim(token)
    const [first, second] = task.segmentKeys ?? []
    if (!first || !second) throw new Error(`it may put no segments into the bucket`)
    const pathOf = ({ renditionId, number }: { renditionId: number; number: number }) =>
      `/tasks/${task.id}/segments/${renditionId}/${number}`
    const garbage = encryptSegment(randomBytes(500), Buffer.from(first.keyHex, 'hex'), Buffer.from(first.ivHex, 'hex'))
    const json = { sizeBytes: garbage.length, sha256: sha256(garbage) }
    const statusOf = async (...asked: [string, Asked?]) => (await ask(token, ...asked)).status

    expect(await statusOf(`/tasks/${task.id}/segments/99/0/address`, { json })).toBe(400)
    expect(await statusOf(`${pathOf(first)}/address`, { json: { ...json, sizeBytes: 2 ** 40 } })).toBe(400)
    expect(await statusOf(`${pathOf(first)}/stored`)).toBe(404)
    const address = (await (await ask(token, `${pathOf(first)}/address`, { json })).json()) as AddressReply
    expect(await statusOf(`${pathOf(first)}/address`, { json: { ...json, sha256: '0'.repeat(64) } })).toBe(409)
    expect(await statusOf(`${pathOf(first)}/stored`)).toBe(409)
    expect(await put(address, randomBytes(garbage.length))).toBeGreaterThanOrEqual(400)
    expect(await put(address, Buffer.concat([garbage, garbage]))).toBeGreaterThanOrEqual(400)
    const { 'if-none-match': _, ...replacing } = address.headers
    expect(await put({ ...address, headers: replacing }, garbage)).toBe(403)
    expect(await objectsOf(videoId)).toEqual([])
    expect(await put(address, garbage)).toBe(200)
    expect(await put(address, garbage)).toBe(412)
    expect(await statusOf(`${pathOf(first)}/stored`)).toBe(204)
    expect(await statusOf(`${pathOf(first)}/stored`)).toBe(204)
    expect(await objectsOf(videoId)).toHaveLength(1)

    // Its bytes are encrypted with another segment's key: they are not what the server would store.
    const wrong = { sizeBytes: garbage.length, sha256: sha256(garbage) }
    const other = (await (await ask(token, `${pathOf(second)}/address`, { json: wrong })).json()) as AddressReply
    expect(await put(other, garbage)).toBe(200)
    expect([204, 400]).toContain(await statusOf(`${pathOf(second)}/stored`))
    await statusOf(`/tasks/${task.id}/end`, { json: { outcome: 'returned' } })
    await expect.poll(() => objectsOf(videoId)).toEqual([])

    const again = await claim(token)
    for (const { renditionId, number } of again.segmentKeys ?? []) {
      await ask(token, `/tasks/${again.id}/init/${renditionId}`, { method: 'PUT', bytes: new Uint8Array(64) })
      const path = `/tasks/${again.id}/segments/${renditionId}/${number}`
      const announced = await ask(token, `${path}/address`, { json })
      expect(await put((await announced.json()) as AddressReply, garbage)).toBe(200)
      if ((await statusOf(`${path}/stored`)) !== 204) await ask(token, path, { method: 'PUT', bytes: new Uint8Array(64) })
    }
    expect(await statusOf(`/tasks/${again.id}/end`, { json: { outcome: 'done' } })).toBe(202)
    await expect.poll(() => statusOf('/claim', { json: { encoder: 'any', kinds: ['video'] } })).toBe(403)
    await expect.poll(() => objectsOf(videoId)).toEqual([])
    expect(listSegments(reelgate, videoId)).toEqual([])
    await reelgate.owner.delete([videoId])
  },
)

sampled.test('J45: a worker that does not reach the bucket sends its segments through the server', async () => {
  isOpen = false
  onTestFinished(() => {
    isOpen = true
  })
  const worker = startWorker(reelgate.url, await addWorker(reelgate, 'walled'))
  puts.length = 0
  const videoId = await reelgate.owner.upload('A third lesson', await makeVideo({ seconds: 6 }))
  await untilFinished(reelgate, videoId)
  expect(await reelgate.owner.video(videoId)).toMatchObject({ status: 'ready' })
  expect(worker.output()).toContain('the bucket cannot be reached')
  const files = listSegments(reelgate, videoId).map(({ file }) => file)
  expect((await objectsOf(videoId)).sort()).toEqual(files.sort())
})

test('J46: what is put at an address after its task has ended, or its video was deleted, is removed once the address has ended', async () => {
  const { bucket } = await newBucket()
  const segments = await openStore(bucket, { kind: 'segments' })
  const { db } = await openOwnDatabase()
  const opened = new AsyncDisposableStack()
  onTestFinished(() => opened.disposeAsync())
  const direct = openDirectUploads(
    { db, folders: { segments }, findFilesBucket: () => bucket, log: pino({ level: 'silent' }) },
    opened,
    1,
  )
  expect(await direct.arePossible()).toBe(true)
  const file = `${'a'.repeat(32)}/1/1/0.0123456789ab.m4s`
  const bytes = randomBytes(300)
  const address = await direct.presign(file, { sizeBytes: bytes.length, sha256: sha256(bytes) })
  direct.removeLate([file])
  expect(address && (await put(address, bytes))).toBe(200)
  expect((await contentsOf(bucket)).objects).toContain(`segments/${file}`)
  await expect.poll(async () => (await contentsOf(bucket)).objects).not.toContain(`segments/${file}`)
  expect(address && (await put(address, bytes))).toBe(403)
})

test('J47: no address is made for a bucket that accepts other bytes, replaces objects or does not know the header', async () => {
  const { bucket, proxy } = await newBucket()
  expect(await honorsPresignedPuts(bucket)).toBe(true)
  const accept: FaultProxy['fault'] = ({ method, reply }) => {
    if (method === 'PUT') reply.writeHead(200).end()
    return method === 'PUT'
  }
  const replace: FaultProxy['fault'] = async ({ method, pass, reply }) => {
    if (method !== 'PUT') return false
    const { status } = await pass()
    reply.writeHead(status === 412 ? 200 : status).end()
    return true
  }
  const trust: FaultProxy['fault'] = async ({ method, pass, reply }) => {
    if (method !== 'PUT') return false
    const { status } = await pass()
    reply.writeHead(status === 412 ? status : 200).end()
    return true
  }
  const unknown: FaultProxy['fault'] = ({ method, headers, reply }) => {
    const isFaulty = method === 'PUT' && headers['if-none-match'] !== undefined
    if (isFaulty) reply.writeHead(501).end()
    return isFaulty
  }
  for (const fault of [accept, replace, trust, unknown]) {
    proxy.fault = fault
    expect(await honorsPresignedPuts(bucket)).toBe(false)
  }
  proxy.fault = ({ method, reply }) => {
    if (method === 'PUT') reply.destroy()
    return method === 'PUT'
  }
  await expect(honorsPresignedPuts(bucket)).rejects.toThrow('does not answer')
  proxy.fault = undefined
  expect((await contentsOf(bucket)).objects.filter((name) => name.startsWith('check-put'))).toEqual([])
})

sampled.draw()
