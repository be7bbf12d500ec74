import { join } from 'node:path'
import { createOwner } from '../test/client.ts'
import { makeFilm } from '../test/films.ts'
import { createViewer, type Viewer } from '../test/viewer.ts'
import { answersPerS, rawRequest } from './load.ts'
import { startNginx } from './peers/nginx.ts'
import type { Row } from './row.ts'
import { firstApiKey, startService } from './service.ts'
import { inTurns } from './turns.ts'

const PAIRS = 5
const VIEWERS = 50
const SECONDS = 2

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
      let fastest = 10_000
      // Signed before each turn, more than can be asked for: a proof is good for a minute and a half, and once.
      const ours = async () => {
        const requests = await signKeyRequests(viewers, fastest * SECONDS * 2)
        const perS = await answersPerS(scope, service.url, { requests, connections: VIEWERS, seconds: SECONDS })
        fastest = Math.max(fastest, perS)
        return perS
      }
      const peer = async () => {
        const requests = await signKeyRequests(viewers, VIEWERS) // of the same size; nobody looks at them
        return answersPerS(scope, nginx.url, { requests, connections: VIEWERS, seconds: SECONDS })
      }
      await ours()
      await peer()
      return inTurns(PAIRS, ours, peer)
    },
  },
]

/** Browsers that have redeemed, each with a key pair of its own. */
async function openSessions(url: string, apiKey: string): Promise<Viewer[]> {
  const owner = createOwner(url, apiKey)
  const videoId = await owner.readyVideo(await makeFilm())
  const viewers = Array.from({ length: VIEWERS }, () => createViewer(url))
  for (const viewer of viewers) {
    const { status } = await viewer.redeem(await owner.issueOtp(videoId))
    if (status !== 200) throw new Error(`redeem: ${status}`)
  }
  return viewers
}

/** In turns of the viewers, each one's numbers rising: of one session hardly two are under way at once. */
async function signKeyRequests(viewers: readonly Viewer[], count: number): Promise<string[]> {
  for (const viewer of viewers) await viewer.key(0) // brings the nonce
  const requests: string[] = []
  for (let round = 0; round * viewers.length < count; round++) {
    for (const viewer of viewers) {
      const { session } = viewer.state
      const proof = viewer.proof({ operation: 'key', session, argument: '0' })
      requests.push(rawRequest('GET', `/play/${session}/key/0`, { 'Reelgate-Proof': proof }))
    }
  }
  return requests
}
