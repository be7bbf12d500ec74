import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import Database from 'better-sqlite3'
import { openBucket } from '../src/storage/s3/bucket.ts'
import { HEADLESS_SHELL, startChromiumAt } from '../test/browser/chromium.ts'
import { createOwner } from '../test/client.ts'
import { untilFinished } from '../test/data-folder.ts'
import { findFreePort } from '../test/free-port.ts'
import { openObjectStore } from '../test/s3/radosgw.ts'
import { createViewer } from '../test/viewer.ts'
import { showFirstFrame } from './first-frame.ts'
import { measureInterleaved, median, repeat, timeMs } from './interleaved.ts'
import { measureMaxMb } from './process.ts'
import type { Row, Scope } from './row.ts'
import { firstApiKey, startService } from './service.ts'
import { sendByForm } from './upload.ts'
import { make48SVideo } from './videos.ts'

const PAIRS = 9

export const BUCKET_ROWS: readonly Row[] = [
  {
    name: 'playlist-presigned',
    what: 'the playlist of two hours with presigned addresses of a bucket, from the request to its last byte',
    unit: 'ms',
    aim: { oursAtMost: 20 },
    prepare: make48SVideo,
    measure: async (scope) => {
      const readPlaylist = await openTwoHours(scope)
      await repeat(PAIRS, () => timeMs(readPlaylist)) // the first requests of a process are slow
      return { ours: median(await repeat(3 * PAIRS, () => timeMs(readPlaylist))) }
    },
  },
  {
    name: 'playlist-presigned-size',
    what: 'the same, compressed',
    unit: 'kB',
    aim: { oursAtMost: 80 },
    prepare: make48SVideo,
    measure: async (scope) => ({ ours: (await (await openTwoHours(scope))()) / 1000 }),
  },
  {
    name: 'upload-bucket',
    what: '1 GB by the form into a bucket, sealed and hashed; peer: the same bytes by aws4fetch in parts of 8 MiB, three at a time',
    unit: 'MB per s',
    aim: { ratioAtLeast: 0.75 },
    measure: async (scope) => {
      const { send, sendPlainly } = await openUploads(scope)
      const megabytesPerS = (work: () => Promise<unknown>) => async () => UPLOAD_BYTES / 1e3 / (await timeMs(work))
      return measureInterleaved(UPLOAD_PAIRS, megabytesPerS(send), megabytesPerS(sendPlainly))
    },
  },
  {
    name: 'memory-upload-bucket',
    what: 'anonymous memory of the server, its maximum meanwhile',
    unit: 'MB',
    aim: { oursAtMost: 200 },
    measure: async (scope) => {
      const { send, pid } = await openUploads(scope)
      return { ours: await measureMaxMb(pid, 'RssAnon', send) }
    },
  },
  {
    name: 'first-frame-bucket',
    what: 'from the address of the player to the first frame in Chromium, segments straight from the bucket; peer: through the server',
    unit: 'ms',
    aim: { ratioAtMost: 1.1 },
    prepare: make48SVideo,
    measure: async (scope) => {
      const store = await startStore(scope)
      const browser = await startChromiumAt(HEADLESS_SHELL)
      scope.defer(() => browser.close())
      const ours = await openFirstFrame(scope, browser, await store('ours'))
      const peer = await openFirstFrame(scope, browser, { ...(await store('peer')), REELGATE_MEDIA_DELIVERY: 'server' })
      await ours()
      await peer()
      return measureInterleaved(PAIRS, ours, peer)
    },
  },
]

/** @returns the environment of a service whose files are in a bucket of its own, and which has a public address */
async function startStore(scope: Scope) {
  const { endpoint, remove, ...credentials } = await openObjectStore()
  scope.defer(remove)
  return async (name: string): Promise<Record<string, string>> => {
    const bucket = `bench-${name}`
    await openBucket({ endpoint, region: 'us-east-1', bucket, prefix: '', credentials }).send({ method: 'PUT' })
    const port = String(await findFreePort())
    return {
      REELGATE_STORAGE_URL: `s3://${bucket}/?endpoint=${endpoint}`,
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
      ...{ PORT: port, REELGATE_PUBLIC_URL: `http://127.0.0.1:${port}`, DATA: join(scope.folder, name) },
    }
  }
}

async function encodeVideo(scope: Scope, env: Record<string, string>) {
  const dataDir = env.DATA ?? ''
  const service = await startService(scope, dataDir, env)
  const apiKey = firstApiKey(service)
  const videoId = await createOwner(service.url, apiKey).upload('A video', await make48SVideo())
  await untilFinished({ dataDir, masterKeyFile: `${dataDir}.key` }, videoId)
  return { service, apiKey, videoId, dataDir }
}

async function openFirstFrame(
  scope: Scope,
  browser: Awaited<ReturnType<typeof startChromiumAt>>,
  env: Record<string, string>,
): Promise<() => Promise<number>> {
  const { service, apiKey, videoId } = await encodeVideo(scope, env)
  const owner = createOwner(service.url, apiKey)
  return async () => {
    const address = `${env.REELGATE_PUBLIC_URL}/player/?otp=${await owner.issueOtp(videoId)}`
    return timeMs(() => showFirstFrame(browser, address))
  }
}

const UPLOAD_BYTES = 1e9
/** Each leaves its bytes in the memory of the store for a while. */
const UPLOAD_PAIRS = 2
const UPLOAD_PART_BYTES = 8 * 2 ** 20
const PARTS_AT_ONCE = 3

async function openUploads(scope: Scope) {
  const { DATA: dataDir = '', ...env } = await (await startStore(scope))('uploads')
  const service = await startService(scope, dataDir, env)
  const send = sendByForm(service.url, firstApiKey(service), UPLOAD_BYTES)
  const uploads = { send: async () => void (await (await send())()), sendPlainly: () => sendPlainly(env) }
  return { ...uploads, pid: service.pid }
}

/** As a program would that only has the bytes and aws4fetch. */
async function sendPlainly({
  REELGATE_STORAGE_URL = '',
  AWS_ACCESS_KEY_ID = '',
  AWS_SECRET_ACCESS_KEY = '',
}: Record<string, string>) {
  const { host: bucket, searchParams } = new URL(REELGATE_STORAGE_URL)
  const url = `${searchParams.get('endpoint')}/${bucket}/plain`
  const credentials = { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY }
  const client = new AwsClient({ ...credentials, service: 's3', region: 'us-east-1' })
  async function ask(query: string, method: string, body?: Buffer<ArrayBuffer> | string) {
    const headers = {
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    }
    const answer = await client.fetch(`${url}${query}`, { method, headers, ...(body !== undefined && { body }) })
    if (!answer.ok) throw new Error(`${method} ${query}: ${answer.status} ${await answer.text()}`)
    return { etag: answer.headers.get('etag') ?? '', text: await answer.text() }
  }
  const [, id = ''] = /<UploadId>([^<]*)/.exec((await ask('?uploads=', 'POST')).text) ?? []
  const part = randomBytes(UPLOAD_PART_BYTES)
  const etags: string[] = []
  let next = 0
  async function sendParts() {
    while (next * UPLOAD_PART_BYTES < UPLOAD_BYTES) {
      const number = next++
      const body = part.subarray(0, Math.min(UPLOAD_PART_BYTES, UPLOAD_BYTES - number * UPLOAD_PART_BYTES))
      etags[number] = (await ask(`?partNumber=${number + 1}&uploadId=${encodeURIComponent(id)}`, 'PUT', body)).etag
    }
  }
  await Promise.all(Array.from({ length: PARTS_AT_ONCE }, sendParts))
  const parts = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`)
  const whole = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`
  await ask(`?uploadId=${encodeURIComponent(id)}`, 'POST', whole)
  await ask('', 'DELETE')
}

const SEGMENTS = 1_800
/** Which one run of the encoder makes. */
const SEGMENTS_OF_RUN = 5

/** A service with rows of two hours. @returns reads the playlist and returns how many bytes it was sent as */
async function openTwoHours(scope: Scope): Promise<() => Promise<number>> {
  const env = await (await startStore(scope))('two-hours')
  const { service: encoding, apiKey, videoId, dataDir } = await encodeVideo(scope, env)
  await encoding.kill()
  const database = new Database(join(dataDir, 'reelgate.db'))
  const [row] = database.prepare<[], { plan: string }>('select plan from generation').all()
  const plan: { durationS: number; videoTrack: { gopFrames: number; frameCount: number } } = JSON.parse(row?.plan ?? '{}')
  plan.videoTrack.frameCount = SEGMENTS * plan.videoTrack.gopFrames
  plan.durationS = 4 * SEGMENTS
  database.prepare('update generation set plan = ?').run(JSON.stringify(plan))
  const insert = database.prepare(
    `insert into segment (video_id, generation, rendition_id, number, file, size_bytes, sha256) values (?, 1, 1, ?, ?, 500000, ?)`,
  )
  database.prepare('delete from segment where rendition_id = 1').run()
  let attempt = ''
  for (let number = 0; number < SEGMENTS; number++) {
    if (number % SEGMENTS_OF_RUN === 0) attempt = randomBytes(6).toString('hex')
    insert.run(videoId, number, `${videoId}/1/1/${number}.${attempt}.m4s`, randomBytes(32))
  }
  database.close()

  const service = await startService(scope, dataDir, env)
  const viewer = createViewer(service.url)
  await viewer.redeem(await createOwner(service.url, apiKey).issueOtp(videoId))
  return async () => {
    const answer = await viewer.call('playlist', '1')
    const lines = (await answer.text()).match(/X-Amz-Signature=/g) ?? []
    if (lines.length !== SEGMENTS) throw new Error(`the playlist has ${lines.length} presigned addresses`)
    return Number(answer.headers.get('content-length'))
  }
}
