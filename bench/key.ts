import { join } from 'node:path'
import { createOwner } from '../test/client.ts'
import { makeVideo } from '../test/videos.ts'
import { createViewer, type Viewer } from '../test/viewer.ts'
import { measureInterleaved, percentile, timeMs } from './interleaved.ts'
import { formatRequest, measureFlooded, measureResponsesPerS } from './load.ts'
import { startNginx } from './peers/nginx.ts'
import type { Row } from './row.ts'
import { firstApiKey, startService } from './service.ts'

const PAIRS = 5
const VIEWERS = 50
const SECONDS = 2
const KEYS_EACH = 10

export const KEY_ROWS: readonly Row[] = [
  {
    name: 'key',
    what: 'keys for a fresh proof each, 50 viewers; peer: nginx, auth_request to a trivial Node',
    unit: 'per s',
    aim: { ratioAtLeast: 0.5 },
    measure: async (scope) => {
      const service = await startService(scope, join(scope.folder, 'data'))
      const viewers = await openSessions(service.url, firstApiKey(service))
      const nginx = await startNginx(scope)
      let fastest = 30_000 // more than any machine so far
      // Signed before each measurement, more than can be sent: a proof is valid for a minute and a half, and once.
      const ours = async () => {
        const requests = await signKeyRequests(viewers, fastest * SECONDS * 2)
        const perS = await measureResponsesPerS(scope, service.url, { requests, connections: VIEWERS, seconds: SECONDS })
        fastest = Math.max(fastest, perS)
        return perS
      }
      const peer = async () => {
        const requests = await signKeyRequests(viewers, VIEWERS) // of the same size; nginx ignores them
        return measureResponsesPerS(scope, nginx.url, { requests, connections: VIEWERS, seconds: SECONDS })
      }
      await ours()
      await peer()
      return measureInterleaved(PAIRS, ours, peer)
    },
  },
  {
    name: 'key-flood',
    what: 'a key while another client posts 256 KiB of multipart fields without a key on 8 connections: 99 of 100; peer: without',
    unit: 'ms',
    aim: { ratioAtMost: 3 },
    measure: (scope) =>
      measureFlooded(scope, [formWithoutKey()], async (service) => {
        const viewers = await openSessions(service.url, firstApiKey(service))
        return () => measureKeyP99Ms(viewers)
      }),
  },
]

/** One viewer after the other, at the rate of their players: a session may send 20 proofs a second. */
async function measureKeyP99Ms(viewers: readonly Viewer[]): Promise<number> {
  const timesMs: number[] = []
  for (let round = 0; round < KEYS_EACH; round++) {
    for (const viewer of viewers) {
      timesMs.push(
        await timeMs(async () => {
          const { status } = await viewer.key(0)
          if (status !== 200) throw new Error(`key: ${status}`)
        }),
      )
    }
  }
  return percentile(timesMs, 99)
}

/** A form with as many fields as fit into 256 KiB. */
function formWithoutKey(): string {
  const field = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
  const body = `${field.repeat(Math.floor((256 * 1024 - 10) / field.length))}--b--\r\n`
  const headers = { 'X-Forwarded-For': '198.51.100.1', 'Content-Type': 'multipart/form-data; boundary=b' }
  return formatRequest('POST', '/v2/videos', headers, body)
}

/** Browsers with a playback session each, and a key pair of its own. */
async function openSessions(url: string, apiKey: string): Promise<Viewer[]> {
  const owner = createOwner(url, apiKey)
  const videoId = await owner.readyVideo(await makeVideo())
  const viewers = Array.from({ length: VIEWERS }, () => createViewer(url))
  for (const viewer of viewers) {
    const { status } = await viewer.redeem(await owner.issueOtp(videoId))
    if (status !== 200) throw new Error(`redeem: ${status}`)
  }
  return viewers
}

/** The viewers in turn, with rising numbers, so that two requests of one session are hardly ever concurrent. */
async function signKeyRequests(viewers: readonly Viewer[], count: number): Promise<string[]> {
  for (const viewer of viewers) await viewer.key(0) // to receive the nonce
  const requests: string[] = []
  for (let round = 0; round * viewers.length < count; round++) {
    for (const viewer of viewers) {
      const { session } = viewer.state
      const proof = viewer.proof({ operation: 'key', session, argument: '0' })
      requests.push(formatRequest('GET', `/play/${session}/key/0`, { 'Reelgate-Proof': proof }))
    }
  }
  return requests
}
