import { ipRateLimitKey } from '../net/ip.ts'
import { createSlidingWindows } from '../rate-limits/sliding-window.ts'
import type { LiveSessions } from './live-session.ts'
import type { PlayableVideo } from './playable-video.ts'

const HOUR = { windowS: 3600, sliceS: 60 }
/** How often an address may be sent a whole video in an hour, for each session that plays there. */
const MAX_COPIES_PER_HOUR = 4

export type TrafficMeter = {
  /** Counts bytes of a video that are about to be sent. @returns the seconds until they may be sent; undefined: now */
  take(address: string, video: Pick<PlayableVideo, 'videoId' | 'plan'>, sizeBytes: number): number | undefined
}

/** Bounds how much of each video is sent to an address, so that a leaked signed path costs little traffic (playback-protocol.md, section 8). */
export function createTrafficMeter(sessions: LiveSessions, nowS: () => number): TrafficMeter {
  const windows = createSlidingWindows(nowS, HOUR)

  function countSessions(subject: string, videoId: string): number {
    let count = 0
    for (const { row, address } of sessions.values()) {
      if (row.videoId === videoId && row.endedAtS === null && ipRateLimitKey(address) === subject) count++
    }
    return count
  }

  return {
    take(address, video, sizeBytes) {
      const subject = ipRateLimitKey(address)
      const name = `${subject} ${video.videoId}`
      // Counting reads all sessions, so it is done only for the few addresses that get this far.
      const viewers = windows.isExhausted(name, MAX_COPIES_PER_HOUR) ? Math.max(1, countSessions(subject, video.videoId)) : 1
      const { passed, waitS } = windows.take(name, viewers * MAX_COPIES_PER_HOUR, sizeBytes / maxVideoBytes(video))
      return passed ? undefined : waitS
    },
  }
}

/** The largest video rendition and the audio, at the highest bitrates that the encoder allows. */
function maxVideoBytes({ plan: { videoTrack, audioTrack, durationS } }: Pick<PlayableVideo, 'plan'>): number {
  const videoBps = Math.max(0, ...(videoTrack?.renditions ?? []).map(({ maxBitrateBps }) => maxBitrateBps))
  return ((videoBps + (audioTrack?.bitrateBps ?? 0)) / 8) * durationS
}
