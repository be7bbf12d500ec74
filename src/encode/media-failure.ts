/** Why a video cannot be encoded: a status for the catalogue, and a sentence for its owner. Another attempt does not help. */
export class MediaFailure extends Error {
  readonly status: 'Not a media file' | 'Encoding error'
  constructor(status: 'Not a media file' | 'Encoding error', reason: string, options?: ErrorOptions) {
    super(reason, options)
    this.status = status
  }
}

/**
 * A chunk started with a seek and the decoder reported errors: frames may be wrong although counts and exit code are right
 * (cockatoo.mp4: SSIM 0.59). Publish nothing of it, unless a run that decoded more before the chunk gives the same bytes.
 */
export class InexactSeek extends Error {
  /** What the run gave; undefined: it did not give the whole chunk. */
  readonly outcome?: SeekOutcome | undefined
  constructor(decoderLine: string, outcome?: SeekOutcome) {
    super(`the source does not decode cleanly after a seek: ${decoderLine}`)
    this.outcome = outcome
  }
}

/** How much was decoded before the chunk, in frames or samples, and where the source ends: see `ChunkEnd`. */
type SeekOutcome = { decodedBefore: number; end: ChunkEnd }

/** Where the source ended early in a chunk, if it did: how many of the last frames are missing, or when the audio ends. */
export type ChunkEnd = { missingFrames?: number; truncatedAtS?: number }

/** A notice for the owner of a video that plays although one of its streams ends early. */
export function truncationReason(stream: 'video' | 'audio', atS: number, durationS: number): string {
  const subject = stream === 'audio' ? 'The sound' : 'The picture'
  return `${subject} breaks off at ${clockTime(atS)} of ${clockTime(durationS)}.`
}

/** A notice for the owner of a video whose file was cut off. @param announcedS how long the file says that it is; 0: it does not */
export function breakOffNotice(atS: number, announcedS: number): string {
  const whole = announcedS > atS ? ` of ${clockTime(announcedS)}` : ''
  return `The file breaks off at ${clockTime(atS)}${whole}: it was cut off. To have all of it, upload the whole file again.`
}

/** A notice for the owner of a video of joined files, of which ffmpeg reads the first alone. */
export function firstOfJoinedNotice(endS: number): string {
  return `The file consists of joined Ogg files, of which the first is played, up to ${clockTime(endS)}. To have all of it, convert it to MP4 or WebM and upload it again.`
}

/** A time in a video as players show it: 0:08, 75:03. */
export function clockTime(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`
}
