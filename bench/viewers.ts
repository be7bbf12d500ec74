import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createOwner } from '../test/client.ts'
import { makeVideo } from '../test/videos.ts'
import { bytesOf, createViewer, readMediaPlaylist, type Viewer } from '../test/viewer.ts'
import { percentile, timeMs } from './interleaved.ts'
import type { Row } from './row.ts'
import { firstApiKey, startService } from './service.ts'

const VIEWERS = 500
const WATCHED_S = 24
const BEAT_EVERY_MS = 6_000
/** Redeems at a time: they are no part of what is measured. */
const REDEEMED_TOGETHER = 25

export const VIEWER_ROWS: readonly Row[] = [
  {
    name: 'viewers-500',
    what: '500 viewers who watch for 24 s, with keys, segments and beats at the pace of playback: a key, 99 of 100',
    unit: 'ms',
    aim: { oursAtMost: 50 },
    measure: async (scope) => {
      const service = await startService(scope, join(scope.folder, 'data'))
      const owner = createOwner(service.url, firstApiKey(service))
      const videoId = await owner.readyVideo(await makeVideo({ seconds: 2 * WATCHED_S }))
      const viewers: Viewer[] = []
      while (viewers.length < VIEWERS)
        viewers.push(
          ...(await Promise.all(Array.from({ length: REDEEMED_TOGETHER }, () => newViewer(service.url, owner, videoId)))),
        )
      const times = await Promise.all(viewers.map((viewer, index) => watch(viewer, (index / VIEWERS) * BEAT_EVERY_MS)))
      return { ours: percentile(times.flat(), 99) }
    },
  },
]

async function newViewer(url: string, owner: ReturnType<typeof createOwner>, videoId: string): Promise<Viewer> {
  const viewer = createViewer(url)
  const { status } = await viewer.redeem(await owner.issueOtp(videoId))
  if (status !== 200) throw new Error(`redeem: ${status}`)
  return viewer
}

/** Plays the first rendition as a player does. @returns how long each of its key requests took, in milliseconds */
async function watch(viewer: Viewer, startsAfterMs: number): Promise<number[]> {
  await pause(startsAfterMs)
  const startedMs = performance.now()
  const untilPlayed = (playedS: number) => pause(Math.max(0, startedMs + playedS * 1000 - performance.now()))
  const base = `${viewer.url}/play/${viewer.state.session}/playlist/`
  const { segments } = readMediaPlaylist(await viewer.playlist('1'))
  if (segments.length === 0) throw new Error('the first rendition has no segments')
  const keyTimesMs: number[] = []
  const asked = new Set<string>()
  let provenMs = startedMs
  let playedS = 0
  for (const { uri, keyUri, durationS } of segments) {
    if (playedS >= WATCHED_S) break
    if (!asked.has(keyUri)) {
      asked.add(keyUri)
      keyTimesMs.push(await timeMs(() => succeed(viewer.key(Number(keyUri.split('/').at(-1))))))
      provenMs = performance.now()
    } else if (performance.now() - provenMs >= BEAT_EVERY_MS) {
      await succeed(viewer.call('beat', undefined, JSON.stringify({ state: 'playing', positionS: playedS, rate: 1, bufferS: 4 })))
      provenMs = performance.now()
    }
    await bytesOf(new URL(uri, base).href)
    playedS += durationS
    await untilPlayed(playedS)
  }
  return keyTimesMs
}

async function succeed(response: Promise<Response>): Promise<void> {
  const { status, url } = await response
  if (status !== 200 && status !== 204) throw new Error(`${url}: ${status}`)
}
