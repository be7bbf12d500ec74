import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import { type AudioTrackPlan, audioTracksOf, type DubFile, type Plan, withAudioTracks } from './plan.ts'

/** What owners call an audio track that they add. */
type Named = Pick<AudioTrackPlan, 'renditionId' | 'language' | 'name'>

/**
 * The track that a file of its own becomes in a video: as long as the video, cut or padded with silence. Pure.
 * @returns undefined where the file has no sound
 */
export function fitDub(dub: DubFile, named: Named, { audioTrack, durationS, cut }: Plan): AudioTrackPlan | undefined {
  const file = dub.plan.audioTrack
  if (!file) return undefined
  const frameCount = audioTrack?.frameCount ?? Math.max(1, Math.ceil((durationS * AAC_RATE_HZ) / AAC_FRAME_SAMPLES))
  const firstSample = Math.round(((cut?.startS ?? 0) - dub.startS) * AAC_RATE_HZ)
  const audibleSamples = Math.max(0, dubSamples(file) - firstSample)
  const silentFrames = Math.max(0, frameCount - Math.ceil(audibleSamples / AAC_FRAME_SAMPLES))
  const { bitrateBps, byCount, sources } = file
  return { bitrateBps, byCount, sources, ...named, firstSample, frameCount, silentFrames, dub }
}

/** By how many seconds a track's own file is longer than its video; negative: shorter. */
export function lengthDifferenceS({ plan, startS }: DubFile, { cut, durationS }: Plan): number {
  const lengthS = plan.audioTrack ? dubSamples(plan.audioTrack) / AAC_RATE_HZ : 0
  return lengthS - ((cut?.startS ?? 0) - startS) - durationS
}

function dubSamples({ frameCount, silentFrames = 0 }: AudioTrackPlan): number {
  return (frameCount - silentFrames) * AAC_FRAME_SAMPLES
}

/** A plan with the added tracks of another plan of the same file, cut in the same place. Pure. */
export function takeDubs(from: Plan, to: Plan): Plan {
  const dubs = audioTracksOf(from).flatMap((track) => (track.dub && fitDub(track.dub, nameOf(track), to)) ?? [])
  return dubs.length > 0 ? withAudioTracks(to, [...audioTracksOf(to), ...dubs]) : to
}

function nameOf({ renditionId, language, name }: AudioTrackPlan): Named {
  return { renditionId, ...(language !== undefined && { language }), ...(name !== undefined && { name }) }
}

/** A plan without an added track. Pure. */
export function withoutTrack(plan: Plan, renditionId: number): Plan {
  return withAudioTracks(
    plan,
    audioTracksOf(plan).filter((track) => track.renditionId !== renditionId),
  )
}
