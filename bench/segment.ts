import { randomBytes } from 'node:crypto'
import { link, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { gridFor } from '../src/encode/plan.ts'
import { originMediaUrl, signedMediaPath } from '../src/playback/media/media-path.ts'
import { mediaPlaylist } from '../src/playback/media/playlist.ts'
import { createOwner } from '../test/client.ts'
import { listSegments, untilFinished } from '../test/data-folder.ts'
import { createViewer } from '../test/viewer.ts'
import { measureDownloadsPerS, measureFirstDownloadsPerS } from './download.ts'
import { measureInterleaved } from './interleaved.ts'
import { formatRequest } from './load.ts'
import { startSegmentNginx } from './peers/nginx.ts'
import type { Row, Scope } from './row.ts'
import { firstApiKey, type ListeningProcess, ROOT, startBuild, startPeer, startService } from './service.ts'
import { make48SVideo } from './videos.ts'

const PAIRS = 5

export const SEGMENT_ROWS: readonly Row[] = [
  {
    name: 'segment-plain',
    what: 'segments of a 720p video; peer: plain Node, createReadStream with reads of 256 KiB',
    unit: 'per s',
    aim: { ratioAtLeast: 0.9 },
    prepare: make48SVideo,
    measure: (scope) => compareSegments(scope, 'create-read-stream.ts'),
  },
  {
    name: 'segment-static',
    what: 'segments of a 720p video; peer: @fastify/static',
    unit: 'per s',
    aim: { ratioAtLeast: 3 },
    prepare: make48SVideo,
    measure: (scope) => compareSegments(scope, 'static.ts'),
  },
  {
    name: 'segment-accel',
    what: 'segments of 1.4 MB, sent by nginx that the service asks to (X-Accel-Redirect); peer: the same nginx, static files',
    unit: 'per s',
    aim: { ratioAtLeast: 0.85 },
    prepare: make48SVideo,
    measure: compareAccel,
  },
  {
    name: 'playlist-origin',
    what: 'the playlist of two hours whose segments another origin sends, with one tag for its folder, compressed',
    unit: 'kB',
    aim: { oursAtMost: 10 },
    measure: async () => ({ ours: compressedPlaylistBytes(7200) / 1000 }),
  },
  {
    name: 'segment-cold',
    what: 'segments of a 720p video, each for the first time in its process; peer: the build in REELGATE_BENCH_BEFORE, or this one',
    unit: 'per s',
    aim: { ratioAtLeast: 0.8 },
    prepare: make48SVideo,
    measure: compareCold,
  },
]

/** How often each segment is copied, and how many copies of all are downloaded at a time. */
const COPIES = 120
const COPIES_AT_A_TIME = 10

async function compareCold(scope: Scope) {
  const ours = await startWithCopies(scope, ROOT, 'ours')
  const peer = await startWithCopies(scope, process.env.REELGATE_BENCH_BEFORE ?? ROOT, 'peer')
  await ours() // the first requests of a process are slow
  await peer()
  return measureInterleaved(COPIES / COPIES_AT_A_TIME - 1, ours, peer)
}

/** Starts a build with a video whose segments are stored many times. @returns downloads the next ones, which were not read before */
async function startWithCopies(scope: Scope, root: string, name: string): Promise<() => Promise<number>> {
  const dataDir = join(scope.folder, name)
  const encoding = await startBuild(scope, root, dataDir)
  const { segments } = await encodeVideo(encoding, dataDir)
  const apiKey = firstApiKey(encoding)
  await encoding.kill()
  const database = new Database(join(dataDir, 'reelgate.db'))
  const insert = database.prepare(
    `insert into segment (video_id, generation, rendition_id, number, file, size_bytes, sha256)
      select video_id, generation, rendition_id, ?, ?, size_bytes, sha256 from segment where file = ?`,
  )
  const requests: string[] = []
  for (let copy = 1; copy <= COPIES; copy++)
    for (const { file, rendition_id, number } of segments) {
      const numberOfCopy = number + 1_000 * copy
      await link(join(dataDir, 'segments', file), join(dataDir, 'segments', `${file}.${copy}`))
      insert.run(numberOfCopy, `${file}.${copy}`, file)
      requests.push(`${rendition_id}/${numberOfCopy}.m4s`)
    }
  database.close()

  const service = await startBuild(scope, root, dataDir)
  const [videoId = ''] = segments.map(({ file }) => file.split('/')[0])
  const signed = await signPath(service, apiKey, videoId)
  const slices = Array.from({ length: COPIES / COPIES_AT_A_TIME }, (_, index) => {
    const size = segments.length * COPIES_AT_A_TIME
    return requests.slice(index * size, (index + 1) * size).map((path) => formatRequest('GET', `/${signed}/${path}`))
  })
  return () => measureFirstDownloadsPerS(service.url, slices.shift() ?? [])
}

async function encodeVideo(service: ListeningProcess, dataDir: string) {
  const videoId = await createOwner(service.url, firstApiKey(service)).upload('A video', await make48SVideo())
  const installed = { dataDir, masterKeyFile: `${dataDir}.key` }
  await untilFinished(installed, videoId)
  return { videoId, segments: listSegments(installed, videoId) }
}

/** The beginning of the addresses of a video's segments. */
async function signPath(service: ListeningProcess, apiKey: string, videoId: string): Promise<string> {
  const viewer = createViewer(service.url)
  await viewer.redeem(await createOwner(service.url, apiKey).issueOtp(videoId))
  const [, signed] = /"(?:\.\.\/)*(media\/.*)\/\d+\/init\.mp4"/.exec(await viewer.playlist('1')) ?? []
  if (!signed) throw new Error('the playlist names no signed path')
  return signed
}

async function compareSegments(scope: Scope, peerName: string) {
  const dataDir = join(scope.folder, 'data')
  const service = await startService(scope, dataDir)
  const { videoId, segments } = await encodeVideo(service, dataDir)
  const signed = await signPath(service, firstApiKey(service), videoId)

  const peer = await startPeer(scope, peerName, join(dataDir, 'segments'))
  const ours = segments.map(({ rendition_id, number }) => formatRequest('GET', `/${signed}/${rendition_id}/${number}.m4s`))
  const theirs = segments.map(({ file }) => formatRequest('GET', `/${file}`))
  const measureService = () => measureDownloadsPerS(service.url, ours)
  const measurePeer = () => measureDownloadsPerS(peer.url, theirs)
  await measureService()
  await measurePeer()
  return measureInterleaved(PAIRS, measureService, measurePeer)
}

async function compareAccel(scope: Scope) {
  const dataDir = join(scope.folder, 'data')
  const env = { REELGATE_MEDIA_ACCEL: '/segments/', REELGATE_TRUSTED_PROXIES: '127.0.0.1' }
  const encoding = await startService(scope, dataDir, env)
  const { videoId, segments } = await encodeVideo(encoding, dataDir)
  const apiKey = firstApiKey(encoding)
  await encoding.kill()
  await enlarge(dataDir, segments)

  const service = await startService(scope, dataDir, env)
  const signed = await signPath(service, apiKey, videoId)
  const nginx = await startSegmentNginx(scope, service.url, join(dataDir, 'segments'))
  const ours = segments.map(({ rendition_id, number }) => formatRequest('GET', `/${signed}/${rendition_id}/${number}.m4s`))
  const theirs = segments.map(({ file }) => formatRequest('GET', `/static/${file}`))
  const measureService = () => measureDownloadsPerS(nginx.url, ours)
  const measurePeer = () => measureDownloadsPerS(nginx.url, theirs)
  await measureService()
  await measurePeer()
  return measureInterleaved(PAIRS, measureService, measurePeer)
}

/** Four seconds of 2.8 Mbit/s, the highest rate of 720p: the bench's own video is easier to encode, and its segments are small. */
const FULL_SEGMENT_BYTES = 1_400_000

async function enlarge(dataDir: string, segments: readonly { file: string }[]): Promise<void> {
  const bytes = randomBytes(FULL_SEGMENT_BYTES)
  for (const { file } of segments) await writeFile(join(dataDir, 'segments', file), bytes)
  const database = new Database(join(dataDir, 'reelgate.db'))
  database.prepare('update segment set size_bytes = ?').run(bytes.length)
  database.close()
}

/** As the route sends it. */
function compressedPlaylistBytes(durationS: number): number {
  const origin = { url: 'https://media.example.org', bunnyKey: undefined }
  const rendition = { id: 1, widthPx: 1280, heightPx: 720, maxBitrateBps: 2_800_000, level: 31 }
  const grid = { rateNum: 25, rateDen: 1, timescale: 12_800, gopFrames: 100, interlaced: false }
  const videoTrack = { ...grid, frameCount: 25 * durationS, aspectRatio: 16 / 9, renditions: [rendition] }
  const plan = { videoTrack, durationS, isSeekable: true }
  const video = {
    ...{ videoId: '0123456789abcdef'.repeat(2), generation: 1, sourceNumber: 1, timelineStartS: 0, plan, grid: gridFor(plan) },
    ...{ windowKey: () => Buffer.alloc(16), ivKey: randomBytes(16), repairsOf: () => 0 },
  }
  const base = originMediaUrl(origin, signedMediaPath(['secret'], video, Date.now() / 1000))
  const playlist = mediaPlaylist(video, { renditionId: 1, forcedBitrateKbps: null }, (fileName) => `${base}/1/${fileName}`)
  return gzipSync(playlist ?? '', { level: 3 }).length
}
