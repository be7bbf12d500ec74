import { ipScopes } from '../../net/ip.ts'
import { createSlidingWindows, type SharedWindows } from '../../rate-limits/sliding-window.ts'
import type { PlayableVideo } from '../media/playable-video.ts'
import type { LiveSessions } from './live-session.ts'

const HOUR = { windowS: 3600, sliceS: 60 }
/** How often an address may be sent a whole video in an hour, for each session that plays there. */
const MAX_COPIES_PER_HOUR = 4
/** In all of an IPv6 network, in which one customer may move from address to address. */
const MAX_COPIES_OF_NETWORK = 16 * MAX_COPIES_PER_HOUR

export type TrafficMeter = {
  /** Counts bytes of a video that are about to be sent. @returns the seconds until they may be sent; undefined: now */
  take(address: string, video: Pick<PlayableVideo, 'videoId' | 'plan'>, sizeBytes: number): number | undefined
}

/** Bounds how much of each video is sent to an address, so that a leaked signed path costs little traffic (playback-protocol.md, section 8). */
export function createTrafficMeter(
  sessions: LiveSessions,
  nowS: () => number,
  share?: (name: string, windows: SharedWindows) => void,
): TrafficMeter {
  // Apart from each other: a program with an address for each request must not push out what its network was sent.
  const counters = [MAX_COPIES_PER_HOUR, MAX_COPIES_OF_NETWORK].map((copies) => ({
    copies,
    windows: createSlidingWindows(nowS, HOUR),
  }))

  for (const { copies, windows } of counters) share?.(`traffic ${copies}`, windows)

  function countSessions(scope: string, videoId: string): number {
    let count = 0
    for (const { row, address } of sessions.values()) {
      if (row.videoId === videoId && row.endedAtS === null && ipScopes(address).includes(scope)) count++
    }
    return count
  }

  return {
    take(address, { videoId, plan }, sizeBytes) {
      const weight = sizeBytes / maxVideoBytes(plan)
      const scopes = ipScopes(address).flatMap((scope, n) => {
        const counter = counters[n]
        return counter ? [{ ...counter, scope, name: `${scope} ${videoId}` }] : []
      })
      for (const { windows, copies, scope, name } of scopes) {
        // Counting reads all sessions, so it is done only for the few that get this far.
        if (!windows.isExhausted(name, copies)) continue
        const limit = copies * Math.max(1, countSessions(scope, videoId))
        if (windows.isExhausted(name, limit)) return windows.take(name, limit, weight).waitS
      }
      for (const { windows, name } of scopes) windows.take(name, Number.POSITIVE_INFINITY, weight)
      return undefined
    },
  }
}

/** The largest video rendition and the audio, at the highest bitrates that the encoder allows. */
function maxVideoBytes({ videoTrack, audioTrack, durationS }: PlayableVideo['plan']): number {
  const videoBps = Math.max(0, ...(videoTrack?.renditions ?? []).map(({ maxBitrateBps }) => maxBitrateBps))
  return ((videoBps + (audioTrack?.bitrateBps ?? 0)) / 8) * durationS
}
