import { join } from 'node:path'
import { createOwner } from '../test/client.ts'
import { listSegments, untilFinished } from '../test/data-folder.ts'
import { createViewer } from '../test/viewer.ts'
import { measureDownloadsPerS } from './download.ts'
import { measureInterleaved } from './interleaved.ts'
import { formatRequest } from './load.ts'
import type { Row, Scope } from './row.ts'
import { firstApiKey, startPeer, startService } from './service.ts'
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
]

async function compareSegments(scope: Scope, peerName: string) {
  const dataDir = join(scope.folder, 'data')
  const service = await startService(scope, dataDir)
  const owner = createOwner(service.url, firstApiKey(service))
  const installed = { dataDir, masterKeyFile: `${dataDir}.key` }
  const videoId = await owner.upload('A video', await make48SVideo())
  await untilFinished(installed, videoId)
  const segments = listSegments(installed, videoId)

  const viewer = createViewer(service.url)
  await viewer.redeem(await owner.issueOtp(videoId))
  const [, signed] = /"(?:\.\.\/)*(media\/.*)\/\d+\/init\.mp4"/.exec(await viewer.playlist('1')) ?? []
  if (!signed) throw new Error('the playlist names no signed path')

  const peer = await startPeer(scope, peerName, join(dataDir, 'segments'))
  const ours = segments.map(({ rendition_id, number }) => formatRequest('GET', `/${signed}/${rendition_id}/${number}.m4s`))
  const theirs = segments.map(({ file }) => formatRequest('GET', `/${file}`))
  const measureService = () => measureDownloadsPerS(service.url, ours)
  const measurePeer = () => measureDownloadsPerS(peer.url, theirs)
  await measureService()
  await measurePeer()
  return measureInterleaved(PAIRS, measureService, measurePeer)
}
