import { findAudioSettings } from '../catalogue/audio-settings-store.ts'
import { createSegmentIvDeriver, decryptSegment, deriveWindowKey } from '../crypto/content-key.ts'
import { windowOfAudioSegment, windowOfVideoSegment } from '../crypto/key-window.ts'
import type { Db } from '../db/database.ts'
import { findInit, listSegmentFiles, renditionSizes } from '../encode/generation-store.ts'
import { AAC_FRAMES_PER_SEGMENT, findAudioTrack, gridFor, type Plan } from '../encode/plan.ts'
import type { GenerationWithKey } from '../encode/publication.ts'
import type { Damage } from '../encode/repair.ts'
import { readSegment } from '../encode/segment-file.ts'
import { Failure } from '../errors.ts'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../mp4/aac.ts'
import { joinFragment, joinInits } from '../mp4/mux.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import { showAudioTracks } from './shown-audio.ts'

/** Largest piece that is yielded: sealing it blocks this thread for a millisecond. */
const MAX_PIECE_BYTES = 2 ** 18
/** Three B-frames in a pyramid: a frame may be shown this many frames before its place in decoding order. */
const DECODED_AHEAD_FRAMES = 2

type ExportMp4Deps = { db: Db; segments: BlobStore; reportDamage(damage: Damage): Promise<boolean> }

/**
 * A finished video as one MP4, piece by piece: its best video rendition and its audio rendition as they were encoded, each
 * segment a fragment. Segments are decrypted in memory, so nothing clear touches the disk. Nothing is encoded or parsed again,
 * so ffmpeg is not needed; muxed by ffmpeg through pipes, the audio is two frames off in some players.
 * @throws Failure `unavailable` when a segment is missing or differs from the published one, until it has been encoded again
 */
export async function* exportMp4(deps: ExportMp4Deps, video: GenerationWithKey): AsyncGenerator<Buffer> {
  const renditions = await Promise.all(
    exportedRenditions(await exportedPlan(deps.db, video)).map(async (rendition) => openRendition(deps.db, video, rendition)),
  )
  yield joinInits(renditions, video.plan.durationS)
  const order = renditions
    .flatMap((rendition, index) => rendition.files.map((segment) => ({ ...segment, rendition, track: index + 1 })))
    .sort((a, b) => a.number * a.rendition.segmentS - b.number * b.rendition.segmentS)
  const deriveIv = createSegmentIvDeriver(video.contentKey)
  const { videoId, generation } = video
  for (const [index, segment] of order.entries()) {
    const { number, rendition, track } = segment
    const key = deriveWindowKey(video.contentKey, rendition.keyWindow(number))
    const read = await readSegment(deps.segments, segment)
    if ('fault' in read) {
      const isRepaired = await deps.reportDamage({ videoId, generation, renditionId: rendition.id, number, ...read.fault })
      const message = `Segment ${number} of rendition ${rendition.id} is damaged: ${read.fault.problem}`
      throw isRepaired ? new Failure('unavailable', `${message}. It is being encoded again.`) : new Error(message)
    }
    const fragment = decryptSegment(read.bytes, key, deriveIv(rendition.id, number))
    joinFragment(fragment, { track, sequence: index + 1, delayTicks: rendition.delayTicks })
    for (let at = 0; at < fragment.length; at += MAX_PIECE_BYTES) yield fragment.subarray(at, at + MAX_PIECE_BYTES)
  }
}

/** The approximate size of a video's MP4. */
export async function exportedSizeBytes(db: Db, video: GenerationWithKey): Promise<number> {
  const sizes = await renditionSizes(db, video)
  return exportedRenditions(await exportedPlan(db, video)).reduce((sum, { id }) => sum + (sizes.get(id) ?? 0), 0)
}

/** Its audio track is the default one. */
async function exportedPlan(db: Db, { plan, ...source }: GenerationWithKey): Promise<Plan> {
  const tracks = showAudioTracks(plan, await findAudioSettings(db, source))
  const audioTrack = findAudioTrack(plan, tracks.find(({ isDefault }) => isDefault)?.id ?? null)
  return { ...plan, ...(audioTrack && { audioTrack }) }
}

type ExportedRendition = { id: number; segmentS: number; delayTicks: number; keyWindow(segment: number): number }

function exportedRenditions(plan: Plan): ExportedRendition[] {
  const { videoTrack, audioTrack } = plan
  const grid = gridFor(plan)
  const renditions: ExportedRendition[] = []
  const [best] = videoTrack?.renditions ?? []
  if (videoTrack && best) {
    const segmentS = (videoTrack.gopFrames * videoTrack.rateDen) / videoTrack.rateNum
    const delayTicks = (DECODED_AHEAD_FRAMES * videoTrack.timescale * videoTrack.rateDen) / videoTrack.rateNum
    renditions.push({ id: best.id, segmentS, delayTicks, keyWindow: windowOfVideoSegment })
  }
  if (audioTrack) {
    const segmentS = (AAC_FRAMES_PER_SEGMENT * AAC_FRAME_SAMPLES) / AAC_RATE_HZ
    renditions.push({
      id: audioTrack.renditionId,
      segmentS,
      delayTicks: 0,
      keyWindow: (segment) => windowOfAudioSegment(segment, grid),
    })
  }
  return renditions
}

async function openRendition(db: Db, video: GenerationWithKey, rendition: ExportedRendition) {
  const init = await findInit(db, video, rendition.id)
  if (!init) throw new Error(`rendition ${rendition.id} of a finished video has no init segment`)
  return { ...rendition, init, files: await listSegmentFiles(db, video, rendition.id) }
}
