import { join } from 'node:path'
import { createOwner } from '../test/client.ts'
import { listSegments, untilFinished } from '../test/data-folder.ts'
import { createViewer } from '../test/viewer.ts'
import { downloadsPerS } from './download.ts'
import { measureInterleaved } from './interleaved.ts'
import { rawRequest } from './load.ts'
import type { Row, Scope } from './row.ts'
import { firstApiKey, startPeer, startService } from './service.ts'
import { videoOf48S } from './videos.ts'

const PAIRS = 5

export const SEGMENT_ROWS: readonly Row[] = [
  {
    name: 'segment-plain',
    what: 'segments of a 720p video; peer: plain Node, createReadStream with reads of 256 KiB',
    unit: 'per s',
    aim: { ratioAtLeast: 0.9 },
    prepare: videoOf48S,
    measure: (scope) => segmentsAgainst(scope, 'create-read-stream.ts'),
  },
  {
    name: 'segment-static',
    what: 'segments of a 720p video; peer: @fastify/static',
    unit: 'per s',
    aim: { ratioAtLeast: 3 },
    prepare: videoOf48S,
    measure: (scope) => segmentsAgainst(scope, 'static.ts'),
  },
]

async function segmentsAgainst(scope: Scope, peerName: string) {
  const dataDir = join(scope.folder, 'data')
  const service = await startService(scope, dataDir)
  const owner = createOwner(service.url, firstApiKey(service))
  const installed = { dataDir, masterKeyFile: `${dataDir}.key` }
  const videoId = await owner.upload('A video', await videoOf48S())
  await untilFinished(installed, videoId)
  const segments = listSegments(installed, videoId)

  const viewer = createViewer(service.url)
  await viewer.redeem(await owner.issueOtp(videoId))
  const [, signed] = /"(?:\.\.\/)*(media\/.*)\/\d+\/init\.mp4"/.exec(await viewer.playlist('1')) ?? []
  if (!signed) throw new Error('the playlist names no signed path')

  const peer = await startPeer(scope, peerName, join(dataDir, 'segments'))
  const ours = segments.map(({ rendition_id, number }) => rawRequest('GET', `/${signed}/${rendition_id}/${number}.m4s`))
  const theirs = segments.map(({ file }) => rawRequest('GET', `/${file}`))
  const askService = () => downloadsPerS(service.url, ours)
  const askPeer = () => downloadsPerS(peer.url, theirs)
  await askService()
  await askPeer()
  return measureInterleaved(PAIRS, askService, askPeer)
}
