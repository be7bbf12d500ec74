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
 * (cockatoo.mp4: SSIM 0.59). Publish nothing of it and encode the rest of the video with `decodesFromStart: true`.
 */
export class InexactSeek extends Error {
  constructor(decoderLine: string) {
    super(`the source does not decode cleanly after a seek: ${decoderLine}`)
  }
}

/** A notice for the owner of a video that plays although one of its streams ends early. */
export function truncationReason(stream: 'video' | 'audio', atS: number, durationS: number): string {
  const subject = stream === 'audio' ? 'The sound' : 'The picture'
  return `${subject} breaks off at ${clockTime(atS)} of ${clockTime(durationS)}.`
}

/** A time in a video as players show it: 0:08, 75:03. */
export function clockTime(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`
}
