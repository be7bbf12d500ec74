import { ipRateLimitKey } from '../net/ip.ts'
import { createSlidingWindows } from '../rate-limits/sliding-window.ts'
import type { PlayableVideo } from './playable-video.ts'
import type { LiveSessions } from './session.ts'

const HOUR = { windowS: 3600, sliceS: 60 }
/** What an address may be sent of a video in an hour, for each session that plays there, in lengths of the video. */
const LENGTHS_AN_HOUR = 4

export type TrafficMeter = {
  /** Counts bytes of a video that are about to be sent. @returns the seconds till there is room for them again; undefined: they may be sent */
  take(address: string, video: Pick<PlayableVideo, 'videoId' | 'plan'>, sizeBytes: number): number | undefined
}

/** Bounds the bytes of each video that an address is sent: a signed address that leaks costs no more (playback-protocol.md, section 8). */
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
      // Counting the sessions costs a look at each, and few addresses come this far.
      const viewers = windows.isExhausted(name, LENGTHS_AN_HOUR) ? Math.max(1, countSessions(subject, video.videoId)) : 1
      const { passed, waitS } = windows.take(name, viewers * LENGTHS_AN_HOUR, sizeBytes / lengthBytesOf(video))
      return passed ? undefined : waitS
    },
  }
}

/** The largest rendition and the audio at the most that their encoders may make of them. */
function lengthBytesOf({ plan: { videoTrack, audioTrack, durationS } }: Pick<PlayableVideo, 'plan'>): number {
  const videoBps = Math.max(0, ...(videoTrack?.renditions ?? []).map(({ maxBitrateBps }) => maxBitrateBps))
  return ((videoBps + (audioTrack?.bitrateBps ?? 0)) / 8) * durationS
}
