import { type AudioTrackPlan, audioTracksOf, type Plan } from '../../src/encode/plan.ts'
import type { Reelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'

/** Makes the video as long as this for everything but its segments, which no test of it requests: only its plan changes. */
export function stretchVideo(reelgate: Reelgate, durationS: number): void {
  const [row] = readRows<{ plan: string }>(reelgate, 'select plan from generation where video_id = ?', reelgate.videoId)
  const plan: Plan = JSON.parse(row?.plan ?? '{}')
  if (!plan.videoTrack) throw new Error('it has no video track')
  const { rateNum, rateDen } = plan.videoTrack
  const videoTrack = { ...plan.videoTrack, frameCount: Math.floor((durationS * rateNum) / rateDen) }
  const audioTracks = audioTracksOf(plan).map((track) => stretchTrack(track, durationS))
  const stretched: Plan = { ...plan, videoTrack, audioTrack: audioTracks[0], otherAudioTracks: audioTracks.slice(1), durationS }
  changeRows(reelgate, 'update generation set plan = ? where video_id = ?', JSON.stringify(stretched), reelgate.videoId)
}

/** The same track for a video of this length. */
export function stretchTrack(track: AudioTrackPlan, durationS: number): AudioTrackPlan {
  return { ...track, frameCount: Math.floor((durationS * 48_000) / 1024) }
}
