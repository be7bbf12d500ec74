import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
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
import type { Row, Scope } from './row.ts'
import { firstApiKey, startService } from './service.ts'
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
